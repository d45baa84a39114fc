"""Where one waits for a seat (`seats`) instead of being sent away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.errors import Overloaded
from orchestrator.transports.seats import Seats


class WaitingRoom:
    """Seats for all, fewer for one tenant: whoever has as many as a tenant may have keeps nobody else from the rest.
    Bounded by whoever lets people in."""

    def __init__(self, most: int, most_of_a_tenant: int) -> None:
        self._seats = Seats(most, most_of_a_tenant, "all seats are taken")
        self._left = asyncio.Event()

    @asynccontextmanager
    async def seat(self, tenant: str) -> AsyncIterator[None]:
        """Waits for a seat and holds it; who came first is asked first. Cancelling the waiting loses nothing."""
        while True:
            try:
                self._seats.take(tenant)
                break
            except Overloaded:
                await self._left.wait()
        try:
            yield
        finally:
            self._seats.leave(tenant)
            self._left.set()  # everybody who waits looks again
            self._left = asyncio.Event()
