"""The tracks of a session's calls, as one: what is played goes to each that is there."""

import logging
from collections.abc import Iterator, Mapping

from orchestrator.errors import Overloaded
from orchestrator.sessions.links import Link, Playout

log = logging.getLogger("chorale.session")


class Playouts:
    """Looks at `links` anew each time: links come and go."""

    def __init__(self, session_id: str, links: Mapping[str, Link]) -> None:
        self._session_id = session_id
        self._links = links

    def _all(self) -> Iterator[Playout]:
        for link in self._links.values():
            if link.playout is not None:
                yield link.playout

    def play(self, response_id: str, pcm: bytes) -> None:
        """Queues sound (24 kHz int16 mono). A track that is full goes without it."""
        for playout in self._all():
            try:
                playout.play(response_id, pcm)
            except Overloaded:
                log.warning("playout full, sound dropped", extra={"session": self._session_id})

    def finish(self, response_id: str) -> None:
        """No more sound of this response follows."""
        for playout in self._all():
            playout.finish(response_id)

    def flush(self) -> None:
        """Drops what is queued at once."""
        for playout in self._all():
            playout.flush()

    def played_samples(self, response_id: str) -> tuple[int, ...]:
        """How much of a response each track has played so far, in 24 kHz samples."""
        return tuple(playout.played_samples(response_id) for playout in self._all())
