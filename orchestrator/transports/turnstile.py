"""Who of those that ask for work in the background is next: so many at one time, the others wait outside.

What waits here does not wait in the queue of jobs: however many requests come, they press on nobody who talks.
"""

import asyncio
import heapq
from collections.abc import Callable, Mapping

from orchestrator.scheduling.priority import LEVEL_WEIGHTS


class Turnstile:
    """Lets in as many as there are places. Tenants take turns by the weights of their levels, whatever each has
    waiting; of one tenant who came first goes first. Bounded by whoever lets people queue."""

    def __init__(self, places: Callable[[], int], weights: Mapping[int, int] = LEVEL_WEIGHTS) -> None:
        """`places` tells how many there are now, at least 1: it is asked whenever somebody comes or goes. Where they
        become fewer nobody is put out."""
        self._places = places
        self._inside = 0
        self._closed = False
        self._weights = weights
        self._queue: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._now = 0.0
        self._last: dict[str, float] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._queue)

    async def enter(self, tenant: str, level: int) -> None:
        """Waits for a place and takes it. Cancelling the waiting loses nothing."""
        if self._closed or (not self._queue and self._inside < self._places()):
            self._inside += 1
            return
        place = max(self._now, self._last.get(tenant, 0.0)) + 1.0 / self._weights[level]
        self._last[tenant] = place
        self._count += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (place, self._count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            else:
                self._queue = [one for one in self._queue if one[2] is not turn]
                heapq.heapify(self._queue)
            raise

    def leave(self) -> None:
        """Gives a place back; the next one has it at once."""
        self._inside -= 1
        while self._queue and self._inside < self._places():
            self._now, _, turn = heapq.heappop(self._queue)
            self._inside += 1
            turn.set_result(None)
        if not self._queue:
            self._now = 0.0
            self._last.clear()

    def close(self) -> None:
        """Lets everybody in, at once and from now on: nobody is to wait for what will not be done."""
        self._closed = True
        while self._queue:
            self._inside += 1
            heapq.heappop(self._queue)[2].set_result(None)
