"""Order, fairness, batches, bounds and repeats of the scheduler, one rule a test."""

from collections import Counter

import pytest

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.watermark import FixedWatermark
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Transcribe, WorkKind
from tests.scheduling.jobs import job

S = 16_000


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


# --- order ------------------------------------------------------------------------------------------------------------


def test_scheduler_first_come_is_first_served_within_a_level() -> None:
    """Sessions of one level are served in the order of submission."""
    scheduler = Scheduler()
    _submit(scheduler, *(job(f"j{n}", session=f"s{n}") for n in range(5)))
    assert _drain(scheduler) == ["j0", "j1", "j2", "j3", "j4"]


def test_scheduler_drafts_wait_for_transcripts() -> None:
    """A draft that has not begun gives way to finals that came later; among themselves drafts keep their order."""
    scheduler = Scheduler()
    for n, draft in enumerate((True, True, False, False)):
        _submit(scheduler, job(f"j{n}", f"s{n}", Transcribe(0, S, draft=draft)))
    assert _drain(scheduler, "asr") == ["j2", "j3", "j0", "j1"]


def test_scheduler_what_is_missed_first_goes_first() -> None:
    """A sentence whose reply still sounds waits for the first sentence of another; one that is due by now does not."""
    scheduler = Scheduler()
    _submit(scheduler, job("second", "a", "speech", due_us=seconds(3)))
    _submit(scheduler, job("first", "b", "speech", created_us=seconds(1), due_us=seconds(1)))
    _submit(scheduler, job("later", "c", "speech", created_us=seconds(4), due_us=seconds(4)))
    assert _drain(scheduler, "speech") == ["first", "second", "later"]


def test_scheduler_unblocking_work_goes_before_paid_tiers() -> None:
    """Level 0, then platinum, gold and silver, while each has one job."""
    scheduler = Scheduler()
    _submit(scheduler, *(job(f"j{level}", session=f"s{level}", level=level) for level in (3, 2, 1, 0)))
    assert _drain(scheduler) == ["j0", "j1", "j2", "j3"]


def test_scheduler_jobs_of_one_session_and_kind_run_one_after_the_other() -> None:
    """With room for four, the second job of a session starts when the first has ended."""
    scheduler = Scheduler()
    _submit(scheduler, job("a1", "a"), job("a2", "a"), job("b1", "b"))
    assert _plan(scheduler, w=4) == {"w": ["a1", "b1"]}
    scheduler.finish("a1", 0)
    assert _plan(scheduler, w=3) == {"w": ["a2"]}


def test_scheduler_language_and_speech_of_one_session_overlap() -> None:
    """Different kinds of one session do not wait for each other."""
    scheduler = Scheduler()
    _submit(scheduler, job("think", work="llm"), job("say", work="speech"))
    free = {"l": FreeSlots("llm", 1), "t": FreeSlots("speech", 1)}
    plan = scheduler.plan(0, free)
    assert {one.worker_id: one.jobs[0].id for one in plan.assignments} == {"l": "think", "t": "say"}


def test_scheduler_job_in_front_of_an_unblocking_one_is_as_urgent() -> None:
    """A level 0 job does not overtake its own session's silver one; it pulls it forward."""
    scheduler = Scheduler()
    _submit(scheduler, job("b", "b", level=1), job("a1", "a", level=3), job("a2", "a", level=0))
    order = _drain(scheduler)
    assert order[0] == "a1"
    assert order.index("a1") < order.index("a2")


def test_scheduler_urgency_ends_with_the_job_that_had_it() -> None:
    """Once the unblocking job is cancelled, the session stands in its own level again."""
    scheduler = Scheduler()
    _submit(scheduler, job("a1", "a", level=3), job("b", "b", level=1), job("a2", "a", level=0))
    scheduler.cancel("a2")
    assert _drain(scheduler) == ["b", "a1"]


def test_scheduler_silver_moves_however_much_platinum_waits() -> None:
    """Among 20 platinum jobs per silver one, a silver job still starts within 6 turns."""
    scheduler = Scheduler()
    _submit(scheduler, *(job(f"p{n}", session=f"p{n}", level=1) for n in range(40)))
    _submit(scheduler, *(job(f"s{n}", session=f"s{n}", level=3) for n in range(2)))
    order = _drain(scheduler)
    assert order.index("s0") < 6
    assert order.index("s1") < 12


