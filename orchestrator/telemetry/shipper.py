"""A thread that sends something away again and again, so that nobody else has to wait for who takes it.

Whatever the receiver does (is down, is slow, refuses), it costs this thread's time and what is dropped is counted; the
event loop only ever appends to a bounded queue.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from orchestrator.observability.faults import FAULTS

log = logging.getLogger(__name__)

MOST_SPANS = 8_192
"""Spans that wait to be sent, some 3 MB."""

_MOST_BUNDLES = MOST_SPANS


class Weighed(Protocol):
    """What has a size."""

    @property
    def weight(self) -> int: ...


T = TypeVar("T", bound=Weighed)


class Waiting(Generic[T]):
    """What waits to be sent, bounded by weight. One thread puts, one takes. Full: the new one is dropped (counted)."""

    def __init__(self, most: int = MOST_SPANS) -> None:
        self._most = most
        self._items: deque[T] = deque(maxlen=_MOST_BUNDLES)
        self._lock = threading.Lock()
        self._weight = 0
        self._dropped = 0

    @property
    def weight(self) -> int:
        return self._weight

    @property
    def dropped(self) -> int:
        """Weight of what was dropped since the start."""
        return self._dropped

    def put(self, item: T) -> None:
        weight = max(1, item.weight)
        with self._lock:
            if self._weight + weight > self._most:
                self._dropped += weight
                return
            self._items.append(item)
            self._weight += weight

    def take(self, most: int) -> list[T]:
        """Returns the oldest, of `most` in weight but at least one if there is any."""
        taken: list[T] = []
        size = 0
        with self._lock:
            while self._items and (not taken or size + self._items[0].weight <= most):
                item = self._items.popleft()
                size += max(1, item.weight)
                taken.append(item)
            self._weight -= size
        return taken

    def lose(self, weight: int) -> None:
        """Counts what was taken and could not be delivered."""
        with self._lock:
            self._dropped += weight


class Shipper:
    """Calls `send` every `every_s` seconds on a thread of its own, and once more when it is stopped.

    `send` returns whether what it had was taken; it may wait. Failing is logged when it begins and when it ends. What
    it raises is a fault of ours: told, counted (`observability.faults`), and tried again like any failure.
    """

    def __init__(self, name: str, send: Callable[[], bool], every_s: float) -> None:
        self._name = name
        self._send = send
        self._every_s = every_s
        self._stopping = threading.Event()
        self._failing = False
        self._guard = FAULTS.guard(name)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Asks it to send what is there once more and to end; does not wait. Idempotent."""
        self._stopping.set()

    def join(self, within_s: float) -> bool:
        """Waits for its end; says whether it came. A thread that still waits for its receiver ends with the process."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, within_s))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            self._ship()
        self._ship()

    def _ship(self) -> None:
        worked = False
        with self._guard:
            worked = self._send()
        if worked == self._failing:  # it changed
            self._failing = not worked
            if worked:
                log.info("%s are taken again", self._name)
            else:
                log.warning("%s are not taken; what does not fit is dropped", self._name)
