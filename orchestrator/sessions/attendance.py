"""Who is connected to a session, and for how long somebody was (heart)."""

from collections.abc import Iterator

from orchestrator.sessions.links import WITHOUT_SOUND, LinkKind

_WITH_SOUND_AS_EVENTS = frozenset(LinkKind) - WITHOUT_SOUND - {LinkKind.CALL}


class Attendance:
    """The links of a session, by id. A sideband is a program that looks on: with it alone nobody is there."""

    def __init__(self) -> None:
        self._links: dict[str, LinkKind] = {}
        self._away_since: int | None = 0
        self._away_us = 0

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[str]:
        return iter(self._links)

    @property
    def calls(self) -> tuple[str, ...]:
        return tuple(id for id, kind in self._links.items() if kind is LinkKind.CALL)

    @property
    def speaks(self) -> bool:
        """Whether sound of the user may come from somewhere."""
        return not WITHOUT_SOUND.issuperset(self._links.values())

    @property
    def hears_by_events(self) -> bool:
        """Whether the assistant's sound goes to somebody who has no call."""
        return not _WITH_SOUND_AS_EVENTS.isdisjoint(self._links.values())

    def joined(self, link_id: str, kind: LinkKind, now: int) -> None:
        self._links[link_id] = kind
        self._look(now)

    def left(self, link_id: str, now: int) -> LinkKind | None:
        """Returns what link it was; None where there was none of this id."""
        kind = self._links.pop(link_id, None)
        self._look(now)
        return kind

    def clear(self, now: int) -> None:
        """All have left."""
        self._links.clear()
        self._look(now)

    def attended_us(self, now: int) -> int:
        """Returns for how long of the session's time somebody was there: the clock by which text is read, and sound
        heard of which nobody tells how far it was played. It stands while a client that lost its connection gets
        nothing of either."""
        return (now if self._away_since is None else self._away_since) - self._away_us

    def _look(self, now: int) -> None:
        is_away = all(kind is LinkKind.SIDEBAND for kind in self._links.values())
        if is_away and self._away_since is None:
            self._away_since = now
        elif not is_away and self._away_since is not None:
            self._away_us += now - self._away_since
            self._away_since = None
