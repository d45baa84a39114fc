"""Which buffers the process has, how full they are and how full they may be: the live side of docs/buffers.md."""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.errors import InvalidState


@dataclass(frozen=True, slots=True)
class BufferReading:
    """One kind of buffer now, summed over all of its kind. `dropped` counts since the start."""

    items: int
    size_bytes: int
    bound_bytes: int
    dropped: int = 0


class Inventory:
    """Buffers by the names that docs/buffers.md gives them."""

    def __init__(self) -> None:
        self._readers: dict[str, Callable[[], BufferReading]] = {}

    def register(self, name: str, read: Callable[[], BufferReading]) -> None:
        """From now on `name` is asked of `read`, on the event loop, at each scrape. Raises `InvalidState` where the
        name is taken."""
        if name in self._readers:
            raise InvalidState("inventory", "registered", name)
        self._readers[name] = read

    def readings(self) -> dict[str, BufferReading]:
        return {name: read() for name, read in self._readers.items()}
