"""What becomes of jobs whose worker is lost."""

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import WorkKind
from tests.scheduling.jobs import job


def _submit(scheduler: Scheduler, *jobs: Job) -> None:
    for one in jobs:
        assert scheduler.submit(one, 0) is None


def _plan(scheduler: Scheduler, now: int = 0, kind: WorkKind = "llm", **rooms: int) -> dict[str, list[str]]:
    plan = scheduler.plan(now, {worker: FreeSlots(kind, room) for worker, room in rooms.items()})
    return {one.worker_id: [job.id for job in one.jobs] for one in plan.assignments}


def _drain(scheduler: Scheduler, kind: WorkKind = "llm") -> list[str]:
    """Runs everything one by one on a worker with one slot; returns the order."""
    order = []
    while started := _plan(scheduler, kind=kind, w=1):
        order += started["w"]
        assert scheduler.finish(started["w"][0], 0)
    return order


def test_scheduler_jobs_of_a_lost_worker_go_to_the_front_of_all_in_order() -> None:
    """They have waited once: they stand with what unblocks a session, and before it."""
    scheduler = Scheduler()
    _submit(scheduler, job("a", "a"), job("b", "b"), job("c", "c"))
    assert _plan(scheduler, w=2) == {"w": ["a", "b"]}
    _submit(scheduler, job("u", "u", level=0))
    assert scheduler.lost("w", 0) == ()
    assert _drain(scheduler) == ["a", "b", "u", "c"]


def test_scheduler_repeated_job_goes_before_what_waits_behind_it_in_its_session() -> None:
    """A loss turns no order around within a session."""
    scheduler = Scheduler()
    _submit(scheduler, job("a1", "a"), job("a2", "a"), job("a3", "a"))
    _plan(scheduler, w=1)
    scheduler.lost("w", 0)
    assert _drain(scheduler) == ["a1", "a2", "a3"]


def test_scheduler_repeated_job_goes_before_older_ones_of_its_level() -> None:
    """The front is the front, also before a job that was submitted earlier but had to wait."""
    scheduler = Scheduler()
    _submit(scheduler, job("a1", "a"), job("a2", "a"), job("b", "b"))
    assert _plan(scheduler, w1=1, w2=1) == {"w1": ["a1"], "w2": ["b"]}
    scheduler.finish("a1", 0)
    scheduler.lost("w2", 0)
    assert _drain(scheduler) == ["b", "a2"]


def test_scheduler_job_that_loses_its_worker_three_times_has_failed() -> None:
    """One run and two repeats; then it is returned as failed and forgotten."""
    scheduler = Scheduler()
    _submit(scheduler, job("a"))
    for _ in range(2):
        assert _plan(scheduler, w=1) == {"w": ["a"]}
        assert scheduler.lost("w", 0) == ()
    assert _plan(scheduler, w=1) == {"w": ["a"]}
    assert scheduler.lost("w", 0) == (job("a"),)
    assert _plan(scheduler, w=1) == {}
    assert scheduler.next_deadline() is None


def test_scheduler_gives_up_what_waits_for_a_kind_that_nobody_can_do() -> None:
    """All queued jobs of the kind leave, in order; what runs and other kinds stay, and new jobs are taken again."""
    scheduler = Scheduler()
    _submit(scheduler, job("a"), job("a2"), job("b", session="b"), job("u", work="understand"))
    assert _plan(scheduler, w=1) == {"w": ["a"]}
    assert [one.id for one in scheduler.give_up("llm")] == ["a2", "b"]
    assert scheduler.give_up("llm") == ()
    assert scheduler.statistics().failed == 2
    assert scheduler.finish("a", 0)
    assert _drain(scheduler, "understand") == ["u"]
    _submit(scheduler, job("a3"))
    assert _drain(scheduler) == ["a3"]


def test_scheduler_innocent_jobs_survive_one_that_kills_every_worker() -> None:
    """The last repeat runs alone: only the poisonous job fails, its company gets through."""
    scheduler = Scheduler()
    names = ["a", "poison", "b", "c"]
    _submit(scheduler, *(job(name, session=name, work="understand") for name in names))
    done, failed = [], []
    while started := _plan(scheduler, kind="understand", w=8).get("w"):
        if "poison" in started:
            failed += [one.id for one in scheduler.lost("w", 0)]
        else:
            done += [id for id in started if scheduler.finish(id, 0)]
    assert (done, failed) == (["a", "b", "c"], ["poison"])


def test_scheduler_last_repeat_does_not_ride_with_a_batch() -> None:
    """A suspect joins no batch that another job leads: level 1 is next, since level 0 has just had its share."""
    scheduler = Scheduler()
    _submit(scheduler, job("suspect", "s", work="understand", level=3))
    for _ in range(2):
        _plan(scheduler, kind="understand", w=8)
        scheduler.lost("w", 0)
    _submit(scheduler, *(job(name, name, work="understand", level=1) for name in ("a", "b")))
    assert _plan(scheduler, kind="understand", w=8) == {"w": ["a", "b"]}


def test_scheduler_last_repeat_waits_until_its_worker_is_empty() -> None:
    """A language worker runs several replies at a time: it takes no new ones until the lone job has had its turn."""
    scheduler = Scheduler()
    _submit(scheduler, job("busy", "b"))
    assert _plan(scheduler, w=1) == {"w": ["busy"]}
    _submit(scheduler, job("lone", "l"))
    for _ in range(2):
        assert _plan(scheduler, dying=1) == {"dying": ["lone"]}
        scheduler.lost("dying", 0)
    _submit(scheduler, job("next", "n"))
    assert _plan(scheduler, w=3) == {}, (
        "w still runs another reply, so the lone job waits and so do those behind it"
    )
    scheduler.finish("busy", 0)
    assert _plan(scheduler, w=4) == {"w": ["lone"]}
    assert _plan(scheduler, w=3) == {}, "nothing runs beside it"
    scheduler.finish("lone", 0)
    assert _plan(scheduler, w=4) == {"w": ["next"]}


def test_scheduler_last_repeat_goes_to_the_worker_that_is_empty() -> None:
    """Though another has more room: that one is not kept from work for a job that runs elsewhere."""
    scheduler = Scheduler()
    _submit(scheduler, job("busy", "b"))
    assert _plan(scheduler, w=1) == {"w": ["busy"]}
    _submit(scheduler, job("lone", "l"))
    for _ in range(2):
        assert _plan(scheduler, dying=1) == {"dying": ["lone"]}
        scheduler.lost("dying", 0)
    _submit(scheduler, job("next", "n"))
    assert _plan(scheduler, w=3, empty=1) == {"w": ["next"], "empty": ["lone"]}


def test_scheduler_losing_an_idle_or_unknown_worker_changes_nothing() -> None:
    """Only what ran there is repeated."""
    scheduler = Scheduler()
    _submit(scheduler, job("a"))
    _plan(scheduler, w=1)
    assert scheduler.lost("other", 0) == ()
    assert scheduler.worker_of("a") == "w"
