"""The heart of scheduling: which job goes to which worker, decided without waiting.

Rules, in the order in which they bind:
1. Jobs of one session and kind are a *lane*: at most one of them is with a worker, in the order of submission. They
   never overtake each other; a session's language and speech jobs are different lanes and overlap.
2. A lane stands in the level of its most urgent job: what blocks an unblocking job is as urgent as that job.
3. Levels share the workers by weight (`priority`); within a level what is wanted most is served first (`ranking`): what
   is missed longest, sessions whose user gave a sign before others. A job is missed from when it could have run, so
   sessions of a tier take turns; a sentence whose reply has sound in hand is missed later. Drafts go behind everything
   else of their level: who waits for a transcript there waits for nobody's draft that has not begun.
4. A score goes to the worker that has heard its sound, and waits for it; to any where that is lost or long ago. A reply
   is better made where its session's prompt was read before, and waits for nobody.
5. Jobs of a lost worker are as urgent as what unblocks a session, and the first of that. A job is repeated at most
   `REPEATS` times, the last time alone on its worker, so that it does not take others down with it; after that it has
   failed.
6. Every job ends exactly once: finished, withdrawn (cancelled, expired, its session gone) or failed.
"""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.buffers.input_queue import InputQueue, QueueBounds
from orchestrator.errors import InvalidState
from orchestrator.flow.limiter import Refusal
from orchestrator.flow.watermark import Watermark
from orchestrator.scheduling.choosing import Chooser
from orchestrator.scheduling.homes import SESSIONS_KEPT, Homes
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.kinds import BATCHED_KINDS, KINDS
from orchestrator.scheduling.lanes import DRAFTS, REPEATS, Draft, Entry, Lane
from orchestrator.scheduling.order import Order
from orchestrator.scheduling.plan import Assignment, FreeSlots, Plan, Withdrawn
from orchestrator.scheduling.priority import LEVEL_WEIGHTS, FairShares
from orchestrator.scheduling.ranking import TERMS
from orchestrator.scheduling.weights import Weights
from orchestrator.scheduling.work import Score, Transcribe, WorkKind


@dataclass(frozen=True, slots=True)
class SchedulerStatistics:
    """`queued`, `marks` (from where on new work is refused) and `running` are now, per kind; `queued_by_level` too;
    `weights` are those of each level now, by name. The rest counts since the start; `declined` is speculative work that
    was not taken."""

    queued: Mapping[WorkKind, int]
    marks: Mapping[WorkKind, int]
    queued_by_level: Mapping[int, int]
    weights: Mapping[int, Mapping[str, float]]
    queued_audio_bytes: int
    running: Mapping[WorkKind, int]
    submitted: int
    refused: int
    declined: int
    finished: int
    cancelled: int
    expired: int
    repeated: int
    failed: int


