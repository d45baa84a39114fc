"""When links are told of a reply's words: at once, and gathered where words come faster than anybody sees them.

A word costs a link a write, and that a system call: more than the word's whole way through the session. So what comes
within `GATHER_US` after the last write waits for its end, or for `GATHER_WORDS` of them; the first word of a reply, and
every word of a model that writes fewer than a hundred a second, goes at once. Everything else that happens in a session
wakes its links as it happens, and takes the words before it along.
"""

import asyncio
from collections.abc import Callable

from orchestrator.clock import US_PER_S

GATHER_US = 10_000
"""Shorter than one picture of a screen (16.7 ms)."""

GATHER_WORDS = 32


class Waking:
    """Calls `wake` for words: not before the turn of the loop that brought them is over, unless there are many."""

    __slots__ = ("_handle", "_wake", "_woke_us", "_words")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._woke_us = -GATHER_US
        self._words = 0
        self._handle: asyncio.Handle | None = None

    def word(self, now: int) -> None:
        """A word is in the log at session time `now` (µs)."""
        self._words += 1
        if self._handle is None:
            loop = asyncio.get_running_loop()
            wait_us = self._woke_us + GATHER_US - now
            if wait_us <= 0:
                self._handle = loop.call_soon(self._ring)
            else:
                self._handle = loop.call_later(wait_us / US_PER_S, self._ring)
        elif self._words >= GATHER_WORDS:
            self._handle.cancel()
            self._ring()

    def woke(self, now: int) -> None:
        """Links have been woken for all that the log holds at `now`."""
        self._woke_us = now
        self._words = 0

    def close(self) -> None:
        """Calls nobody any more. Idempotent."""
        if self._handle is not None:
            self._handle.cancel()

    def _ring(self) -> None:
        self._handle = None
        self._words = 0
        self._wake()
