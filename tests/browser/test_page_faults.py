"""What the page says and does when something is missing or goes wrong, against the stand-in."""

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Page, chromium
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser


def writes_and_is_answered(page: Page, text: str = "hello") -> None:
    count = len(page.said_by("assistant", "final"))
    page.write(text)
    page.wait_for(lambda: text in page.said_by("user", "final"), "the server to take the message")
    page.wait_for(lambda: len(page.said_by("assistant", "final")) > count, "an answer in writing")


def test_without_a_microphone_the_page_says_so_and_goes_on_in_writing(stand_in: StandIn) -> None:
    """No device: a readable alert with something to do, and a text session that works."""
    with chromium() as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: "No microphone found" in page.text("#alert"), "the alert")
        assert "Start again" in page.text("#alert")
        page.wait_for(lambda: page.connection == "live", "a text session")
        assert page.text("#connection-text") == "Live, in writing"
        writes_and_is_answered(page)
        assert page.complaints() == []


def test_a_blocked_microphone_is_told_apart_and_leaves_writing(stand_in: StandIn) -> None:
    """Permission denied is not "no microphone": the advice names the browser's site settings."""
    with chromium("--use-fake-device-for-media-stream") as page:
        page.open(stand_in.address)
        page.devtools("Browser.setPermission", permission={"name": "microphone"}, setting="denied")
        page.click("#talk")
        page.wait_for(lambda: "blocked" in page.text("#alert"), "the alert")
        assert "site settings" in page.text("#alert")
        writes_and_is_answered(page)


def test_a_browser_without_webrtc_goes_on_in_writing(stand_in: StandIn) -> None:
    """A browser that cannot call says so and writes."""
    with chromium() as page:
        page.devtools("Page.addScriptToEvaluateOnNewDocument", source="delete window.RTCPeerConnection;")
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: "cannot make calls" in page.text("#alert"), "the alert")
        writes_and_is_answered(page)


def test_a_call_without_a_path_ends_in_advice_and_writing(stand_in: StandIn, still: Path) -> None:
    """The server answers but no packet arrives: the page gives up by itself within its own limit."""
    stand_in.script.has_path = False
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: "No path for the sound" in page.text("#alert"), "the alert")
        assert "firewall" in page.text("#alert")
        writes_and_is_answered(page)


def test_a_full_server_is_asked_again_by_itself(stand_in: StandIn, still: Path) -> None:
    """503 with Retry-After: the page says that the server is full and comes in as soon as there is room."""
    stand_in.script.refuse_status = 503
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: "full right now" in page.text("#alert"), "the alert")
        assert "No place is free." in page.text("#alert")
        assert page.connection == "away"
        stand_in.script.refuse_status = None
        page.wait_for(lambda: page.connection == "live", "a place")
        page.wait_for(lambda: page.text("#alert") == "", "the alert to go")


def test_a_server_that_wants_a_key_gets_it_for_a_call(stand_in: StandIn, still: Path) -> None:
    """401 leads to the key field; the key opens calls, holds for this tab and never stands in a URL."""
    stand_in.script.key = "sk-test"
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: "access key is needed" in page.text("#alert"), "the alert")
        assert page.connection == "idle"
        page.click("#alert [data-action=key]")
        page.press("sk-test", Keys.ENTER)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.open(stand_in.address)
        page.wait_for(lambda: page.connection == "live", "the call after a reload")
        assert "sk-test" not in page.driver.current_url


def test_a_server_that_wants_a_key_gets_it_for_a_socket(stand_in: StandIn) -> None:
    """Browsers hide why a socket was refused: the page finds out, and the message that waited is sent with the key."""
    stand_in.script.key = "sk-test"
    with chromium() as page:
        page.open(stand_in.address)
        page.write("hello")
        page.wait_for(lambda: "access key is needed" in page.text("#alert"), "the alert")
        assert page.said_by("user", "waiting") == ["hello"]
        page.click("#alert [data-action=key]")
        page.press("sk-test", Keys.ENTER)
        page.wait_for(lambda: page.said_by("user", "final") == ["hello"], "the message to be taken")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")


