"""`chorale bench resume`, small: connections that are cut, and what comes of it."""

import asyncio
import random

import pytest

from benchmarks.resume import CALL, cut, latencies
from benchmarks.resume_outcome import Compared
from benchmarks.resume_server import CuttingRelay
from benchmarks.resume_transports import TRANSPORTS


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_arrives_over_connections_that_are_cut_is_the_unbroken_run(transport: str, seed: int) -> None:
    """F-C1: a dozen cuts at random bytes of replies in writing, in PCM and in G.711: byte for byte the same as over a
    line that held."""

    async def main() -> Compared:
        async with asyncio.timeout(120):
            return await cut(transport, 12, seed, deltas=60)

    found = asyncio.run(main())
    assert (found.lost, found.changed, found.doubled, found.gaps) == (0, 0, 0, 0)
    assert found.is_equal
    assert found.cuts >= 12
    assert found.connections > found.cuts
    assert found.events > 100


def test_a_caller_that_is_cut_off_misses_nothing_and_hears_every_reply_to_its_end() -> None:
    """Some cuts, with the old call gone or still there: the events of a sideband that was never cut, and no reply that
    was cut short."""

    async def main() -> Compared:
        async with asyncio.timeout(240):
            return await cut(CALL, 3, seed=1, deltas=40)

    found = asyncio.run(main())
    assert (found.lost, found.changed, found.gaps) == (0, 0, 0)
    assert found.cuts >= 3
    assert found.events > 40


def test_returns_are_measured() -> None:
    """One figure for each try, of each of the three."""

    async def main() -> None:
        async with asyncio.timeout(120):
            took = await latencies("websocket", 300, 3)
        assert [len(took.chorale), len(took.plain), len(took.round_trips)] == [3, 3, 3]
        assert min(*took.chorale, *took.plain, *took.round_trips) > 0

    asyncio.run(main())


def test_relay_cuts_after_some_bytes_and_carries_all_where_it_is_not_to() -> None:
    """What was let through is a beginning of what the server sent; without cuts it is all of it."""
    sent = random.Random(1).randbytes(50_000)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()
        writer.close()

    async def get(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        got = bytearray()
        try:
            while data := await reader.read(4_096):
                got += data
        except OSError:
            pass
        finally:
            writer.transport.abort()
        return bytes(got)

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, CuttingRelay(port, random.Random(2), 50_000) as relay:
            for _ in range(20):
                got = await get(relay.port)
                assert sent.startswith(got)
                assert len(got) < len(sent)
            assert relay.cuts == 20
            relay.is_cutting = False
            while len(got := await get(relay.port)) < len(sent):
                assert sent.startswith(got)  # a reset may still overtake the last bytes
            assert got == sent

    asyncio.run(main())
