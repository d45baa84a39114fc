"""Tasks in a worker process: batches, cancels, and faults that become reports."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import pytest

from modalities.errors import EndpointFailed, ModalityError, PromptTooLong
from orchestrator.errors import InvalidState, Overloaded
from orchestrator.scheduling.work import Failed, Report, Transcribed, Understand
from orchestrator.workers.desk import MOST_TASKS, Desk, Tell, Wanted, attempt
from orchestrator.workers.frames import Task, Worked


def _tasks(*ids: str) -> tuple[Task, ...]:
    return tuple(Task(id, Understand(id)) for id in ids)


class _Craft:
    """Does what a function says."""

    def __init__(self, do: Callable[[Sequence[Task], Tell, Wanted], None]) -> None:
        self._do = do

    def probe(self) -> str:
        return "a craft"

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        self._do(tasks, tell, wanted)


def _answer(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
    for task in tasks:
        tell(Transcribed(task.job_id, f"in a batch of {len(tasks)}"))


def _attempt_timed(
    do: Callable[[Sequence[Task], Tell, Wanted], None], desk: Desk, *ids: str, now: Iterator[int]
) -> list[Report | Worked]:
    """What is told, with the times; each look at the clock takes the next of `now`."""
    desk.add(_tasks(*ids))
    told: list[Report | Worked] = []
    attempt(_Craft(do), desk.take(), desk, told.append, lambda: next(now))
    return told


def _attempt(do: Callable[[Sequence[Task], Tell, Wanted], None], desk: Desk, *ids: str) -> list[Report]:
    told = _attempt_timed(do, desk, *ids, now=count())
    return [one for one in told if not isinstance(one, Worked)]


def _ends(told: list[Report]) -> dict[str, str]:
    return {one.job_id: one.code if isinstance(one, Failed) else "done" for one in told}


def test_desk_hands_out_batches_or_single_tasks() -> None:
    """What was sent together stays together for the kinds that batch, and comes apart for the others."""
    together, apart = Desk(batches=True), Desk(batches=False)
    for desk in (together, apart):
        desk.add(_tasks("a", "b"))
        desk.add(_tasks("c"))
    assert [together.take() for _ in range(2)] == [_tasks("a", "b"), _tasks("c")]
    assert [apart.take() for _ in range(3)] == [_tasks("a"), _tasks("b"), _tasks("c")]


def test_desk_that_is_full_passes_no_task_over() -> None:
    """As many as a worker may hold at one time; one more is our own fault and is said, and what lies there stays."""
    desk = Desk(batches=False)
    desk.add(_tasks(*map(str, range(MOST_TASKS))))
    with pytest.raises(InvalidState):
        desk.add(_tasks("one more"))
    assert [desk.take()[0].job_id for _ in range(MOST_TASKS)] == list(map(str, range(MOST_TASKS)))


def test_desk_cancel_counts_only_for_tasks_that_are_here() -> None:
    """A cancel that comes late leaves nothing behind, so that ids do not pile up."""
    desk = Desk(batches=True)
    desk.add(_tasks("a"))
    desk.cancel("a")
    desk.cancel("never here")
    assert not desk.wanted("a")
    assert desk.wanted("never here")
    desk.done("a")
    desk.cancel("a")
    assert desk.wanted("a")
    assert (desk._open, desk._cancelled) == (set(), set())


def test_attempt_tells_when_each_task_was_worked_on_just_before_its_end() -> None:
    """The members of a batch began together and each ends with its own last report."""
    told = _attempt_timed(_answer, Desk(batches=True), "a", "b", now=iter([100, 170, 190]))
    assert told == [
        Worked("a", 100, 170),
        Transcribed("a", "in a batch of 2"),
        Worked("b", 100, 190),
        Transcribed("b", "in a batch of 2"),
    ]


def test_attempt_failed_work_is_timed_too_and_what_nobody_wanted_is_not() -> None:
    """A failure took its time; a task that was taken back before it began took none."""
    desk = Desk(batches=True)
    desk.add(_tasks("a", "b"))
    desk.cancel("b")

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        raise RuntimeError("broken")

    told: list[Report | Worked] = []
    times = iter([5, 30])
    attempt(_Craft(do), desk.take(), desk, told.append, lambda: next(times))
    assert [one for one in told if isinstance(one, Worked)] == [Worked("a", 5, 30)]
    assert _ends([one for one in told if not isinstance(one, Worked)]) == {
        "a": "worker_failed",
        "b": "cancelled",
    }


def test_attempt_tried_again_alone_is_timed_anew() -> None:
    """Where a batch failed as a whole, the time of a member is that of its own attempt."""

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        if len(tasks) > 1:
            raise RuntimeError("too many")
        _answer(tasks, tell, wanted)

    told = _attempt_timed(do, Desk(batches=True), "a", "b", now=iter([0, 10, 20, 30, 40]))
    assert [one for one in told if isinstance(one, Worked)] == [Worked("a", 10, 20), Worked("b", 30, 40)]


def test_attempt_tells_what_the_engine_tells() -> None:
    """Without faults every task ends with its own report."""
    told = _attempt(_answer, Desk(batches=True), "a", "b")
    assert told == [Transcribed("a", "in a batch of 2"), Transcribed("b", "in a batch of 2")]


def test_attempt_cancelled_tasks_do_not_reach_the_engine_and_still_end() -> None:
    """The slot must come free: a last report says that the task was taken back."""
    desk = Desk(batches=True)
    desk.add(_tasks("a", "b"))
    desk.cancel("a")
    told: list[Report] = []
    attempt(
        _Craft(_answer), desk.take(), desk, lambda one: None if isinstance(one, Worked) else told.append(one)
    )
    assert told == [Transcribed("b", "in a batch of 1"), Failed("a", "cancelled", "taken back")]


def test_attempt_engine_that_stops_for_a_cancel_ends_the_task() -> None:
    """An engine may just return when its task is not wanted any more."""
    desk = Desk(batches=False)

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        assert wanted("a")
        desk.cancel("a")
        assert not wanted("a")

    assert _ends(_attempt(do, desk, "a")) == {"a": "cancelled"}


def test_attempt_fault_in_a_batch_fails_the_guilty_only() -> None:
    """The batch is tried one by one, without what had ended already."""
    seen: list[list[str]] = []

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        ids = [task.job_id for task in tasks]
        seen.append(ids)
        if ids[0] == "a":
            tell(Transcribed("a", "first"))
        if "bad" in ids:
            raise ValueError("no")
        for id in ids:
            tell(Transcribed(id, "fine"))

    told = _attempt(do, Desk(batches=True), "a", "bad", "c")
    assert seen == [["a", "bad", "c"], ["bad"], ["c"]]
    assert _ends(told) == {"a": "done", "bad": "worker_failed", "c": "done"}
    assert len(told) == 3, "exactly one end each"


def test_attempt_engine_that_forgets_a_task_fails_it() -> None:
    """Silence is an error, never an empty result (F-L7)."""
    assert _ends(_attempt(lambda *_: None, Desk(batches=True), "a")) == {"a": "worker_failed"}


def test_attempt_second_end_of_a_task_is_not_told() -> None:
    """An engine cannot end a task twice, or tell of one that it was not given."""

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        _answer(tasks, tell, wanted)
        _answer(tasks, tell, wanted)
        tell(Transcribed("other", ""))

    assert len(_attempt(do, Desk(batches=True), "a")) == 1


def test_attempt_overload_of_a_remote_engine_keeps_its_retry_time() -> None:
    """What the engine says about coming back reaches the client."""

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        raise Overloaded("the endpoint is busy", 7.0)

    (report,) = _attempt(do, Desk(batches=False), "a")
    assert isinstance(report, Failed)
    assert (report.code, report.retry_after_s) == ("rate_limit_exceeded", 7.0)


def test_attempt_busy_endpoint_says_when_to_come_back() -> None:
    """An endpoint's own retry time reaches the client, its words do not."""

    def busy(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        raise EndpointFailed("http://inside:11434 says 429", retry_after_s=7.0)

    (failed,) = _attempt(busy, Desk(batches=False), "a")
    assert isinstance(failed, Failed)
    assert failed.retry_after_s == 7
    assert "try again in 7 s" in failed.message
    assert "inside" not in failed.message


@pytest.mark.parametrize("fault", [ModalityError("path /secret/model"), RuntimeError("path /secret/model")])
def test_attempt_fault_of_the_engine_is_told_without_its_words(fault: Exception) -> None:
    """Clients learn that it failed; paths and traces are for the log."""

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        raise fault

    (report,) = _attempt(do, Desk(batches=False), "a")
    assert isinstance(report, Failed)
    assert report.code == "worker_failed"
    assert "secret" not in report.message


def test_attempt_out_of_memory_ends_the_process() -> None:
    """Nothing can be promised after it: it travels on and the process is started anew."""

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        _attempt(do, Desk(batches=False), "a")


def test_attempt_prompt_that_does_not_fit_is_the_clients_to_know() -> None:
    """The one fault of an engine whose words are fit for a client: with a code of its own."""

    def do(tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        raise PromptTooLong("The prompt has 9 tokens; 5 fit.")

    (report,) = _attempt(do, Desk(batches=False), "a")
    assert report == Failed("a", "context_length_exceeded", "The prompt has 9 tokens; 5 fit.")