def test_a_server_that_goes_away_is_waited_for_and_found_again(stand_in: StandIn, still: Path) -> None:
    """The call breaks: the page says so, keeps trying, keeps what is typed meanwhile, and sends it once it is back."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        stand_in.stop()
        page.wait_for(lambda: page.connection in ("reconnecting", "away"), "the page to notice")
        page.wait_for(lambda: "cannot be reached" in page.text("#alert"), "the alert")
        page.wait_for(lambda: page.connection == "away", "patience to end")
        page.write("are you there")
        assert page.said_by("user", "waiting") == ["are you there"]
        stand_in.start()
        page.wait_for(lambda: page.connection == "live", "the server to be found again")
        assert page.text("#connection-text") == "Live, by voice"
        page.wait_for(lambda: page.said_by("user", "final") == ["are you there"], "the message to be taken")
        page.wait_for(lambda: page.said_by("assistant"), "an answer")
        assert page.said_by("user", "waiting") == []


def asked(stand_in: StandIn, kind: str) -> int:
    """How often the page has sent an event of this kind."""
    return sum(event["type"] == kind for event in stand_in.script.seen)


def test_a_text_session_outlives_a_broken_connection(stand_in: StandIn) -> None:
    """F-C1: the page comes back to the same session, from the event behind its last one: no divider, nothing lost and
    nothing twice; it has nothing to ask for."""
    stand_in.script.answer = "one two three four five six seven eight nine ten " * 15
    stand_in.script.may_end = False
    with chromium() as page:
        page.open(stand_in.address)
        page.write("count")
        for _ in range(2):
            page.wait_for(lambda: page.said_by("assistant", "open"), "the answer to go on")
            sockets = page.script("return window.socketsForTest.length")
            stand_in.break_sockets()
            page.wait_for(
                lambda seen=sockets: page.script("return window.socketsForTest.length") > seen,  # type: ignore[misc]
                "the page to notice",
            )
            page.wait_for(lambda: page.connection == "live", "the way back")
        stand_in.script.may_end = True
        page.wait_for(lambda: page.said_by("assistant", "final") == [stand_in.script.answer], "the rest")
        assert page.said_by("note") == []
        assert len(stand_in.returns) == 2
        assert all("after=" in query and "secret" not in query for query in stand_in.returns)
        assert asked(stand_in, "conversation.item.retrieve") == 0
        assert asked(stand_in, "session.update") == 1
        writes_and_is_answered(page, "and now?")


def test_a_text_session_is_not_given_up_for_one_attempt_that_failed(stand_in: StandIn) -> None:
    """A way back that fails is tried again; a new session begins only where the server says that the old is gone."""
    with chromium() as page:
        page.open(stand_in.address)
        writes_and_is_answered(page)
        stand_in.script.drops_sockets = True
        stand_in.break_sockets()
        page.wait_for(lambda: page.script("return window.socketsForTest.length") >= 3, "two attempts")
        stand_in.script.drops_sockets = False
        page.wait_for(lambda: page.connection == "live", "the way back")
        assert page.said_by("note") == []
        writes_and_is_answered(page, "and now?")


def test_a_text_session_whose_events_are_gone_asks_for_what_it_missed(stand_in: StandIn) -> None:
    """A gap: the page asks for the items that it had not seen the end of, and shows them whole."""
    stand_in.script.answer = "one two three four five six seven eight nine ten " * 15
    stand_in.script.has_log = stand_in.script.may_end = False
    with chromium() as page:
        page.open(stand_in.address)
        page.write("count")
        page.wait_for(lambda: page.said_by("assistant", "open"), "the answer to begin")
        stand_in.break_sockets()
        page.wait_for(lambda: asked(stand_in, "conversation.item.retrieve"), "the page to ask")
        stand_in.script.may_end = True
        page.wait_for(lambda: page.said_by("assistant", "final") == [stand_in.script.answer], "the rest")
        assert page.said_by("note") == []


def test_a_call_that_breaks_off_goes_on_in_its_session(stand_in: StandIn, still: Path) -> None:
    """Another call to the same session, from the event behind the last one: the answer is shown once and whole."""
    stand_in.script.answer = "one two three four five six seven eight nine ten " * 20
    stand_in.script.may_end = False
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "a call")
        page.write("count")
        page.wait_for(lambda: page.said_by("assistant", "open"), "the answer to begin")
        stand_in.break_calls()
        page.wait_for(lambda: stand_in.returns, "the page to come back")
        stand_in.script.may_end = True
        page.wait_for(lambda: page.connection == "live", "the way back")
        page.wait_for(lambda: page.said_by("assistant", "final") == [stand_in.script.answer], "the rest")
        assert page.said_by("note") == []
        assert "after=" in stand_in.returns[0]
        assert "secret" not in stand_in.returns[0]
        assert asked(stand_in, "session.update") == 1
        assert stand_in.calls == 1


def test_a_call_that_broke_off_can_be_hung_up(stand_in: StandIn, still: Path) -> None:
    """Who does not want to wait for the way back ends the session, which the server holds for it."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "a call")
        assert stand_in.hung_up == []
        stand_in.script.refuse_status = 503
        stand_in.break_calls()
        page.wait_for(lambda: page.connection in ("reconnecting", "away"), "the page to notice")
        assert stand_in.hung_up == []
        page.click("#talk")
        page.wait_for(lambda: page.connection == "idle", "the end")
        page.wait_for(lambda: len(stand_in.hung_up) == 1, "the server to be told")


