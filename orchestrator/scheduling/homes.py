"""Who still has what was heard: a score goes to the worker that did the recognition it refers to."""

from collections import OrderedDict

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Score, Transcribe, Work

HOMES_KEPT = 1024
"""Finished recognitions of which it is known who did them."""


class Homes:
    """The workers of the last recognitions, oldest first."""

    def __init__(self) -> None:
        self._homes: OrderedDict[str, str] = OrderedDict()

    def note(self, job: Job, worker_id: str) -> None:
        """A worker has done this; of work that leaves nothing behind no note is taken."""
        if isinstance(job.work, Transcribe) and not job.work.draft:
            self._homes[job.id] = worker_id
            if len(self._homes) > HOMES_KEPT:
                self._homes.popitem(last=False)

    def lose(self, worker_id: str) -> None:
        """What this worker had heard is gone: others may score it."""
        for job_id in [job_id for job_id, home in self._homes.items() if home == worker_id]:
            del self._homes[job_id]

    def allow(self, work: Work, worker_id: str) -> bool:
        """Whether this worker may do this work: a score only where its sound was heard, if that is known."""
        return not isinstance(work, Score) or self._homes.get(work.near, worker_id) == worker_id
