"""Where a worker process keeps the jobs it was given, and the border at which an engine's fault becomes a report."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from modalities.errors import EndpointFailed, ModalityError, PromptTooLong
from orchestrator.clock import MonotonicClock
from orchestrator.errors import ChoraleError, InvalidState, Overloaded
from orchestrator.scheduling.kinds import KIND_NAMES
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import CONTEXT_EXCEEDED, Failed, Report, WorkKind, kind_of
from orchestrator.workers.frames import Task, Worked

log = logging.getLogger(__name__)

Tell = Callable[[Report], None]
TellAll = Callable[[Report | Worked], None]
Now = Callable[[], int]

_CLOCK = MonotonicClock()  # one clock for all processes of a machine
Wanted = Callable[[str], bool]

MOST_TASKS = 256
"""Bound of a desk: more than any worker may hold at a time (`WorkerSpec.parallel`). Overflow is our own fault."""


class Craft(Protocol):
    """What one kind of worker can do with its engine."""

    def probe(self) -> str:
        """Does a small real job; returns what the engine is, in a few words. Raises whatever the engine raises."""
        ...

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        """Does the tasks (several only for the kinds that batch) and tells the reports of each in order.

        Stops within one step of the engine for a job that is not `wanted` any more, and need not tell its end then.
        Raises whatever the engine raises.
        """
        ...


class Desk:
    """Tasks in, batches out; safe for the threads of one process."""

    def __init__(self, batches: bool) -> None:
        self._batches = batches
        self._waiting: deque[tuple[Task, ...]] = deque(maxlen=MOST_TASKS)
        self._open: set[str] = set()
        self._cancelled: set[str] = set()
        self._changed = threading.Condition()

    def add(self, tasks: tuple[Task, ...]) -> None:
        """Lays tasks down: as one batch where the kind batches, else one by one. Raises `InvalidState` where there are
        too many: a task that is passed over in silence is waited for until its deadline."""
        batches = [tasks] if self._batches else [(task,) for task in tasks]
        with self._changed:
            if len(self._waiting) + len(batches) > MOST_TASKS:
                raise InvalidState("desk", f"{len(self._waiting)} tasks wait", f"{len(batches)} more")
            self._open.update(task.job_id for task in tasks)
            self._waiting.extend(batches)
            self._changed.notify_all()

    def cancel(self, job_id: str) -> None:
        """Marks a task as not wanted; nothing happens for one that is not here (any more)."""
        with self._changed:
            if job_id in self._open:
                self._cancelled.add(job_id)

    def wanted(self, job_id: str) -> bool:
        """Says whether anybody still waits for a task. Cheap enough for every step of an engine."""
        return job_id not in self._cancelled

    def take(self) -> tuple[Task, ...]:
        """Waits for the next batch."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            return self._waiting.popleft()

    def done(self, job_id: str) -> None:
        """Forgets a task."""
        with self._changed:
            self._open.discard(job_id)
            self._cancelled.discard(job_id)


def serve(craft: Craft, desk: Desk, tell: TellAll, now: Now = _CLOCK.now_us) -> None:
    """Does what lies on the desk, for ever. Every task ends with exactly one last report."""
    while True:
        attempt(craft, desk.take(), desk, tell, now)


def attempt(craft: Craft, tasks: Sequence[Task], desk: Desk, tell: TellAll, now: Now = _CLOCK.now_us) -> None:
    """Does one batch. Where it fails as a whole, its members are tried one by one: only the guilty one fails.

    Just before a task's last report it tells when the task was worked on, unless nobody wanted it any more by then.
    """
    left = {task.job_id: task for task in tasks}
    began_us = now()

    def tell_on(report: Report) -> None:
        if report.job_id not in left:
            return
        if ends_a_job(report):
            del left[report.job_id]
            desk.done(report.job_id)
            if report.job_id in begun:
                tell(Worked(report.job_id, began_us, now()))
        tell(report)

    wanted = [task for task in tasks if desk.wanted(task.job_id)]
    begun = {task.job_id for task in wanted}
    fault: Failed | None = None
    if wanted:
        fault = _faults_of(craft, wanted, tell_on, desk)
    if fault is not None and len(wanted) > 1:
        for task in [task for task in wanted if task.job_id in left]:
            attempt(craft, [left.pop(task.job_id)], desk, tell, now)
    for job_id in list(left):
        if fault is not None and desk.wanted(job_id):
            tell_on(Failed(job_id, fault.code, fault.message, fault.retry_after_s))
        elif desk.wanted(job_id):
            tell_on(Failed(job_id, "worker_failed", "the worker gave no answer"))
        else:
            tell_on(Failed(job_id, "cancelled", "taken back"))


def _faults_of(craft: Craft, tasks: Sequence[Task], tell: Tell, desk: Desk) -> Failed | None:
    """Runs the engine; returns what its failure means for a client, None where it did not fail."""
    try:
        craft.do(tasks, tell, desk.wanted)
    except MemoryError:
        raise  # nothing can be trusted to work after this: the process ends and is started anew
    except ChoraleError as error:
        log.warning("%s refused a job: %s", kind_of(tasks[0].work), error)
        retry_after_s = error.retry_after_s if isinstance(error, Overloaded) else 0.0
        return Failed("", error.code, str(error), retry_after_s)
    except PromptTooLong as error:
        return Failed("", CONTEXT_EXCEEDED, str(error))
    except ModalityError as error:
        log.warning("%s failed: %s", kind_of(tasks[0].work), error)
        later_s = error.retry_after_s if isinstance(error, EndpointFailed) else None
        return _failed(kind_of(tasks[0].work), later_s or 0.0)
    except Exception:
        # Engines raise whatever they like. Here it becomes a report, with the trace in the server's log.
        log.exception("%s failed over a job", kind_of(tasks[0].work))
        return _failed(kind_of(tasks[0].work))
    return None


def _failed(kind: WorkKind, later_s: float = 0.0) -> Failed:
    when = f"; try again in {later_s:.0f} s" if later_s else ""
    return Failed("", "worker_failed", f"{KIND_NAMES[kind]} failed over this request{when}", later_s)
