"""What Prometheus reads: the metrics as text, made on a thread, one at a time."""

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4


class Scrape:
    """Answers scrapes. Those that come while one is being answered share its answer."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, registry: CollectorRegistry, look: Callable[[], Awaitable[None]]) -> None:
        self._registry = registry
        self._look = look
        self._running: asyncio.Task[bytes] | None = None

    async def text(self) -> bytes:
        """Returns every metric as it is now. Cancelling it harms no other scrape."""
        if self._running is None:
            self._running = asyncio.create_task(self._make(), name="scrape")
            self._running.add_done_callback(self._made)
        return await asyncio.shield(self._running)

    async def _make(self) -> bytes:
        await self._look()
        return await asyncio.to_thread(generate_latest, self._registry)

    def _made(self, _: "asyncio.Task[bytes]") -> None:
        self._running = None