# --- workers ----------------------------------------------------------------------------------------------------------


def test_scheduler_workers_of_one_kind_are_filled_evenly() -> None:
    """The emptiest worker gets the next job."""
    scheduler = Scheduler()
    _submit(scheduler, *(job(f"j{n}", session=f"s{n}") for n in range(4)))
    assert _plan(scheduler, w1=4, w2=2) == {"w1": ["j0", "j1", "j2"], "w2": ["j3"]}


def test_scheduler_gives_a_worker_no_more_than_it_has_room_for() -> None:
    """Bounds are exact: three jobs, room for two."""
    scheduler = Scheduler()
    _submit(scheduler, *(job(f"j{n}", session=f"s{n}") for n in range(3)))
    assert _plan(scheduler, w=2) == {"w": ["j0", "j1"]}
    assert _plan(scheduler, w=0) == {}


def test_scheduler_gives_work_only_to_workers_of_its_kind() -> None:
    """A speech worker gets no language job."""
    scheduler = Scheduler()
    _submit(scheduler, job("a", work="llm"))
    assert _plan(scheduler, kind="speech", w=1) == {}


# --- batches ----------------------------------------------------------------------------------------------------------


def _clip(id: str, length_s: float, draft: bool = False, level: int = 3) -> Job:
    return job(id, session=id, work=Transcribe(0, int(length_s * S), draft=draft), level=level)


def test_scheduler_idle_worker_does_not_wait_for_company() -> None:
    """One clip leaves alone at once."""
    scheduler = Scheduler()
    _submit(scheduler, _clip("a", 2))
    assert _plan(scheduler, kind="asr", w=8) == {"w": ["a"]}


def test_scheduler_clips_of_equal_shape_go_as_one_batch() -> None:
    """The head of the queue leads; those of its shape come along, over the heads of others."""
    scheduler = Scheduler()
    _submit(
        scheduler, _clip("a", 2), _clip("long", 12), _clip("b", 3), _clip("draft", 2, True), _clip("c", 4)
    )
    assert _plan(scheduler, kind="asr", w=8) == {"w": ["a", "b", "c"]}
    for id in "abc":
        scheduler.finish(id, 0)
    assert _plan(scheduler, kind="asr", w=8) == {"w": ["long"]}


def test_scheduler_batch_is_no_larger_than_the_room() -> None:
    """Nine clips, room for eight: the first eight."""
    scheduler = Scheduler()
    _submit(scheduler, *(_clip(f"c{n}", 2) for n in range(9)))
    assert _plan(scheduler, kind="asr", w=8) == {"w": [f"c{n}" for n in range(8)]}


def test_scheduler_two_idle_recognisers_share_what_waits() -> None:
    """Four clips on two workers are two batches of two."""
    scheduler = Scheduler()
    _submit(scheduler, *(_clip(f"c{n}", 2) for n in range(4)))
    assert _plan(scheduler, kind="asr", w1=8, w2=8) == {"w1": ["c0", "c2"], "w2": ["c1", "c3"]}


def test_scheduler_levels_share_the_places_of_batches_too() -> None:
    """All tiers wait, of one shape: of seven hundred places in batches of four they get 400, 200 and 100, give or take
    a batch; a more urgent tier does not ride along in every batch beside what it leads."""
    scheduler, served = Scheduler(), Counter[int]()
    for number in range(175):
        for level in (1, 2, 3):
            for n in range(scheduler.queue.queued_at("understand", level), 8):
                id = f"{number}.{level}.{n}"
                _submit(scheduler, job(id, id, "understand", level))
        (started,) = _plan(scheduler, kind="understand", w=4).values()
        assert len(started) == 4
        for id in started:
            ended = scheduler.finish(id, 0)
            assert ended is not None
            served[ended.level] += 1
    assert [abs(served[level] - expected) <= 4 for level, expected in ((1, 400), (2, 200), (3, 100))] == [
        True
    ] * 3


