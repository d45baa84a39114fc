"""What clients of `chorale bench resume` got, and how that compares."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator.clients.address import Event
from orchestrator.clients.returning import Cursor


@dataclass(slots=True)
class Received:
    """What a client got: texts by number, and what was not as it should be."""

    texts: dict[int, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    doubled: int = 0
    connections: int = 0
    last: int = 0
    _grew: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, event: Event, text: str, cursor: Cursor) -> None:
        """Books an event."""
        before = cursor.last
        if not cursor.receive(event):
            self.doubled += 1
        elif cursor.last != before:
            self.last = cursor.last
            self.texts[self.last] = text
        self.kinds[event["type"]] += 1
        self._grew.set()

    async def wait_for(self, is_so: Callable[[], bool], beside: "Sequence[asyncio.Task[None]]") -> None:
        """Returns once it is so. A task beside it that ends meanwhile has failed, and says why."""
        while not is_so():
            self._grew.clear()
            growing = asyncio.ensure_future(self._grew.wait())
            try:
                await asyncio.wait([growing, *beside], return_when=asyncio.FIRST_COMPLETED)
            finally:
                growing.cancel()
            for task in beside:
                if task.done():
                    task.result()


@dataclass(frozen=True, slots=True)
class Compared:
    """How the client whose line was cut fared, beside the other."""

    cuts: int
    connections: int
    events: int
    data_bytes: int
    lost: int
    changed: int
    doubled: int
    gaps: int

    @classmethod
    def of(cls, cuts: int, whole: Received, got: Received) -> "Compared":
        """Compares what two clients got, from the first number on that `whole` has."""
        begin = min(whole.texts)
        theirs = {number: text for number, text in got.texts.items() if number >= begin}
        return cls(
            cuts,
            got.connections,
            len(whole.texts),
            sum(map(len, whole.texts.values())),
            len(whole.texts.keys() - theirs.keys()),
            sum(whole.texts.get(number) != text for number, text in theirs.items()),
            got.doubled,
            got.kinds["chorale.gap"],
        )

    @property
    def is_equal(self) -> bool:
        return not (self.lost or self.changed or self.doubled or self.gaps)
