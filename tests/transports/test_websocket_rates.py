"""How fast the client of a WebSocket may speak."""

import asyncio

from orchestrator.transports.pace import Rate
from tests.transports.running import Running, against, build, closed, open_session, say, until


def test_link_that_says_too_much_is_read_more_slowly_and_then_ended() -> None:
    """Over its rate it is held back; a client that does not let up is told so with 1008, and its session stays."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)

            for _ in range(100):
                await say(link, "response.cancel")
            async with asyncio.timeout(120):
                code, reason = await closed(link)
            assert (code, "too much" in reason) == (1008, True)
            assert 5 <= len(session.submitted) <= 20
            assert session.ended is None

    against(test, lambda: build(rate=Rate(10, 1e9, 10**9, 0.5)))


def test_link_that_keeps_to_its_rate_is_never_held_back() -> None:
    """Bytes count, too: a burst as large as is allowed goes through at once, and so does what follows in time."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            for _ in range(40):
                await say(link, "response.cancel")
            await until(lambda: len(session.submitted) == 40)

    against(test, lambda: build(rate=Rate(0.1, 0.1, 100_000, 400)))
