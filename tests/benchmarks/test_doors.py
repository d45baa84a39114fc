"""`chorale bench doors`, small."""

import asyncio

import pytest

from benchmarks.door_clients import DOORS, Talk
from benchmarks.doors import THINK_S, WAYS, WORKERS, measure, rows

_SMALL = Talk(2, 3, 0.01)


async def _measured(way: str, nginx: bool) -> list[float]:
    async with asyncio.timeout(120):
        return await measure(way, _SMALL, nginx)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_brings_every_reply(way: str) -> None:
    """Two clients with three replies each: a time to the first word for each of them, after it was thought of."""
    took = asyncio.run(_measured(way, nginx=False))
    assert len(took) == 6
    assert all(one > 0.9 * THINK_S for one in took)


@pytest.mark.needs("nginx")
@pytest.mark.parametrize("door", DOORS)
def test_every_door_brings_every_reply_behind_nginx(door: str) -> None:
    """As without it; requests come by HTTP/2."""
    assert len(asyncio.run(_measured(door, nginx=True))) == 6


def test_doors_are_shown_beside_the_workers() -> None:
    """They come first, with nothing added; a door has what it took beyond them. All have as many replies."""
    told: list[str] = []
    first, _, third = found = rows(["websocket"], _SMALL, 2, told.append)
    assert (first["door"], first["added p50"], first["added p95"]) == (WORKERS, 0, 0)
    assert third["door"] == "websocket"
    added, p50, base = third["added p50"], third["p50 ms"], first["p50 ms"]
    assert isinstance(added, float)
    assert isinstance(p50, float)
    assert isinstance(base, float)
    assert added == pytest.approx(p50 - base)
    assert [one["replies"] for one in found] == [12, 12, 12]
    assert len(told) == 6
