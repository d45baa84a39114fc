"""What waits to be written: bounded in entries and bytes, filled by the event loop, emptied by the writer."""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_WAITING = 4_096
MOST_WAITING_BYTES = 16_777_216


@dataclass(frozen=True, slots=True)
class BacklogStatistics:
    """`refused` counts since the start."""

    entries: int
    bytes: int
    refused: int


class Backlog(Generic[T]):
    """Full means: refused, at once. Entries that end something are taken over the bound: there is one for each."""

    def __init__(self, entries: int = MOST_WAITING, size: int = MOST_WAITING_BYTES) -> None:
        self._waiting: deque[tuple[T, int]] = deque()  # bounded by `put`
        self._most = entries
        self._most_bytes = size
        self._bytes = 0
        self._refused = 0
        self._closed = False
        self._changed = threading.Condition()

    def put(self, entry: T, size: int, is_last: bool = False) -> bool:
        """Adds an entry of about `size` bytes; returns whether it was taken. Holds the lock for no longer than it takes
        to hand over a list."""
        with self._changed:
            is_full = len(self._waiting) >= self._most or self._bytes + size > self._most_bytes
            if self._closed or (is_full and not is_last):
                self._refused += 1
                return False
            self._waiting.append((entry, size))
            self._bytes += size
            self._changed.notify()
            return True

    def take(self, timeout_s: float | None) -> list[T] | None:
        """Waits for entries and returns all; none after `timeout_s`; None once closed and empty."""
        with self._changed:
            if not self._waiting and not self._closed:
                self._changed.wait(timeout_s)
            if not self._waiting:
                return None if self._closed else []
            entries = [entry for entry, _ in self._waiting]
            self._waiting.clear()
            self._bytes = 0
            return entries

    def close(self) -> None:
        """Nothing is taken in any more; what waits is still handed over. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def statistics(self) -> BacklogStatistics:
        with self._changed:
            return BacklogStatistics(len(self._waiting), self._bytes, self._refused)