class Scheduler:
    """`submit` what is to be done, `plan` when workers are free, tell it how things `finish` or get `lost`."""

    def __init__(
        self,
        bounds: QueueBounds | None = None,
        weights: Mapping[int, int] = LEVEL_WEIGHTS,
        marks: Mapping[str, Watermark] | None = None,
    ) -> None:
        """`marks` say how many jobs of each kind may wait; a kind without one has a fixed share of the bounds."""
        self.queue = InputQueue(bounds, marks)
        """Who is let in, and what waits."""
        self._entries: dict[str, Entry] = {}
        self._lanes: dict[tuple[str, WorkKind], Lane] = {}
        self._weights = {level: Weights() for level in TERMS}
        self._orders = {kind: Order(self._weights) for kind in KINDS}
        self._shares = {kind: FairShares(weights) for kind in KINDS}
        self._homes = Homes()
        self._choosers = {
            kind: Chooser(kind, self._orders[kind], self._shares[kind], self._homes, self._weights)
            for kind in KINDS
        }
        self._workers_of: dict[WorkKind, set[str]] = {kind: set() for kind in KINDS}
        self._running: dict[str, dict[str, Entry]] = {}
        self._running_of: Counter[WorkKind] = Counter()
        self._active_us: OrderedDict[str, int] = OrderedDict()
        self._now = 0
        self._deadlines: list[tuple[int, int, str]] = []
        self._sequence = 0
        self._counts: Counter[str] = Counter()

    def submit(self, job: Job, now: int) -> Refusal | None:
        """Queues a job; returns a refusal where there is no room. Raises `InvalidState` for an id that is in use."""
        if job.id in self._entries:
            raise InvalidState("scheduler", "job exists", job.id)
        lane = self._lanes.get((job.session_id, job.kind))
        self._now = now
        in_lane = len(lane.queued) if lane is not None else 0
        runs = lane is not None and lane.running is not None
        if not self.queue.admit(job.kind, job.level, in_lane, _audio_bytes(job), now, runs=runs):
            return Refusal(self.queue.expected_wait_s(job.kind, self._running_of[job.kind]))
        self._sequence += 1
        entry = Entry(job, self._sequence)
        self._entries[job.id] = entry
        heapq.heappush(self._deadlines, (job.deadline_us, entry.sequence, job.id))
        self._enqueue(entry)
        return None

    def reprioritise(self, session_id: str, now: int) -> None:
        """A session's user gives a sign of life: what waits for it moves forward within its levels."""
        self._now = now
        self._active_us[session_id] = now
        self._active_us.move_to_end(session_id)
        if len(self._active_us) > SESSIONS_KEPT:
            self._active_us.popitem(last=False)
        for kind in KINDS:
            lane = self._lanes.get((session_id, kind))
            if lane is not None and lane.place is not None:
                self._place(lane, anew=True)

    def spares(self, job: Job, free: Mapping[str, FreeSlots]) -> bool:
        """Says whether a speculative job would make nobody wait: no other session's work of its kind waits, and less
        than half of the places for it are taken by others. Of the kinds that run in batches only the first counts:
        what comes next rides in the next batch whatever else is in it. What is refused is done later the ordinary way.
        """
        kind = job.kind
        lane = self._lanes.get((job.session_id, kind))
        own_queued, own_running = (len(lane.queued), lane.running is not None) if lane else (0, False)
        if self.queue.queued(kind) > own_queued:
            self._counts["declined"] += 1
            return False
        running = self._running_of[kind]
        places = running + sum(slots.jobs for slots in free.values() if slots.kind == kind)
        spares = kind in BATCHED_KINDS or 2 * (running - own_running) < places
        self._counts["declined"] += not spares
        return spares

    def plan(self, now: int, free: Mapping[str, FreeSlots]) -> Plan:
        """Gives queued jobs to workers with room. Workers of one kind are filled evenly, the emptiest first."""
        self._now = now
        drafts: dict[WorkKind, list[Draft]] = {}
        for worker_id, slots in free.items():
            self._workers_of[slots.kind].add(worker_id)
            if slots.jobs > 0 and not self._holds_a_lone_job(worker_id):
                idle = worker_id not in self._running
                drafts.setdefault(slots.kind, []).append(
                    Draft(worker_id, slots.jobs, idle, slots.free_memory)
                )
        for kind, of_kind in drafts.items():
            self._orders[kind].advance(now)
            self._fill(kind, of_kind, now)
        return Plan(
            tuple(
                Assignment(draft.worker_id, tuple(entry.job for entry in draft.entries))
                for of_kind in drafts.values()
                for draft in of_kind
                if draft.entries
            )
        )

    def finish(self, job_id: str, now: int) -> Job | None:
        """Ends a running job and returns it; None where it is not running (any more): a late or unknown report."""
        entry = self._entries.get(job_id)
        if entry is None or entry.worker_id is None:
            return None
        self._now = now
        self.queue.finished(entry.job.kind, now - entry.started_us, now)
        self._homes.note(entry.job, entry.worker_id)
        self._end(entry)
        self._counts["finished"] += 1
        return entry.job

    def cancel(self, job_id: str) -> Withdrawn | None:
        """Takes a job out, queued or running; None where there is none (any more). Its lane goes on at once."""
        entry = self._entries.get(job_id)
        if entry is None:
            return None
        self._counts["cancelled"] += 1
        return self._withdraw(entry)

    def drop_session(self, session_id: str) -> tuple[Withdrawn, ...]:
        """Takes out everything of a session."""
        self._active_us.pop(session_id, None)
        self._homes.forget(session_id)
        lanes = [lane for kind in KINDS if (lane := self._lanes.get((session_id, kind))) is not None]
        entries = [
            entry for lane in lanes for entry in ([lane.running] if lane.running else []) + lane.queued
        ]
        self._counts["cancelled"] += len(entries)
        return tuple(self._withdraw(entry) for entry in entries)

    def expire(self, now: int) -> tuple[Withdrawn, ...]:
        """Takes out every job whose deadline has come, queued or running, the earliest first."""
        self._now = now
        gone = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, _, job_id = heapq.heappop(self._deadlines)
            gone.append(self._withdraw(self._entries[job_id]))
        self._counts["expired"] += len(gone)
        return tuple(gone)

    def lost(self, worker_id: str, now: int) -> tuple[Job, ...]:
        """Queues what a lost worker had again; returns the jobs that had all their repeats and have failed."""
        self._now = now
        self._homes.lose(worker_id)
        for workers in self._workers_of.values():
            workers.discard(worker_id)
        failed = []
        for entry in list(self._running.get(worker_id, {}).values()):
            if entry.losses >= REPEATS:
                self._end(entry)
                failed.append(entry.job)
                continue
            self._stop(entry)
            entry.repeat()
            self._counts["repeated"] += 1
            self.queue.back(entry.job.kind, entry.job.level, _audio_bytes(entry.job), now)
            self._enqueue(entry)
        self._counts["failed"] += len(failed)
        return tuple(failed)

    def give_up(self, kind: WorkKind) -> tuple[Job, ...]:
        """Takes out every queued job of a kind that nobody can do, in the order of their submission."""
        hopeless = [one for one in self._entries.values() if one.job.kind == kind and one.worker_id is None]
        for entry in hopeless:
            self._end(entry)
        self._counts["failed"] += len(hopeless)
        return tuple(entry.job for entry in hopeless)

    def running_of(self, kind: WorkKind) -> int:
        """Returns how many jobs of a kind are with workers."""
        return self._running_of[kind]

    def worker_of(self, job_id: str) -> str | None:
        """Returns the worker that runs a job; None where it is queued or unknown."""
        entry = self._entries.get(job_id)
        return entry.worker_id if entry else None

    def next_deadline(self) -> int | None:
        """Returns when `expire` must be called next; None while there are no jobs."""
        heap = self._deadlines
        if len(heap) > 2 * len(self._entries) + 64:
            heap[:] = [item for item in heap if self._is_current(item)]
            heapq.heapify(heap)
        while heap and not self._is_current(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def statistics(self) -> SchedulerStatistics:
        return SchedulerStatistics(
            queued={kind: self.queue.queued(kind) for kind in KINDS},
            marks={kind: self.queue.mark(kind) for kind in KINDS},
            queued_by_level={
                level: many
                for level in LEVEL_WEIGHTS
                if (many := sum(self.queue.queued_at(kind, level) for kind in KINDS))
            },
            weights={level: weights.shares() for level, weights in self._weights.items()},
            queued_audio_bytes=self.queue.audio_bytes,
            running={kind: self._running_of[kind] for kind in KINDS},
            submitted=self.queue.admitted,
            refused=self.queue.refused,
            declined=self._counts["declined"],
            finished=self._counts["finished"],
            cancelled=self._counts["cancelled"],
            expired=self._counts["expired"],
            repeated=self._counts["repeated"],
            failed=self._counts["failed"],
        )

    # --- choosing -----------------------------------------------------------------------------------------------------

    def _fill(self, kind: WorkKind, drafts: list[Draft], now: int) -> None:
        open_drafts, chooser = list(drafts), self._choosers[kind]
        while open_drafts and self._orders[kind].levels:
            draft, entry = chooser.next(open_drafts, len(self._workers_of[kind]), now)
            if entry is not None:
                self._start(entry, draft, now)
            if entry is None or draft.room == 0:
                open_drafts.remove(draft)

    def _holds_a_lone_job(self, worker_id: str) -> bool:
        return any(entry.alone for entry in self._running.get(worker_id, {}).values())

    # --- moving -------------------------------------------------------------------------------------------------------

    def _enqueue(self, entry: Entry) -> None:
        job = entry.job
        lane = self._lanes.get((job.session_id, job.kind))
        if lane is None:
            lane = self._lanes[job.session_id, job.kind] = Lane(job.session_id, job.kind)
        # A lane runs its oldest job, so what comes back from a lost worker was submitted before all that wait in it.
        lane.queued.insert(0 if entry.losses else len(lane.queued), entry)
        if entry.losses:
            lane.free_us = self._now
        self._place(lane)

    def _start(self, entry: Entry, draft: Draft, now: int) -> None:
        lane = self._lane_of(entry)
        urgency = lane.place.urgency if lane.place else entry.urgency
        self._shares[lane.kind].charge(urgency.level)
        # A draft is late because it gives way, whatever the weights are.
        if urgency.level in TERMS and urgency.rank != DRAFTS:
            missed = now - urgency.missed_us > TERMS[urgency.level].bound_us
            self._weights[urgency.level].observe(missed=missed)
        lane.queued.remove(entry)
        lane.running = entry
        job = entry.job
        # What waited for its own session, or ran before on a worker that is lost, did not wait for a place.
        waited_us = now - max(job.created_us, job.due_us, lane.free_us)
        self.queue.started(lane.kind, job.level, _audio_bytes(job), waited_us, now)
        self._place(lane)
        entry.worker_id, entry.started_us = draft.worker_id, now
        self._running.setdefault(draft.worker_id, {})[entry.job.id] = entry
        self._running_of[lane.kind] += 1
        draft.entries.append(entry)
        draft.room = 0 if entry.alone else draft.room - 1

    def _stop(self, entry: Entry) -> None:
        """Takes a job from where it is, queued or running; its lane goes on."""
        lane = self._lane_of(entry)
        if entry.worker_id is None:
            lane.queued.remove(entry)
            self.queue.withdrawn(lane.kind, entry.job.level, _audio_bytes(entry.job))
        else:
            lane.running, lane.free_us = None, self._now
            at_worker = self._running[entry.worker_id]
            del at_worker[entry.job.id]
            if not at_worker:
                del self._running[entry.worker_id]
            entry.worker_id = None
            self._running_of[lane.kind] -= 1
        self._place(lane)
        if not lane.queued and lane.running is None:
            del self._lanes[entry.job.session_id, lane.kind]

    def _end(self, entry: Entry) -> None:
        self._stop(entry)
        del self._entries[entry.job.id]

    def _withdraw(self, entry: Entry) -> Withdrawn:
        withdrawn = Withdrawn(entry.job, entry.worker_id)
        self._end(entry)
        return withdrawn

    def _place(self, lane: Lane, *, anew: bool = False) -> None:
        """Puts a lane where it belongs in the order; one that runs or is empty belongs nowhere."""
        self._tell_behind(lane)
        urgency = lane.urgency
        if not anew and urgency == (lane.place.urgency if lane.place else None):
            return
        order = self._orders[lane.kind]
        order.take(lane)
        if urgency is not None:
            order.put(lane, urgency, self._active_us.get(lane.session_id), self._now)

    def _tell_behind(self, lane: Lane) -> None:
        """What waits for its own session takes nobody's place: admission and pressure do not go by it."""
        behind = lane.waits_for_itself
        if behind == lane.behind:
            return
        change = Counter(behind)
        change.subtract(lane.behind)
        lane.behind = behind
        for level, many in change.items():
            if many:
                self.queue.behind(lane.kind, level, many)

    def _lane_of(self, entry: Entry) -> Lane:
        return self._lanes[entry.job.session_id, entry.job.kind]

    def _is_current(self, item: tuple[int, int, str]) -> bool:
        entry = self._entries.get(item[2])
        return entry is not None and entry.sequence == item[1]


def _audio_bytes(job: Job) -> int:
    return len(job.work.audio) if isinstance(job.work, Transcribe | Score) else 0
