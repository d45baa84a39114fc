"""A reload of the page in a call with a whole server, whose models are scripts (F-C2)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Page, chromium
from tests.browser.served import Served
from tests.browser.stand_in import free_port
from tests.test_app import SCRIPTED

pytestmark = pytest.mark.browser

AUDIBLE = 1e-3
LONG = "one two three four five six seven eight nine ten " * 6


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name, engine in SCRIPTED.items():
        monkeypatch.setenv(name, engine)
    server = Served(free_port(), tmp_path / "server.log")
    server.start()
    yield server
    server.stop()


def heard_since(page: Page, energy: float) -> bool:
    return page.heard()[0] > energy + AUDIBLE


def test_sound_of_an_answer_goes_on_behind_three_reloads(scripted: Served, still: Path) -> None:
    """Each time another call to the same session: its conversation stands, the answer is shown once, and what had not
    been played of it is heard. Who hangs up then ends it."""
    with chromium(microphone=still) as page:
        page.open(scripted.address)
        page.click("#talk")
        page.wait_for(lambda: page.connection == "live", "the call")
        page.write(LONG)
        page.wait_for(lambda: heard_since(page, 0), "the answer to sound")
        for _ in range(3):
            page.driver.refresh()
            page.wait_for(lambda: page.connection == "live", "the way back")
            page.wait_for(lambda: heard_since(page, 0), "the sound to go on")
            assert page.text("#connection-text") == "Live, by voice"
        page.wait_for(
            lambda: page.said_by("assistant", "final") == [f"You said: {LONG.strip()}"], "all of it"
        )
        assert page.said_by("user") == [LONG.strip()]
        assert page.said_by("note") == []
        assert page.complaints() == []
        page.click("#talk")
        page.wait_for(lambda: page.connection == "idle", "the end")


def answered(page: Page, text: str) -> bool:
    """Whether an answer that is complete holds this. What was not read yet may be taken back for one to more."""
    return any(text in answer for answer in page.said_by("assistant", "final"))


def test_writing_goes_on_behind_three_reloads(scripted: Served) -> None:
    """The same session, asked and answered before and after."""
    words = ["once", "twice", "thrice", "at last"]
    with chromium() as page:
        page.open(scripted.address)
        for word in words:
            page.write(word)
            page.wait_for(lambda said=word: answered(page, said), "an answer")  # type: ignore[misc]
            page.driver.refresh()
            page.wait_for(lambda: page.connection == "live", "the way back")
        assert page.said_by("user", "final") == words
        assert page.said_by("note") == []
        assert page.complaints() == []
