"""Where one waits for a seat instead of being sent away."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WaitingRoom:
    """So many seats for all. A tenant may take one more for as long as it has fewer than are free (dynamic thresholds:
    Choudhury and Hahne, 1998): alone it gets half of them, and of eight three tenants that sit for long leave one to a
    fourth. Bounded by whoever lets people in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()
        self._left = asyncio.Event()

    @asynccontextmanager
    async def seat(self, tenant: str) -> AsyncIterator[None]:
        """Waits for a seat and holds it; who came first is asked first. Cancelling the waiting loses nothing."""
        while not self._may_sit(tenant):
            await self._left.wait()
        self._taken[tenant] += 1
        try:
            yield
        finally:
            self._taken[tenant] -= 1
            if not self._taken[tenant]:
                del self._taken[tenant]
            self._left.set()  # everybody who waits looks again
            self._left = asyncio.Event()

    def _may_sit(self, tenant: str) -> bool:
        return self._taken.get(tenant, 0) < self._most - self._taken.total()
