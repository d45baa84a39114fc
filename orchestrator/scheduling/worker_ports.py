"""How the dispatcher and everything that does work see each other."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import Report, WorkKind


class WorkerEvents(Protocol):
    """What workers tell the dispatcher; called on the event loop."""

    def reported(self, worker_id: str, report: Report) -> None:
        """A worker answers. Reports of one job arrive in the order in which they were made."""
        ...

    def lost(self, worker_id: str) -> None:
        """A worker is gone with everything it had; nothing it reported arrives after this."""
        ...

    def freed(self) -> None:
        """`Workers.free` may hold more than before."""
        ...

    def gave_up(self, kind: WorkKind) -> None:
        """`Workers.hopeless` holds for a kind from now on, as far as anybody can tell."""
        ...


class Workers(Protocol):
    """Everything that does work, wherever it runs. Starting and stopping it is its owner's."""

    def listen(self, events: WorkerEvents) -> None:
        """From now on events go there."""
        ...

    def free(self) -> Mapping[str, FreeSlots]:
        """Returns what each ready worker could take now."""
        ...

    def hopeless(self, kind: WorkKind) -> bool:
        """Says whether no worker of a kind can start as things are."""
        ...

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        """Hands jobs over, at most as many as `free` promised. Never waits; a loss is told by `WorkerEvents.lost`."""
        ...

    def cancel(self, worker_id: str, job_id: str) -> None:
        """Stops a job within one step of its engine; its slot is free once the worker says so. Never waits."""
        ...
