"""A link that keeps what it is given."""

import json
from typing import Any

from orchestrator.sessions.links import LinkKind, LoggedAudio, LoggedEvent, SessionPort


class FakePlayout:
    """Keeps what it is to play; the test says how much of it has been played."""

    def __init__(self) -> None:
        self.queued: dict[str, int] = {}
        self.played = 0
        self.finished: list[str] = []
        self.flushes = 0

    def play(self, response_id: str, pcm: bytes) -> None:
        self.queued[response_id] = self.queued.get(response_id, 0) + len(pcm) // 2

    def finish(self, response_id: str) -> None:
        self.finished.append(response_id)

    def flush(self) -> None:
        self.flushes += 1

    def played_samples(self, response_id: str) -> int:
        return min(self.played, self.queued.get(response_id, 0))


class FakeLink:
    """Reads its session's log whenever it is woken, as fast as it can."""

    def __init__(self, id: str = "link", kind: LinkKind = LinkKind.WEBSOCKET) -> None:
        self.id = id
        self.kind = kind
        self.playout = FakePlayout() if kind is LinkKind.CALL else None
        self.events: list[dict[str, Any]] = []
        self.sound: list[LoggedAudio] = []
        self.closed: tuple[int, str] | None = None
        self._session: SessionPort | None = None
        self._cursor = 0

    def attach(self, session: SessionPort, after: int | None = None) -> None:
        self._cursor = session.attach(self, after)
        self._session = session
        self.wake()

    def wake(self) -> None:
        if self._session is None:
            return
        for number, entry in self._session.read(self._cursor, 1_000):
            self._cursor = number
            if isinstance(entry, LoggedEvent):
                self.events.append(json.loads(entry.data))
            else:
                self.sound.append(entry)

    def tell(self, data: bytes) -> None:
        self.events.append(json.loads(data))

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]
