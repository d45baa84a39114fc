"""`chorale bench doors`, small."""

import asyncio

import pytest

from benchmarks.door_clients import DIRECT, DOORS
from benchmarks.doors import measure, rows


@pytest.mark.parametrize("door", DOORS)
def test_every_door_brings_every_reply(door: str) -> None:
    """Two clients with three replies each: a time to the first word for each of them, before its last one came."""

    async def main() -> list[float]:
        async with asyncio.timeout(60):
            return await measure(DOORS[door], 2, 3, pause_s=0.01)

    took = asyncio.run(main())
    assert len(took) == 6
    assert all(one > 0 for one in took)


@pytest.mark.needs("nginx")
@pytest.mark.parametrize("door", [one for one in DOORS if one != DIRECT])
def test_every_door_brings_every_reply_behind_nginx(door: str) -> None:
    """As without it."""

    async def main() -> list[float]:
        async with asyncio.timeout(60):
            return await measure(DOORS[door], 2, 3, pause_s=0.01, nginx=True)

    assert len(asyncio.run(main())) == 6


def test_doors_are_shown_beside_the_dispatcher() -> None:
    """It comes first, with nothing added; a door has what it took beyond it."""
    told: list[str] = []
    first, second = rows(["websocket"], 2, 2, 0, 0.01, told.append)
    assert (first["door"], first["added p50"]) == (DIRECT, 0)
    assert second["door"] == "websocket"
    added, p50, base = second["added p50"], second["p50 ms"], first["p50 ms"]
    assert isinstance(added, float)
    assert isinstance(p50, float)
    assert isinstance(base, float)
    assert added == pytest.approx(p50 - base)
    assert len(told) == 2
