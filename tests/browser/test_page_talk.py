"""What the page does with a call and its session, against the stand-in, which counts and remembers what it is asked."""

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Page, chromium
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser

AUDIBLE = 1e-4
"""Energy (sum of squares × s) of about 50 ms of the stand-in's tone; half a second of it has ten times as much."""


def call(page: Page, server: StandIn) -> None:
    page.open(server.address)
    page.click("#talk")
    page.wait_for(lambda: page.connection == "live", "the call")


def asked(server: StandIn, name: str) -> list[dict[str, Any]]:
    return [event for event in server.script.seen if event["type"] == name]


def wait_for_sound(page: Page) -> float:
    """Returns the energy received once the answer is being heard."""
    start = page.heard()[0]
    page.wait_for(lambda: page.heard()[0] > start + AUDIBLE, "sound of the answer")
    return page.heard()[0]


def energy_of_next(page: Page, seconds: float) -> float:
    """Returns the energy of the next `seconds` of sound, by the receiver's own clock."""
    energy, start = page.heard()
    page.wait_for(lambda: page.heard()[1] >= start + seconds, f"{seconds} s of sound or silence")
    return page.heard()[0] - energy


def test_a_call_tells_its_session_what_the_page_wants(stand_in: StandIn, still: Path) -> None:
    """Transcripts on and typed turns on; the modalities stay the session's own."""
    with chromium(microphone=still) as page:
        call(page, stand_in)
        page.wait_for(lambda: asked(stand_in, "session.update"), "the update")
    session = asked(stand_in, "session.update")[0]["session"]
    assert session == {
        "type": "realtime",
        "audio": {"input": {"transcription": {"model": "default"}}},
        "chorale": {"typed_turns": True, "events": []},
    }


def test_a_text_session_asks_for_text(stand_in: StandIn) -> None:
    """A session of writing asks the server for text and typed turns."""
    with chromium() as page:
        page.open(stand_in.address)
        page.write("hello")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
    assert asked(stand_in, "session.update")[0]["session"]["output_modalities"] == ["text"]
    item = asked(stand_in, "conversation.item.create")[0]["item"]
    assert item["content"] == [{"type": "input_text", "text": "hello"}]
    assert (item["type"], item["role"], len(item["id"]) <= 32) == ("message", "user", True)


def test_speech_becomes_a_transcript_an_answer_and_sound(stand_in: StandIn, one_voice: Path) -> None:
    """The whole round: microphone, words, answer, loudspeaker, and the turn's latency in the details."""
    with chromium(microphone=one_voice) as page:
        call(page, stand_in)
        page.wait_for(lambda: page.said_by("user", "final") == ["what time is it"], "the transcript")
        wait_for_sound(page)
        page.wait_for(lambda: page.said_by("assistant", "final") == [stand_in.script.answer], "the answer")
        page.click("#details-toggle")
        page.wait_for(lambda: "from your last sound" in page.text("#latency"), "the latency")
        assert page.text("#session-id").startswith("sess_")


def test_a_typed_message_belongs_to_the_call_and_interrupts_it(stand_in: StandIn, one_voice: Path) -> None:
    """Voice and keyboard are one session; the answer that was being spoken is cut where it was heard."""
    stand_in.script.tone_s = 20
    stand_in.script.heard = "It is a quarter"
    with chromium(microphone=one_voice) as page:
        call(page, stand_in)
        wait_for_sound(page)
        page.write("and in Paris")
        page.wait_for(lambda: "It is a quarter" in page.said_by("assistant", "cut"), "the cut")
        page.wait_for(lambda: page.said_by("assistant", "final"), "the second answer")
        assert [row["voice"] for row in page.entries()] == ["user", "assistant", "user", "assistant"]
        assert page.entries()[1]["mark"] == "interrupted"
        assert page.said_by("note") == []


@pytest.mark.parametrize("way", ["key", "button"])
def test_interrupting_stops_the_sound(stand_in: StandIn, one_voice: Path, way: str) -> None:
    """Esc, or the button: the answer is cancelled on the server and silent here at once."""
    stand_in.script.tone_s = 30
    stand_in.script.answer = "word " * 400
    with chromium(microphone=one_voice) as page:
        call(page, stand_in)
        wait_for_sound(page)
        if way == "key":
            page.press(Keys.ESCAPE)
        else:
            page.click("#interrupt")
        assert page.script("return document.getElementById('sound').muted") is True
        page.wait_for(lambda: page.said_by("assistant", "cut"), "the cut")
        assert asked(stand_in, "response.cancel")
        assert asked(stand_in, "output_audio_buffer.clear")
        page.wait_for(
            lambda: not page.script("return document.getElementById('sound').muted"), "the ear to reopen"
        )
        assert energy_of_next(page, 0.5) < AUDIBLE
        page.wait_for(
            lambda: page.script("return document.getElementById('interrupt').ariaDisabled") == "true", "rest"
        )


def test_speaking_interrupts(stand_in: StandIn, two_voices: Path) -> None:
    """The second utterance cuts the first answer and gets one of its own, in order."""
    stand_in.script.tone_s = 30
    stand_in.script.heard = "It is"
    with chromium(microphone=two_voices) as page:
        call(page, stand_in)
        page.wait_for(lambda: len(page.said_by("user", "final")) == 2, "both utterances")
        page.wait_for(lambda: page.said_by("assistant", "final"), "the second answer")
        assert [row["voice"] for row in page.entries()] == ["user", "assistant", "user", "assistant"]
        assert page.said_by("assistant", "cut") == ["It is"]