class _Waits(FixedWatermark):
    """Keeps the waits that it is told of, in milliseconds."""

    def __init__(self) -> None:
        super().__init__(64)
        self.told: list[int] = []

    def started(self, waited_us: int, now: int) -> None:
        self.told.append(waited_us // 1000)


def test_scheduler_a_job_that_waits_for_its_own_session_does_not_count_as_waiting_for_a_place() -> None:
    """A reply behind another of its session, and one whose worker was lost: the mark hears how long they waited once
    they could have run. One session with a backlog is no overload."""
    waits = _Waits()
    scheduler = Scheduler(marks={"llm": waits})
    _submit(scheduler, job("a1", "a"), job("a2", "a"), job("b", "b"))
    _plan(scheduler, seconds(0.1), w1=1, w2=1)
    scheduler.finish("a1", seconds(5))
    scheduler.lost("w2", seconds(5))
    _plan(scheduler, seconds(5.2), w1=2)
    assert waits.told == [100, 100, 200, 200]


def test_scheduler_late_drafts_say_nothing_about_a_tiers_bound() -> None:
    """They give way by rule: only transcripts that are late move the weights."""
    scheduler = Scheduler()
    for draft in (True, False):
        for n in range(60):
            created = seconds(10 * n)
            one = job(f"{draft} {n}", "s", Transcribe(0, S, draft=draft), 1, created)
            assert scheduler.submit(one, created) is None
            assert _plan(scheduler, created + seconds(5), "asr", w=1) == {"w": [one.id]}
            scheduler.finish(one.id, created + seconds(5))
        assert (scheduler._weights[1].missed > 0) is not draft


# --- ends -------------------------------------------------------------------------------------------------------------


def test_scheduler_report_of_a_job_that_is_not_running_is_unknown() -> None:
    """Late, doubled and made-up reports end nothing."""
    scheduler = Scheduler()
    _submit(scheduler, job("a"))
    assert scheduler.finish("a", 0) is None  # still queued
    _plan(scheduler, w=1)
    assert scheduler.finish("a", 0) == job("a")
    assert scheduler.finish("a", 0) is None
    assert scheduler.finish("never", 0) is None


def test_scheduler_cancelled_job_leaves_the_queue_or_names_its_worker() -> None:
    """Queued: gone. Running: the worker must be told. Unknown: nothing."""
    scheduler = Scheduler()
    _submit(scheduler, job("a", "a"), job("b", "b"))
    _plan(scheduler, w=1)
    running, queued = scheduler.cancel("a"), scheduler.cancel("b")
    assert running is not None
    assert running.worker_id == "w"
    assert queued is not None
    assert queued.worker_id is None
    assert scheduler.cancel("a") is None
    assert _plan(scheduler, w=1) == {}


def test_scheduler_session_goes_on_at_once_after_a_cancel() -> None:
    """The next reply does not wait until the engine has let go of the cancelled one."""
    scheduler = Scheduler()
    _submit(scheduler, job("a1", "a"), job("a2", "a"))
    _plan(scheduler, w=2)
    scheduler.cancel("a1")
    assert _plan(scheduler, w=1) == {"w": ["a2"]}


def test_scheduler_drops_everything_of_a_gone_session() -> None:
    """A gone caller's work leaves the queue and the engine (F-L5); others' stays."""
    scheduler = Scheduler()
    _submit(scheduler, job("a1", "a"), job("a2", "a"), job("a3", "a", work="speech"), job("b1", "b"))
    _plan(scheduler, w=1)
    gone = scheduler.drop_session("a")
    assert {(one.job.id, one.worker_id) for one in gone} == {("a1", "w"), ("a2", None), ("a3", None)}
    assert _drain(scheduler) == ["b1"]


def test_scheduler_deadline_ends_a_queued_and_a_running_job() -> None:
    """The deadline binds wherever the job is, at its very instant and not before (F-L4)."""
    scheduler = Scheduler()
    _submit(scheduler, job("a", "a", deadline_us=100), job("b", "b", deadline_us=50), job("c", "c"))
    _plan(scheduler, w=1)
    assert scheduler.next_deadline() == 50
    assert scheduler.expire(49) == ()
    assert [(one.job.id, one.worker_id) for one in scheduler.expire(100)] == [("b", None), ("a", "w")]
    assert scheduler.next_deadline() == job("c").deadline_us
    assert _drain(scheduler) == ["c"]


def test_scheduler_without_jobs_has_no_deadline() -> None:
    """Nothing needs a timer once everything has ended."""
    scheduler = Scheduler()
    assert scheduler.next_deadline() is None
    _submit(scheduler, job("a"))
    scheduler.cancel("a")
    assert scheduler.next_deadline() is None


def test_scheduler_many_ended_jobs_leave_no_deadlines_behind() -> None:
    """Memory follows the jobs that live, not those that were."""
    scheduler = Scheduler()
    for n in range(5000):
        _submit(scheduler, job(f"j{n}"))
        scheduler.cancel(f"j{n}")
        scheduler.next_deadline()
    assert len(scheduler._deadlines) < 100


def test_scheduler_id_in_use_is_our_fault() -> None:
    """Two jobs of one id could not be told apart."""
    scheduler = Scheduler()
    _submit(scheduler, job("a"))
    with pytest.raises(InvalidState):
        scheduler.submit(job("a"), 0)


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_scheduler_refuses_at_the_watermark_and_keeps_the_rest_for_unblocking_work() -> None:
    """17 of 20 places for silver, 18 and 19 with gold and platinum, 20 for level 0; running jobs take no place."""
    scheduler = Scheduler(QueueBounds(jobs=20))
    _submit(scheduler, job("running", "r"))
    _plan(scheduler, w=1)
    _submit(scheduler, *(job(f"j{n}", session=f"s{n}", level=3) for n in range(17)))
    assert scheduler.submit(job("x3", "x3", level=3), 0) is not None
    for level in (2, 1):
        _submit(scheduler, job(f"p{level}", f"p{level}", level=level))
        assert scheduler.submit(job(f"x{level}", f"x{level}", level=level), 0) is not None
    _submit(scheduler, job("u0", "u0", level=0))
    assert scheduler.submit(job("y", "y", level=0), 0) is not None
    scheduler.cancel("u0")
    _submit(scheduler, job("z", "z", level=0))


def test_scheduler_refuses_sound_beyond_its_bytes() -> None:
    """The queue is bounded in bytes too, and room comes back when a clip starts."""
    scheduler = Scheduler(QueueBounds(audio_bytes=1000, watermark=1.0))
    clip = Transcribe(0, 0, audio=bytes(600))
    _submit(scheduler, job("a", "a", work=clip))
    assert scheduler.submit(job("b", "b", work=clip), 0) is not None
    _plan(scheduler, kind="asr", w=1)
    _submit(scheduler, job("b", "b", work=clip))


def test_scheduler_one_session_cannot_fill_the_queue() -> None:
    """A lane has a bound of its own; other sessions are still let in."""
    scheduler = Scheduler(QueueBounds(lane_jobs=3))
    _submit(scheduler, *(job(f"a{n}", "a") for n in range(3)))
    assert scheduler.submit(job("a3", "a"), 0) is not None
    _submit(scheduler, job("b", "b"), job("say", "a", work="speech"))


def test_scheduler_retry_time_follows_the_queue_and_the_work() -> None:
    """Ten jobs of 2 s each, one at a time: come back in about 20 s."""
    scheduler = Scheduler(QueueBounds(jobs=10, watermark=1.0))
    for n in range(100):
        _submit(scheduler, job(f"w{n}", "w"))
        _plan(scheduler, now=seconds(10 * n), w=1)
        scheduler.finish(f"w{n}", seconds(10 * n + 2))
    _submit(scheduler, *(job(f"j{n}", session=f"s{n}") for n in range(10)))
    refusal = scheduler.submit(job("x", "x"), 0)
    assert refusal is not None
    assert refusal.retry_after_s == pytest.approx(20, rel=0.05)


def test_scheduler_statistics_count_what_happened() -> None:
    """Every fate has its count; now and ever are apart."""
    scheduler = Scheduler(QueueBounds(jobs=4, watermark=1.0))
    _submit(scheduler, *(job(f"j{n}", session=f"s{n}", level=1, deadline_us=9 + n) for n in range(4)))
    scheduler.submit(job("x", "x"), 0)
    _plan(scheduler, w=3)
    scheduler.finish("j0", 1)
    scheduler.cancel("j1")
    scheduler.lost("w", 1)
    scheduler.expire(11)
    counts = scheduler.statistics()
    assert (counts.submitted, counts.refused, counts.finished, counts.cancelled) == (4, 1, 1, 1)
    assert (counts.expired, counts.repeated, counts.failed) == (1, 1, 0)
    assert counts.queued["llm"] == 1
    assert counts.queued_by_level == {1: 1}
    assert counts.running["llm"] == 0
