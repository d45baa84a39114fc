"""Whatever happens in whatever order: every job ends once, none overtakes, none starves, no bound is passed."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.scheduling.batching import shape_of
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.kinds import BATCHED_KINDS, KINDS
from orchestrator.scheduling.lanes import REPEATS
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import WorkKind
from tests.scheduling.jobs import job

BOUNDS = QueueBounds(jobs=12, lane_jobs=4)
MARK = 10
TOPS = (12, 11, 10, 9)
"""Of twelve places: how many each level may take with the others."""
WORKERS: dict[str, FreeSlots] = {
    "asr1": FreeSlots("asr", 3),
    "asr2": FreeSlots("asr", 3),
    "llm": FreeSlots("llm", 3),
    "speech": FreeSlots("speech", 1),
    "understand": FreeSlots("understand", 4),
}


class SchedulerMachine(RuleBasedStateMachine):
    """A simple model beside the real thing: sets of job ids, and lists of what was started and ended."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(BOUNDS)
        self.now = 0
        self.jobs: dict[str, Job] = {}
        self.waiting: list[str] = []
        self.running: dict[str, str] = {}
        self.losses: dict[str, int] = {}
        self.ended: set[str] = set()

    def _end(self, id: str) -> None:
        assert id not in self.ended, "a job ends once"
        self.ended.add(id)
        self.running.pop(id, None)
        if id in self.waiting:
            self.waiting.remove(id)

    def _lane(self, id: str) -> tuple[str, WorkKind]:
        return self.jobs[id].session_id, self.jobs[id].kind

    @rule(
        session=st.sampled_from("abcd"),
        kind=st.sampled_from(KINDS),
        level=st.integers(0, 3),
        ttl=st.integers(0, 9),
    )
    def submit(self, session: str, kind: WorkKind, level: int, ttl: int) -> None:
        one = job(f"j{len(self.jobs):03d}", session, kind, level, self.now, self.now + ttl)
        in_lane = sum(self._lane(id) == (session, kind) for id in self.waiting)
        of_kind = [self.jobs[id].level for id in self.waiting if self.jobs[id].kind == kind]
        above = sum(one <= level for one in of_kind)
        below = min(len(of_kind) - above, TOPS[level + 1] if level < 3 else 0)
        full = above + below >= TOPS[level] or (level > 0 and above >= MARK) or in_lane >= BOUNDS.lane_jobs
        refusal = self.scheduler.submit(one, self.now)
        assert (refusal is not None) == full
        if refusal is None:
            self.jobs[one.id] = one
            self.waiting.append(one.id)

    @rule()
    def plan(self) -> None:
        load = {worker: sum(at == worker for at in self.running.values()) for worker in WORKERS}
        free = {}
        for worker, slots in WORKERS.items():
            busy_batch = slots.kind in BATCHED_KINDS and load[worker] > 0
            free[worker] = FreeSlots(slots.kind, 0 if busy_batch else slots.jobs - load[worker])
        for assignment in self.scheduler.plan(self.now, free).assignments:
            kind = WORKERS[assignment.worker_id].kind
            assert len(assignment.jobs) <= free[assignment.worker_id].jobs
            if kind in BATCHED_KINDS:
                assert len({shape_of(one.work) for one in assignment.jobs}) == 1
            for one in assignment.jobs:
                assert one.kind == kind
                self._start(one.id, assignment.worker_id)
        lone = any(count >= REPEATS for count in self.losses.values())
        for kind in KINDS:
            idle = any(
                slots.kind == kind and free[worker].jobs and load[worker] == 0
                for worker, slots in WORKERS.items()
            )
            startable = [id for id in self.waiting if self.jobs[id].kind == kind and not self._lane_runs(id)]
            used = {at for id, at in self.running.items() if self.jobs[id].kind == kind}
            unused = any(slots.kind == kind and worker not in used for worker, slots in WORKERS.items())
            assert lone or not (idle and unused and startable), "an idle worker never waits"

    def _lane_runs(self, id: str) -> bool:
        return any(self._lane(other) == self._lane(id) for other in self.running)

    def _start(self, id: str, worker: str) -> None:
        assert not self._lane_runs(id), "one at a time in a lane"
        before = [other for other in self.waiting if self._lane(other) == self._lane(id) and other < id]
        assert not before, "no overtaking"
        if self.losses.get(id, 0) >= REPEATS:
            assert worker not in self.running.values(), "the last repeat runs alone"
        self.waiting.remove(id)
        self.running[id] = worker

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.running)))
        assert self.scheduler.finish(id, self.now) == self.jobs[id]
        self._end(id)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.jobs)))
        gone = self.scheduler.cancel(id)
        assert (gone is None) == (id in self.ended)
        if gone is not None:
            assert gone.worker_id == self.running.get(id)
            self._end(id)

    @rule(session=st.sampled_from("abcd"))
    def drop_session(self, session: str) -> None:
        gone = {one.job.id for one in self.scheduler.drop_session(session)}
        alive = {*self.waiting, *self.running}
        assert gone == {id for id in alive if self.jobs[id].session_id == session}
        for id in gone:
            self._end(id)

    @rule(worker=st.sampled_from(sorted(WORKERS)))
    def lose(self, worker: str) -> None:
        had = [id for id, at in self.running.items() if at == worker]
        failed = {one.id for one in self.scheduler.lost(worker, self.now)}
        assert failed == {id for id in had if self.losses.get(id, 0) >= REPEATS}
        for id in had:
            if id in failed:
                self._end(id)
            else:
                self.losses[id] = self.losses.get(id, 0) + 1
                del self.running[id]
                self.waiting.append(id)

    @rule(pause=st.integers(0, 3))
    def expire(self, pause: int) -> None:
        self.now += pause
        due = {id for id in [*self.waiting, *self.running] if self.jobs[id].deadline_us <= self.now}
        gone = self.scheduler.expire(self.now)
        assert {one.job.id for one in gone} == due
        for one in gone:
            assert one.worker_id == self.running.get(one.job.id)
            self._end(one.job.id)

    @invariant()
    def counts_agree(self) -> None:
        counts = self.scheduler.statistics()
        assert sum(counts.queued.values()) == len(self.waiting)
        assert sum(counts.running.values()) == len(self.running)
        assert counts.submitted == len(self.waiting) + len(self.running) + len(self.ended)
        assert counts.submitted == (
            len(self.waiting)
            + len(self.running)
            + counts.finished
            + counts.cancelled
            + counts.expired
            + counts.failed
        )
        deadlines = [self.jobs[id].deadline_us for id in [*self.waiting, *self.running]]
        assert self.scheduler.next_deadline() == min(deadlines, default=None)

    def teardown(self) -> None:
        """Left alone with healthy workers, everything that waits is done: nobody starves."""
        self.losses.clear()
        for _ in range(len(self.waiting) + len(self.running) + 1):
            for id in list(self.running):
                assert self.scheduler.finish(id, self.now) is not None
                self._end(id)
            plan = self.scheduler.plan(self.now, WORKERS)
            for assignment in plan.assignments:
                for one in assignment.jobs:
                    self._start(one.id, assignment.worker_id)
        assert not self.waiting
        assert self.ended == set(self.jobs)


TestSchedulerUnderAnyInterleaving = SchedulerMachine.TestCase
TestSchedulerUnderAnyInterleaving.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
