"""Bytes from one coroutine to another without a copy: the receiver is lent views of what the sender has."""

import asyncio
from dataclasses import dataclass

from orchestrator.buffers.views import Bytes, Views
from orchestrator.errors import InvalidState, Overloaded, SessionClosed

_RETRY_AFTER_S = 0.1


@dataclass(frozen=True, slots=True)
class HandoverStatistics:
    """`held` bytes were put in and are not done, `lent` of them are with the receiver; `most` were held at once.
    `passed`: bytes done since the beginning. `waits`: how often the sender was held back. `refused`: bytes."""

    held: int
    lent: int
    most: int
    passed: int
    waits: int
    refused: int


class Handover:
    """One sender and one receiver on one event loop. Full means: `put` waits, `put_nowait` refuses.

    Held are at most `max_bytes`, until the receiver is `done` with them, or one view that is larger. What was put in
    stays as it is until then. A cancelled `put` has put nothing, a cancelled `take` has taken nothing.
    """

    __slots__ = (
        "_changed",
        "_closed",
        "_lent",
        "_max_bytes",
        "_most",
        "_passed",
        "_refused",
        "_views",
        "_waits",
    )

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._views = Views()
        self._lent = self._most = self._passed = self._waits = self._refused = 0
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def held(self) -> int:
        """How many bytes were put in and are not done."""
        return len(self._views) + self._lent

    async def put(self, shown: Bytes) -> None:
        """Hands bytes over as soon as there is room. Raises `SessionClosed`, also while it waits."""
        size = _size(shown)
        if not self._has_room(size):
            self._waits += 1
            while not self._has_room(size):
                await self._change()
        self._put(shown)

    def put_nowait(self, shown: Bytes) -> None:
        """Hands bytes over now. Raises `Overloaded` where there is no room, and `SessionClosed`: nothing is handed over
        then."""
        size = _size(shown)
        if not self._has_room(size):
            self._refused += size
            raise Overloaded(f"{self.held} of {self._max_bytes} bytes are not taken yet", _RETRY_AFTER_S)
        self._put(shown)

    async def take(self, size: int | None = None) -> memoryview:
        """Returns the next bytes that lie together, `size` at most, as soon as there are any. They are lent until
        `done`. Raises `SessionClosed` where it is closed and nothing is left."""
        while not self._views:
            if self._closed:
                raise SessionClosed("nothing follows")
            await self._change()
        return self.take_nowait(size)

    def take_nowait(self, size: int | None = None) -> memoryview:
        """Returns what `take` would, or an empty view where that would wait."""
        view = self._views.take(size)
        self._lent += len(view)
        return view

    def done(self, view: memoryview) -> None:
        """Gives a view back: its bytes are the sender's again. Raises `InvalidState` for more than was lent."""
        if len(view) > self._lent:
            raise InvalidState("hand-over", f"{self._lent} bytes lent", f"{len(view)} done")
        self._lent -= len(view)
        self._passed += len(view)
        self._changed.set()

    def close(self) -> None:
        """Nothing more is put in; what is there can still be taken. Idempotent."""
        self._closed = True
        self._changed.set()

    def clear(self) -> None:
        """Lets go of what nobody has taken yet."""
        self._views.clear()
        self._changed.set()

    def statistics(self) -> HandoverStatistics:
        """Returns the counters, in bytes."""
        return HandoverStatistics(self.held, self._lent, self._most, self._passed, self._waits, self._refused)

    def _has_room(self, size: int) -> bool:
        if self._closed:
            raise SessionClosed("nobody takes it any more")
        held = self.held
        return not held or (held + size <= self._max_bytes and not self._views.is_full)

    def _put(self, shown: Bytes) -> None:
        self._views.put(shown)
        self._most = max(self._most, self.held)
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def _size(shown: Bytes) -> int:
    return shown.nbytes if isinstance(shown, memoryview) else len(shown)
