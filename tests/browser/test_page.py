"""The page and the real server: real recogniser, real replies, real voice, a real browser with a fake microphone."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Page, chromium
from tests.browser.microphone import silence, spoken, write_wav
from tests.browser.places import IMAGES
from tests.browser.served import Served
from tests.browser.stand_in import free_port

pytestmark = [pytest.mark.browser, pytest.mark.real]

PATIENCE_S = 60
"""For models on a machine that is also busy with other things; nothing here measures time."""

AUDIBLE = 1e-4
"""Energy (sum of squares × s) of a few hundredths of a second of speech."""

SPEAKER = """
navigator.mediaDevices.getUserMedia = async () => {
  const context = new AudioContext();
  const out = context.createMediaStreamDestination();
  window.sayForTest = async (wav) => {
    const source = context.createBufferSource();
    source.buffer = await context.decodeAudioData(Uint8Array.from(atob(wav), (c) => c.charCodeAt(0)).buffer);
    source.connect(out);
    source.start();
  };
  return out.stream;
};
"""
"""A microphone that speaks when a test tells it to."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(free_port(), tmp_path_factory.mktemp("server") / "log")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def question(wavs: Path) -> Path:
    """Somebody who asks one question, five seconds after the microphone was opened."""
    return write_wav(
        wavs / "question.wav", silence(5), spoken("What is the capital of France?"), silence(120)
    )


@pytest.fixture(scope="session")
def interjection(wavs: Path) -> Path:
    return write_wav(wavs / "interjection.wav", spoken("Wait a moment, please stop."))


def call(page: Page, server: Served) -> None:
    page.open(server.address)
    page.click("#talk")
    page.wait_for(lambda: page.connection == "live", "the call")
    assert page.text("#connection-text") == "Live, by voice"


def wait_for_sound(page: Page) -> None:
    start = page.heard()[0]
    page.wait_for(lambda: page.heard()[0] > start + AUDIBLE, "sound of the answer", PATIENCE_S)


def energy_of_next(page: Page, seconds: float) -> float:
    """Returns the energy of the next `seconds` of sound, by the receiver's own clock."""
    energy, start = page.heard()
    page.wait_for(lambda: page.heard()[1] >= start + seconds, f"{seconds} s of sound or silence")
    return page.heard()[0] - energy


def wait_for_silence(page: Page, within_s: float) -> None:
    """Returns at the first 0.3 s without sound. Fails if none begins within `within_s` of received sound."""
    start = page.heard()[1]
    while energy_of_next(page, 0.3) > AUDIBLE / 10:
        assert page.heard()[1] < start + within_s, "the answer goes on"


