"""The tracks of a session's calls, as one: what is played goes to each that is there."""

import logging
from collections.abc import Iterator, Mapping

from orchestrator.buffers.output_log import OutputLog
from orchestrator.errors import Overloaded
from orchestrator.sessions.effects import FinishPlayout, FlushPlayout
from orchestrator.sessions.links import Link, LogEntry, LoggedAudio, Playout

log = logging.getLogger("chorale.session")

_AT_ONCE = 256
"""Entries of the log that are looked through at a time."""


class Playouts:
    """Looks at `links` anew each time: links come and go."""

    def __init__(self, session_id: str, links: Mapping[str, Link], log: OutputLog[LogEntry]) -> None:
        self._session_id = session_id
        self._links = links
        self._log = log
        self._before: dict[
            str, int
        ] = {}  # what earlier tracks have played of responses that this one goes on with

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

    def renewed(self) -> None:
        """A track is about to come, which has played nothing yet."""
        self._before.clear()

    def resume(self, response_id: str, start: int, stop: int) -> bool:
        """Plays what was logged of a response, between these of its samples. False where the log holds it no longer: it
        is played up to there."""
        self._before[response_id] = start
        at = start
        for audio in self._logged(response_id):
            if audio.start > at:
                break
            pcm = audio.pcm[(at - audio.start) * 2 :]
            if pcm:
                self.play(response_id, pcm)
                at += len(pcm) // 2
        return at >= stop

    def end(self, effect: FinishPlayout | FlushPlayout) -> None:
        """No more sound of a response follows; or all that is queued is dropped at once."""
        for playout in self._all():
            if isinstance(effect, FinishPlayout):
                playout.finish(effect.response_id)
            else:
                playout.flush()

    def played_samples(self, response_id: str) -> tuple[int, ...]:
        """How much of a response each track has played, with what was played before it came, in 24 kHz samples."""
        before = self._before.get(response_id, 0)
        return tuple(before + playout.played_samples(response_id) for playout in self._all())

    def _logged(self, response_id: str) -> Iterator[LoggedAudio]:
        cursor = self._log.first - 1
        while entries := self._log.read(cursor, _AT_ONCE):
            for _, entry in entries:
                if isinstance(entry, LoggedAudio) and entry.response_id == response_id:
                    yield entry
            cursor = entries[-1][0]
