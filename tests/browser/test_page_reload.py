"""What a reload of the page leaves as it was, against the stand-in (F-C2)."""

from pathlib import Path

import pytest

from tests.browser.chromium import Page, chromium
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser

STORED = "return JSON.stringify({...sessionStorage})"
LONG = "one two three four five six seven eight nine ten " * 20


def reload(page: Page, stand_in: StandIn) -> None:
    """Loads the page anew, and waits for it to be back in its session."""
    back = len(stand_in.returns)
    page.driver.refresh()
    page.wait_for(lambda: len(stand_in.returns) > back, "the page to come back")
    page.wait_for(lambda: page.connection == "live", "the way back")


def asked(stand_in: StandIn, kind: str) -> int:
    return sum(event["type"] == kind for event in stand_in.script.seen)


def test_a_text_session_outlives_three_reloads(stand_in: StandIn) -> None:
    """F-C2: the same session, the conversation as it stood, and an answer that is under way goes on to its end: nothing
    lost and nothing twice. The secret is in no address."""
    stand_in.script.answer = LONG
    with chromium() as page:
        page.open(stand_in.address)
        page.write("count")
        for _ in range(3):
            page.wait_for(lambda: page.said_by("assistant"), "the answer to go on")
            reload(page, stand_in)
            assert page.said_by("user", "final") == ["count"]
            assert "rs_" not in page.script(STORED), "a copy of the tab would come back too"
        page.wait_for(lambda: page.said_by("assistant", "final") == [LONG], "the rest")
        assert page.said_by("note") == []
        assert asked(stand_in, "session.update") == asked(stand_in, "conversation.item.create") == 1
        assert all("after=" in query and "secret" not in query for query in stand_in.returns)
        page.write("and now?")
        page.wait_for(lambda: len(page.said_by("assistant", "final")) == 2, "an answer after it")
        assert page.complaints() == []


def test_a_call_outlives_three_reloads(stand_in: StandIn, still: Path) -> None:
    """F-C2: a call is made anew, to the same session; the earlier one is not hung up, since that ends the session."""
    stand_in.script.answer = LONG
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.write("count")
        page.wait_for(lambda: page.said_by("assistant"), "the answer to begin")
        for _ in range(3):
            reload(page, stand_in)
            page.wait_for(lambda: stand_in.calls == 1, "the earlier call to be gone")
            assert page.text("#connection-text") == "Live, by voice"
        page.wait_for(lambda: page.said_by("assistant", "final") == [LONG], "the rest")
        assert page.said_by("note") == []
        assert stand_in.hung_up == []
        assert asked(stand_in, "session.update") == 1
        page.click("#talk")
        page.wait_for(lambda: len(stand_in.hung_up) == 1, "the end, which is told")


def test_who_was_muted_is_muted_after_a_reload(stand_in: StandIn, still: Path) -> None:
    """A microphone that was off is never on again by itself."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.click("#mute")
        reload(page, stand_in)
        assert page.script("return window.peersForTest.at(-1).getSenders()[0].track.enabled") is False
        assert page.script("return document.getElementById('mute').ariaPressed") == "true"


NO_MICROPHONE_YET = """
const count = Number(sessionStorage.countForTest ?? 0) + 1;
sessionStorage.countForTest = count;
if (count < 3) {
  navigator.mediaDevices.getUserMedia = () => new Promise(() => {});
}
"""


def test_who_reloads_while_the_microphone_is_asked_for_comes_back_all_the_same(
    stand_in: StandIn, still: Path
) -> None:
    """F-C2: refreshes in a row, each before the page had what it needs for a call; still muted, still that session."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.click("#mute")
        page.devtools("Page.addScriptToEvaluateOnNewDocument", source=NO_MICROPHONE_YET)
        for _ in range(2):
            page.driver.refresh()
            assert page.connection == "idle"
        reload(page, stand_in)
        assert len(stand_in.returns) == 1
        assert page.script("return window.peersForTest.at(-1).getSenders()[0].track.enabled") is False
        assert asked(stand_in, "session.update") == 1


def test_who_hung_up_is_not_called_after_a_reload(stand_in: StandIn, still: Path) -> None:
    """The end is the end."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.click("#talk")
        page.wait_for(lambda: page.connection == "idle", "the end")
        page.driver.refresh()
        page.wait_for(lambda: page.text("#talk-text") == "Start talking", "the page")
        assert page.connection == "idle"
        assert stand_in.returns == []


def test_what_was_kept_long_ago_calls_nobody(stand_in: StandIn, still: Path) -> None:
    """A browser brings a closed tab back with all that it kept: the microphone stays off where that is old."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.devtools(
            "Page.addScriptToEvaluateOnNewDocument",
            source="const now = Date.now; Date.now = () => now() + 61000;",
        )
        page.driver.refresh()
        page.wait_for(lambda: page.text("#talk-text") == "Start talking", "the page")
        assert page.connection == "idle"
        assert stand_in.returns == []


def test_a_message_that_was_not_sent_is_sent_after_a_reload(stand_in: StandIn) -> None:
    """What was typed while the server was away is not lost with the page."""
    with chromium() as page:
        page.open(stand_in.address)
        page.write("hello")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
        stand_in.script.drops_sockets = True
        stand_in.break_sockets()
        page.wait_for(lambda: page.connection in ("reconnecting", "away"), "the page to notice")
        page.write("are you there")
        page.driver.refresh()
        assert page.wait_for(lambda: page.said_by("user", "waiting"), "the message") == ["are you there"]
        stand_in.script.drops_sockets = False
        page.wait_for(lambda: page.said_by("user", "final") == ["hello", "are you there"], "it to be taken")
        assert page.said_by("note") == []


def test_a_session_that_is_gone_after_a_reload_starts_anew_and_says_so(stand_in: StandIn) -> None:
    """A server that began anew knows nothing of it; what was said before stays readable."""
    with chromium() as page:
        page.open(stand_in.address)
        page.write("hello")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
        stand_in.stop()
        stand_in.start()
        page.driver.refresh()
        page.wait_for(lambda: page.said_by("note"), "the divider")
        assert "does not remember" in page.said_by("note")[0]
        assert page.said_by("user") == ["hello"]


def test_session_whose_call_finds_no_way_back_is_ended(stand_in: StandIn, still: Path) -> None:
    """Writing goes on in a session of its own, and the other one does not wait for its grace time to end: it is hung up
    by the name of the newest call."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        stand_in.script.has_path = False
        page.driver.refresh()
        page.wait_for(lambda: "No path for the sound" in page.text("#alert"), "the alert")
        page.wait_for(lambda: stand_in.hung_up, "the server to be told")
        assert stand_in.hung_up == stand_in.answered[-1:]
        assert len(stand_in.answered) == 2