def test_muting_silences_the_microphone_and_typing_an_m_does_not(stand_in: StandIn, still: Path) -> None:
    """M toggles the microphone except where text is written; the button says what is on."""
    enabled = "return window.peersForTest.at(-1).getSenders()[0].track.enabled"
    with chromium(microphone=still) as page:
        call(page, stand_in)
        assert page.script(enabled) is True
        page.driver.find_element("css selector", "#message").send_keys("mM")
        assert page.script(enabled) is True
        page.script("document.getElementById('talk').focus()")
        page.press("m")
        assert page.script(enabled) is False
        page.wait_for(
            lambda: page.script("return document.getElementById('mute').ariaPressed") == "true", "the button"
        )
        page.click("#mute")
        assert page.script(enabled) is True


def test_hanging_up_gives_everything_back(stand_in: StandIn, still: Path) -> None:
    """The server's place is free, the microphone's light is off, and a message opens a text session."""
    track = "return window.peersForTest.at(-1).getSenders()[0].track?.readyState ?? 'gone'"
    with chromium(microphone=still) as page:
        call(page, stand_in)
        page.script("window.track = window.peersForTest.at(-1).getSenders()[0].track")
        assert stand_in.calls == 1
        page.click("#talk")
        page.wait_for(lambda: page.connection == "idle", "the end")
        page.wait_for(lambda: stand_in.calls == 0, "the server to hear of it")
        assert page.script("return window.track.readyState") == "ended", page.script(track)
        page.write("still here")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer in writing")
        assert page.text("#connection-text") == "Live, in writing"


def test_leaving_the_page_ends_the_call(stand_in: StandIn, still: Path) -> None:
    """A tab that is closed, or goes elsewhere, ends its call at once, not when a time-out finds it. Its session is not
    ended: nobody knows whether the page is about to be back."""
    with chromium(microphone=still) as page:
        call(page, stand_in)
        page.driver.get("about:blank")
        page.wait_for(lambda: stand_in.calls == 0, "the server to hear of it")
        assert stand_in.hung_up == []


def test_voice_after_writing_is_a_new_session_and_said_so(stand_in: StandIn, still: Path) -> None:
    """Switching to voice opens a new session, and the page does not hide it."""
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.write("hello")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
        page.click("#talk")
        page.wait_for(lambda: page.text("#connection-text") == "Live, by voice", "the call")
        page.wait_for(lambda: page.said_by("note"), "the divider")
        assert page.said_by("user") == ["hello"]


BURST = """
window.WebSocket = class extends EventTarget {
  static OPEN = 1;
  readyState = 1;
  constructor() { super(); setTimeout(() => { this.onopen(); this.flood(); }); }
  send() {}
  close() {}
  async flood() {
    const say = (event) => this.onmessage({ data: JSON.stringify(event) });
    say({ type: "session.created", session: { id: "sess_flood" } });
    for (let turn = 0; turn < 3000; turn += 1) {
      if (turn % 300 === 0) {
        await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      }
      const item = { id: `a${turn}`, type: "message", role: "assistant", status: "completed",
                     content: [{ type: "output_text", text: `answer ${turn}` }] };
      const previous_item_id = turn === 0 ? null : `a${turn - 1}`;
      say({ type: "conversation.item.added", item, previous_item_id });
      say({ type: "conversation.item.done", item, previous_item_id });
    }
    window.flooded = true;
  }
};
"""


def test_a_day_of_events_does_not_grow_the_page(stand_in: StandIn) -> None:
    """Conversation, announcements and log stay within their bounds, and the page says that earlier ones left."""
    with chromium() as page:
        page.devtools("Page.addScriptToEvaluateOnNewDocument", source=BURST)
        page.open(stand_in.address)
        page.click("#details-toggle")
        page.click("#details-close")
        page.write("go")
        page.wait_for(lambda: page.script("return window.flooded"), "the flood")
        page.wait_for(lambda: "answer 2999" in page.said_by("assistant"), "the newest")
        page.click("#details-toggle")
        page.wait_for(
            lambda: page.script("return document.querySelectorAll('#events li').length") == 200, "the log"
        )
        counts = page.script(
            """return ['#entries > li', '#announcer > *', '#events > li']
              .map((css) => document.querySelectorAll(css).length)"""
        )
        assert counts == [200, 8, 200]
        assert "no longer shown" in page.text("#dropped")


def test_the_log_can_be_held_still_and_cleared(stand_in: StandIn) -> None:
    """The events in the drawer stop while held and go when cleared."""
    with chromium() as page:
        page.open(stand_in.address)
        page.write("hello")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
        page.click("#details-toggle")
        page.wait_for(lambda: "session.created" in page.text("#events"), "the log")
        page.click("#events-pause")
        before = page.text("#events")
        page.write("again")
        page.wait_for(lambda: len(page.said_by("assistant", "final")) == 2, "a second answer")
        page.wait_for(lambda: "passed by" in page.text("#events-note"), "the count of what passed")
        assert page.text("#events") == before
        page.click("#events-clear")
        page.wait_for(lambda: page.text("#events") == "", "an empty log")
