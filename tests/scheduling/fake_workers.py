"""Workers that do nothing by themselves: a test says what they report and when they die."""

from collections.abc import Mapping, Sequence

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.kinds import BATCHED_KINDS
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import Report, WorkKind
from orchestrator.scheduling.worker_ports import WorkerEvents


class FakeWorkers:
    """Keeps what it was sent, in order, and what it was told to cancel."""

    def __init__(self, **slots: FreeSlots) -> None:
        self.slots = dict(slots)
        self.events: WorkerEvents | None = None
        self.sent: list[tuple[str, list[str]]] = []
        self.cancelled: list[tuple[str, str]] = []
        self.gone: set[WorkKind] = set()
        self.holding: dict[str, set[str]] = {worker: set() for worker in slots}

    def listen(self, events: WorkerEvents) -> None:
        self.events = events

    def free(self) -> Mapping[str, FreeSlots]:
        free = {}
        for worker, slots in self.slots.items():
            held = len(self.holding[worker])
            room = 0 if slots.kind in BATCHED_KINDS and held else slots.jobs - held
            free[worker] = FreeSlots(slots.kind, room)
        return free

    def hopeless(self, kind: WorkKind) -> bool:
        return kind in self.gone

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        self.sent.append((worker_id, [job.id for job in jobs]))
        self.holding[worker_id] |= {job.id for job in jobs}

    def cancel(self, worker_id: str, job_id: str) -> None:
        self.cancelled.append((worker_id, job_id))

    def report(self, worker_id: str, report: Report) -> None:
        """The worker reports; the last report of a job frees its slot."""
        assert self.events is not None
        self.events.reported(worker_id, report)
        if ends_a_job(report):
            self.holding[worker_id].discard(report.job_id)
            self.events.freed()

    def die(self, worker_id: str) -> None:
        """The worker is lost and back at once, empty."""
        assert self.events is not None
        self.holding[worker_id].clear()
        self.events.lost(worker_id)
        self.events.freed()
