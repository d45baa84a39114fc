"""Which buffers the process has, how full they are and how full they may be: the live side of docs/buffers.md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import InvalidState


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferReading:
    """One kind of buffer now, summed over all of its kind, the bounds too. 0 where it is not counted or not bounded so.
    `dropped` counts since the start what it let go or refused, being full."""

    items: int = 0
    size_bytes: int = 0
    bound_items: int = 0
    bound_bytes: int = 0
    dropped: int = 0


class Inventory:
    """Buffers by the names that docs/buffers.md gives them."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._readers: list[Callable[[], Mapping[str, BufferReading]]] = []

    def register(self, name: str, read: Callable[[], BufferReading]) -> None:
        """From now on `name` is asked of `read`, on the event loop, at each scrape. Raises `InvalidState` where the
        name is taken."""
        self.register_group((name,), lambda: {name: read()})

    def register_group(self, names: Sequence[str], read: Callable[[], Mapping[str, BufferReading]]) -> None:
        """Likewise for buffers that are read together."""
        for name in names:
            if name in self._names:
                raise InvalidState("inventory", "registered", name)
        self._names.update(names)
        self._readers.append(read)

    def readings(self) -> dict[str, BufferReading]:
        """Asks every buffer; call it on the event loop."""
        found: dict[str, BufferReading] = {}
        for read in self._readers:
            found.update(read())
        return found