def test_a_text_session_that_is_gone_starts_anew_and_says_so(stand_in: StandIn) -> None:
    """The new session does not know the old one, and the page does not pretend that it does."""
    with chromium() as page:
        page.open(stand_in.address)
        writes_and_is_answered(page)
        stand_in.stop()
        page.wait_for(lambda: page.connection in ("reconnecting", "away"), "the page to notice")
        stand_in.start()
        page.wait_for(lambda: page.connection == "live", "the server to be found again")
        page.wait_for(lambda: page.said_by("note"), "the divider")
        assert "does not remember" in page.said_by("note")[0]
        writes_and_is_answered(page, "and now?")


def test_giving_up_stops_every_attempt(stand_in: StandIn, still: Path) -> None:
    """Cancel means cancel: the microphone is given back and nothing is tried any more."""
    stand_in.script.refuse_status = 503
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.text("#talk-text") == "Cancel", "the button")
        page.wait_for(lambda: page.connection == "away", "a refusal")
        page.click("#talk")
        page.wait_for(lambda: page.connection == "idle", "the end")
        stand_in.script.refuse_status = None
        page.script("dispatchEvent(new Event('online'))")
        assert page.connection == "idle"
        assert page.text("#talk-text") == "Start talking"


def test_a_failed_answer_is_told_in_the_conversation_and_the_session_goes_on(stand_in: StandIn) -> None:
    """A failed response is shown where it belongs, and the next message is answered."""
    stand_in.script.fail_reason = "the reply worker is gone"
    with chromium() as page:
        page.open(stand_in.address)
        page.write("hello")
        page.wait_for(lambda: page.said_by("note", "failed"), "the failure")
        assert "the reply worker is gone" in page.said_by("note")[0]
        stand_in.script.fail_reason = None
        writes_and_is_answered(page, "again")


@pytest.mark.parametrize("hostile", ["<img src=x onerror=alert(1)>", "</p><script>alert(1)</script>"])
def test_words_from_outside_stay_words(stand_in: StandIn, hostile: str) -> None:
    """Markup in messages, answers and failures is shown as it was written."""
    stand_in.script.answer = hostile
    with chromium() as page:
        page.open(stand_in.address)
        page.write(hostile)
        page.wait_for(
            lambda: page.said_by("assistant", "final") == [hostile], "the answer, letter for letter"
        )
        assert page.said_by("user") == [hostile]
        page.click("#details-toggle")
        page.wait_for(lambda: page.text("#events"), "the log")
        assert (
            page.script("return document.querySelectorAll('#page img, main script, #events img').length") == 0
        )


def test_the_policy_of_the_page_allows_everything_that_it_needs(stand_in: StandIn, still: Path) -> None:
    """A whole call under the strict policy leaves no complaint in the browser's console."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.write("hello")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
        page.click("#details-toggle")
        page.click("#details-close")
        page.click("#talk")
        page.wait_for(lambda: page.connection == "idle", "the end")
        assert page.complaints() == []
