"""What a link has yet to send: a cursor into its session's log and the private messages between (a heart).

The log bounds what is numbered; private messages are bounded here. A client that makes more errors than it reads
answers is closed with 1008, one that falls behind the log's retention with 1013; the session lives on in both cases.
"""

from collections import deque
from dataclasses import dataclass

from orchestrator.sessions.links import LogEntry, LoggedEvent, SessionPort

MAX_TOLD = 256
MAX_TOLD_BYTES = 4 * 2**20
_LOOK_AHEAD = 256

FAR_BEHIND = 64
FAR_BEHIND_BYTES = 2 * 2**20
"""What may wait to be sent before a client is held back that asks for more. Far below what a session retains."""


@dataclass(frozen=True, slots=True)
class Told:
    """A private message, sent as it is."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Closing:
    """Nothing follows: the connection ends with this WebSocket code."""

    code: int
    reason: str


TOO_MANY_TOLD = Closing(1008, "Too many messages of this client are unanswered.")
FELL_BEHIND = Closing(1013, "The connection is slower than its session; connect again.")


class Outbox:
    """Puts numbered entries and private messages into one order: a message told when the log ended at n is sent after
    entry n and before entry n + 1."""

    __slots__ = ("_cursor", "_known", "_session", "_told", "_told_bytes", "has_more")

    def __init__(self, session: SessionPort) -> None:
        self._session = session
        self._cursor: int | None = None
        self._known = 0
        # Each with the number that it follows. One place is kept for the closing.
        self._told: deque[tuple[int, Told | Closing]] = deque(maxlen=MAX_TOLD + 1)
        self._told_bytes = 0
        self.has_more = False
        """Whether the last `take` stopped at a bound."""

    @property
    def told(self) -> tuple[int, int]:
        """Private messages that wait: how many, and their bytes."""
        return len(self._told), self._told_bytes

    def start(self, cursor: int) -> None:
        """Sets the number after which entries are sent. What was told before that goes first."""
        self._cursor = self._known = cursor

    @property
    def closing(self) -> Closing | None:
        """How the link is to end, once that is settled."""
        last = self._told[-1][1] if self._told else None
        return last if isinstance(last, Closing) else None

    def tell(self, data: bytes) -> None:
        """Sends a private message after what the log holds now. Over the bound the link is closed instead."""
        if self.closing is not None:
            return
        if len(self._told) >= MAX_TOLD or self._told_bytes + len(data) > MAX_TOLD_BYTES:
            self.close(TOO_MANY_TOLD)
            return
        self._told_bytes += len(data)
        self._told.append((self._end(), Told(data)))

    def close(self, closing: Closing) -> None:
        """Ends the link after what the log holds now and what was told. Only the first call counts."""
        if self.closing is None:
            self._told.append((self._end(), closing))

    def take(self, limit: int, max_bytes: int = 2**63) -> list[LogEntry | Told | Closing]:
        """Returns what is to be sent next, in order, with up to `limit` entries of the log; empty if there is nothing.
        The entry with which those of the log reach `max_bytes` is the last one.

        Raises `LookupError` where the log has dropped what comes next.
        """
        return [entry for _, entry in self.take_numbered(limit, max_bytes)]

    def take_numbered(
        self, limit: int, max_bytes: int = 2**63
    ) -> list[tuple[int, LogEntry | Told | Closing]]:
        """As `take`, each with its number in the log; 0 for what is private."""
        if self._cursor is None:
            return []
        taken: list[tuple[int, LogEntry | Told | Closing]] = []
        entries = self._session.read(self._cursor, limit)
        self.has_more = len(entries) == limit
        for numbered in entries:
            number, entry = numbered
            if self._told:
                self._take_told(taken, before=number)
                if taken and isinstance(taken[-1][1], Closing):
                    return taken
            taken.append(numbered)
            self._cursor = number
            max_bytes -= len(entry.data) if isinstance(entry, LoggedEvent) else len(entry.pcm)
            if max_bytes <= 0:
                self.has_more = True
                break
        if self._told:
            self._take_told(taken, before=self._cursor + 1)
        return taken

    def is_behind(self) -> bool:
        """Tells whether the log has already dropped what comes next."""
        if self._cursor is None:
            return False
        try:
            self._session.read(self._cursor, 1)
        except LookupError:
            return True
        return False

    def is_far_behind(self) -> bool:
        """Tells whether so much waits to be sent that its client has to read some of it before it causes more."""
        if self._cursor is None:
            return False
        try:
            entries = self._session.read(self._cursor, FAR_BEHIND)
        except LookupError:
            return False  # it is closed by whoever finds that out
        return len(entries) == FAR_BEHIND or sum(_size(entry) for _, entry in entries) > FAR_BEHIND_BYTES

    def _take_told(self, taken: list[tuple[int, LogEntry | Told | Closing]], before: int) -> None:
        while self._told and self._told[0][0] < before:
            _, message = self._told.popleft()
            if isinstance(message, Told):
                self._told_bytes -= len(message.data)
            taken.append((0, message))

    def _end(self) -> int:
        """Returns the number of the log's newest entry. Each entry is looked at once, whoever asks."""
        if self._cursor is None:
            return 0
        self._known = max(self._known, self._cursor)
        try:
            while entries := self._session.read(self._known, _LOOK_AHEAD):
                self._known = entries[-1][0]
        except LookupError:
            pass  # the link has fallen behind and is about to be closed
        return self._known


def _size(entry: LogEntry) -> int:
    return len(entry.data) if isinstance(entry, LoggedEvent) else len(entry.pcm)
