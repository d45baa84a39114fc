"""docs/buffers.md says what a running server reports of its buffers; here a running server is asked."""

import asyncio
import json
import math
import re
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from orchestrator.app import Application
from orchestrator.observability.inventory import BufferReading
from orchestrator.settings.schema import Settings
from tests.test_app import readiness, running
from tests.test_buffers import FIGURES, PAGE, figure

_SECTION = PAGE.partition("## What the running server reports")[2].partition("\n## ")[0]
REPORTED = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", _SECTION, re.MULTILINE)
_FIGURES = {name: value for _, name, value in FIGURES}


def bound(cell: str) -> int:
    """Returns what a cell says: a product of numbers, settings and constants of the tables above; 0 for a dash."""
    if cell.strip() == "–":
        return 0
    return math.prod(_factor(word.strip()) for word in cell.split("×"))


def _factor(word: str) -> int:
    name = word.strip("`")
    if name == word:
        return int(word.replace(",", ""))
    if name.partition(".")[0] in Settings.model_fields:
        value = figure("", name)
        assert isinstance(value, int | float)
        return int(value)
    return _FIGURES[name]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("–", 0), ("2 × 1,024", 2_048), ("`server.max_links` × 2", 800), ("`MOST_JOBS`", 64)],
)
def test_a_bound_in_a_cell_is_read(cell: str, expected: int) -> None:
    """The reading itself: a dash, numbers, settings, constants."""
    assert bound(cell) == expected


def test_the_page_names_every_buffer_that_a_running_server_reports(tmp_path: Path) -> None:
    """A server with one session, one link and recordings: the same names, and the bounds that the page says."""
    found: dict[str, BufferReading] = {}

    async def test(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            assert json.loads(await link.recv())["type"] == "session.created"
            found.update(application.inventory.readings())

    running(
        test, {"CHORALE_RECORDING__ENABLED": "true", "CHORALE_RECORDING__DIR": str(tmp_path / "recordings")}
    )
    assert set(found) == {name for name, _, _ in REPORTED}
    said = {name: (bound(items), bound(size)) for name, items, size in REPORTED}
    assert {name: (one.bound_items, one.bound_bytes) for name, one in found.items()} == said


def test_a_server_reports_what_its_buffers_hold() -> None:
    """Items and bytes move with what is in them: a session, its log, a reply's events."""

    async def test(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        assert application.inventory.readings()["sessions"].items == 0
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            await link.send(json.dumps({"type": "response.create"}))
            while json.loads(await link.recv())["type"] != "response.done":
                pass
            held = application.inventory.readings()
            assert held["sessions"].items == held["links"].items == 1
            assert held["output_log"].items > 3
            assert held["output_log"].size_bytes > 500
            pcm = "AAAA" * 1_600  # 100 ms at 24 kHz
            await link.send(json.dumps({"type": "input_audio_buffer.append", "audio": pcm}))
            async with asyncio.timeout(120):
                while application.inventory.readings()["ring"].items < 1_500:  # noqa: ASYNC110 - no event to wait for
                    await asyncio.sleep(0.01)

    running(test)


def test_a_server_reports_whom_it_refused() -> None:
    """A second session where there is room for one: refused as a link and as a session, in the scrape that follows."""

    async def test(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        address = f"ws://127.0.0.1:{port}/v1/realtime"
        async with connect(address) as link:
            assert json.loads(await link.recv())["type"] == "session.created"
            with pytest.raises(InvalidStatus) as caught:
                await connect(address)
            assert caught.value.response.status_code == 503
            told = application.inventory.readings()
            assert (told["sessions"].dropped, told["links"].dropped) == (1, 1)

    running(test, {"CHORALE_SERVER__MAX_SESSIONS": "1"})
