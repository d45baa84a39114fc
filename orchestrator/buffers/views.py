"""Bytes that wait in order, as views of where they lie already (heart): nothing is copied, neither in nor out."""

from collections import deque

from orchestrator.errors import Overloaded

MAX_VIEWS = 65_536
"""Views that wait at most, however few bytes they show."""

_RETRY_AFTER_S = 1.0

Bytes = bytes | bytearray | memoryview


class Views:
    """How many bytes may wait is for the owner to say; in how many pieces, `MAX_VIEWS` says. Full means: refused.

    Who puts bytes in gives them away: they stay as they are until they were taken and used.
    """

    __slots__ = ("_size", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[memoryview] = deque(maxlen=MAX_VIEWS)
        self._size = 0

    def __len__(self) -> int:
        """How many bytes wait."""
        return self._size

    @property
    def is_full(self) -> bool:
        """Says whether another view would be refused."""
        return len(self._waiting) == MAX_VIEWS

    def put(self, shown: Bytes) -> None:
        """Adds bytes behind the others; none are nothing to wait for. Raises `Overloaded`, and adds nothing, where it
        is full."""
        view = memoryview(shown).cast("B")
        if not view:
            return
        if self.is_full:
            raise Overloaded(f"{MAX_VIEWS} pieces wait already", _RETRY_AFTER_S)
        self._waiting.append(view)
        self._size += len(view)

    def take(self, size: int | None = None) -> memoryview:
        """Returns the next bytes that lie together, `size` of them at most; an empty view where none wait."""
        if not self._waiting:
            return _NOTHING
        view = self._waiting[0]
        if size is not None and size < len(view):
            self._waiting[0] = view[size:]
            view = view[:size]
        else:
            self._waiting.popleft()
        self._size -= len(view)
        return view

    def clear(self) -> None:
        """Lets go of all that waits."""
        self._waiting.clear()
        self._size = 0


_NOTHING = memoryview(b"")
