"""`chorale bench resume --nginx`, small."""

import asyncio

import pytest

from benchmarks.nginx_front import Ports, ShippedOtherwise, placed
from benchmarks.resume import cut, latencies
from benchmarks.resume_outcome import Compared
from benchmarks.resume_transports import TRANSPORTS


@pytest.mark.needs("nginx")
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_arrives_through_nginx_over_connections_that_are_cut_is_the_unbroken_run(transport: str) -> None:
    """F-C1, with nginx behind the cut: it lets go of what it holds of a connection, and adds nothing."""

    async def main() -> Compared:
        async with asyncio.timeout(120):
            return await cut(transport, 12, seed=1, deltas=60, nginx=True)

    found = asyncio.run(main())
    assert (found.lost, found.changed, found.doubled, found.gaps) == (0, 0, 0, 0)
    assert found.is_equal
    assert found.cuts >= 12


@pytest.mark.needs("nginx")
def test_returns_through_nginx_are_measured() -> None:
    """One figure for each try."""

    async def main() -> None:
        async with asyncio.timeout(120):
            took = await latencies("websocket", 300, 3, nginx=True)
        assert len(took.chorale) == 3

    asyncio.run(main())


def test_file_that_ships_is_changed_nowhere_but_where_it_is_meant_to_be(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A line that is no longer there is an error, not left as it is."""
    with pytest.raises(ShippedOtherwise, match="listen 444"):
        placed(tmp_path_factory.getbasetemp(), (Ports(1, 2), Ports(3, 4)), [("listen 444 ", "")])
