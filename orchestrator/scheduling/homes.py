"""Who still has what: a score goes to the worker that heard its sound; a session's replies are better made where its
prompt has been read."""

from collections import OrderedDict
from collections.abc import Collection
from hashlib import blake2b

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Score, Transcribe, Work, WorkKind

HOMES_KEPT = 1024
"""Finished recognitions of which it is known who did them."""

SESSIONS_KEPT = 4096
"""Sessions of which it is known who has their state."""

HAVE_STATE: frozenset[WorkKind] = frozenset({"llm"})
"""Kinds whose workers keep something of a session: of a prompt that was read before, the end alone is read."""


class Homes:
    """The workers of the last recognitions, oldest first."""

    def __init__(self) -> None:
        self._homes: OrderedDict[str, str] = OrderedDict()
        self._warm: OrderedDict[tuple[str, WorkKind], str] = OrderedDict()

    def note(self, job: Job, worker_id: str) -> None:
        """A worker has done this; of work that leaves nothing behind no note is taken."""
        if isinstance(job.work, Transcribe) and not job.work.draft:
            self._homes[job.id] = worker_id
            if len(self._homes) > HOMES_KEPT:
                self._homes.popitem(last=False)
        if job.kind in HAVE_STATE:
            self._warm[job.session_id, job.kind] = worker_id
            self._warm.move_to_end((job.session_id, job.kind))
            if len(self._warm) > SESSIONS_KEPT:
                self._warm.popitem(last=False)

    def warm(self, session_id: str, kind: WorkKind) -> str | None:
        """Returns the worker that did a session's last work of a kind that keeps state; None where none is known."""
        return self._warm.get((session_id, kind))

    def forget(self, session_id: str) -> None:
        """A session is gone."""
        for kind in HAVE_STATE:
            self._warm.pop((session_id, kind), None)

    def lose(self, worker_id: str) -> None:
        """What this worker had heard is gone: others may score it."""
        for job_id in [job_id for job_id, home in self._homes.items() if home == worker_id]:
            del self._homes[job_id]
        for key in [key for key, home in self._warm.items() if home == worker_id]:
            del self._warm[key]

    def allow(self, work: Work, worker_id: str) -> bool:
        """Whether this worker may do this work: a score only where its sound was heard, if that is known."""
        return not isinstance(work, Score) or self._homes.get(work.near, worker_id) == worker_id


def rendezvous(session_id: str, worker_ids: Collection[str]) -> str:
    """Returns the one of these workers (not empty) where a session belongs that none of them knows.

    Each worker's hash with the session is drawn and the highest wins: when a worker comes or goes, no session moves but
    to it or from it.
    """
    return max(worker_ids, key=lambda id: blake2b(f"{session_id}\n{id}".encode(), digest_size=8).digest())