def keep_pictures(page: Page) -> None:
    """Adds a written turn and keeps the page as it looks while that is answered, light and dark, in docs/images."""
    page.devtools(
        "Emulation.setDeviceMetricsOverride", width=1080, height=600, deviceScaleFactor=2, mobile=False
    )
    page.devtools("Input.dispatchMouseEvent", type="mouseMoved", x=540, y=120)
    rest = "return document.getElementById('interrupt').ariaDisabled === 'true'"
    page.wait_for(lambda: page.script(rest), "the end of the first answer", PATIENCE_S)
    page.write("Is it a big city?")
    page.wait_for(lambda: len(page.said_by("assistant")) == 2, "the second answer", PATIENCE_S)
    wait_for_sound(page)
    page.script("document.activeElement.blur()")
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, scheme in (("page.png", "light"), ("page-dark.png", "dark")):
        page.devtools(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        assert page.driver.save_screenshot(str(IMAGES / name))


def test_a_spoken_question_is_written_down_answered_and_heard(served: Served, question: Path) -> None:
    """Microphone → transcript → answer → loudspeaker, and the time it took stands in the details."""
    with chromium(microphone=question) as page:
        call(page, served)
        heard = page.wait_for(lambda: page.said_by("user", "final"), "the transcript", PATIENCE_S)
        assert "capital of france" in heard[0].lower()
        wait_for_sound(page)
        answer = page.wait_for(lambda: page.said_by("assistant", "final"), "the answer", PATIENCE_S)
        assert len(answer[0].split()) > 1
        page.wait_for(lambda: page.heard()[0] > 10 * AUDIBLE, "more than a click", PATIENCE_S)
        page.click("#details-toggle")
        page.wait_for(lambda: "from your last sound" in page.text("#latency"), "the latency")
        assert page.text("#session-id").startswith("sess_")
        assert page.complaints() == []
        if os.environ.get("CHORALE_SCREENSHOTS"):
            page.click("#details-close")
            keep_pictures(page)


def test_a_typed_message_in_a_call_is_answered_there(served: Served, still: Path) -> None:
    """Written words go into the session that is being spoken to, and are answered with text and sound."""
    with chromium(microphone=still) as page:
        call(page, served)
        page.write("What colour is the sky?")
        page.wait_for(lambda: page.said_by("user", "final") == ["What colour is the sky?"], "the message")
        wait_for_sound(page)
        page.wait_for(lambda: page.said_by("assistant", "final"), "the answer", PATIENCE_S)
        assert page.said_by("note") == []
        assert page.text("#connection-text") == "Live, by voice"


def test_interrupting_by_key_stops_the_sound(served: Served, still: Path) -> None:
    """Esc during a long answer: silence, and the answer is shown cut."""
    with chromium(microphone=still) as page:
        call(page, served)
        page.write("Tell me a long story about a dog, a boat and an island.")
        wait_for_sound(page)
        energy_of_next(
            page, 1
        )  # some words are heard: an answer of which none was is taken back, not shown cut
        page.press(Keys.ESCAPE)
        wait_for_silence(page, within_s=1.5)
        page.wait_for(lambda: page.said_by("assistant", "cut"), "the cut")
        assert energy_of_next(page, 2) < AUDIBLE
        assert page.entries()[-1]["mark"] == "interrupted"


def test_speaking_stops_the_sound(served: Served, interjection: Path) -> None:
    """The server hears that somebody speaks over its answer: it falls silent, cuts it, and answers what was said."""
    with chromium() as page:
        page.devtools("Page.addScriptToEvaluateOnNewDocument", source=SPEAKER)
        call(page, served)
        page.write("Tell me a long story about a dog, a boat and an island.")
        wait_for_sound(page)
        page.script("sayForTest(arguments[0])", base64.b64encode(interjection.read_bytes()).decode())
        page.wait_for(lambda: page.said_by("assistant", "cut"), "the cut", PATIENCE_S)
        wait_for_silence(page, within_s=1.5)
        words = page.wait_for(lambda: page.said_by("user", "final")[1:], "what was said over it", PATIENCE_S)
        assert "stop" in words[0].lower()


def test_without_a_microphone_writing_works(served: Served) -> None:
    """Who has no microphone is told so readably and is answered in writing."""
    with chromium() as page:
        page.open(served.address)
        page.click("#talk")
        page.wait_for(lambda: "No microphone found" in page.text("#alert"), "the alert")
        page.wait_for(lambda: page.connection == "live", "a text session")
        page.write("Say hello.")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer in writing", PATIENCE_S)
        assert page.complaints() == []


def test_a_text_session_is_found_again_after_its_connection_broke(served: Served) -> None:
    """With its id and secret the page comes back to the very session, and the conversation goes on there."""
    with chromium() as page:
        page.open(served.address)
        page.write("My name is Ada.")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer", PATIENCE_S)
        page.click("#details-toggle")
        page.wait_for(lambda: page.text("#session-id").startswith("sess_"), "the session's id")
        session_id = page.text("#session-id")
        page.script("window.socketsForTest.at(-1).close(4000)")
        page.wait_for(lambda: page.script("return window.socketsForTest.length") == 2, "the page to notice")
        page.wait_for(lambda: page.connection == "live", "the way back", PATIENCE_S)
        page.write("Say hello.")
        page.wait_for(lambda: len(page.said_by("assistant", "final")) == 2, "a second answer", PATIENCE_S)
        assert page.text("#session-id") == session_id
        assert page.said_by("note") == []
        assert page.complaints() == []


def test_a_server_that_dies_is_missed_and_found_again(served: Served, still: Path) -> None:
    """Killed without a word, started again: the page says so, comes back by itself, and is answered."""
    with chromium(microphone=still) as page:
        call(page, served)
        served.kill()
        page.wait_for(lambda: page.connection in ("reconnecting", "away"), "the page to notice", PATIENCE_S)
        page.wait_for(lambda: "cannot be reached" in page.text("#alert"), "the alert", PATIENCE_S)
        served.start()
        page.wait_for(lambda: page.connection == "live", "the server to be found again", PATIENCE_S)
        page.wait_for(lambda: page.text("#alert") == "", "the alert to go")
        page.write("Are you there?")
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer", PATIENCE_S)
