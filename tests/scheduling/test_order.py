"""The order within a level: as if every job had been weighed anew at every plan."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.clock import seconds
from orchestrator.scheduling.homes import rendezvous
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.lanes import Lane, Urgency
from orchestrator.scheduling.order import LOOKED_AT, MOVED, RENEWED, Order
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.ranking import TERMS, freshness, lateness, overdue
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.weights import FIRST, Weights
from tests.scheduling.jobs import job

TOLERANCE = FIRST[1] * 0.0445
"""What an epoch's freshness may be wrong by."""

STEPS_US = [0, 1, seconds(0.01), seconds(0.1), seconds(0.5), seconds(20), seconds(400)]


def _plan(scheduler: Scheduler, now: int, *workers: str, room: int = 1) -> dict[str, list[str]]:
    plan = scheduler.plan(now, {worker: FreeSlots("llm", room) for worker in workers})
    return {one.worker_id: [job.id for job in one.jobs] for one in plan.assignments}


def _submit(scheduler: Scheduler, *jobs: Job) -> None:
    for one in jobs:
        assert scheduler.submit(one, one.created_us) is None


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([1, 2, 3]),
    st.lists(st.tuples(st.sampled_from(STEPS_US), st.sampled_from("sstp"), st.integers(0, 29)), max_size=90),
)
def test_order_equals_weighing_everything_at_every_plan(
    level: int, steps: list[tuple[int, str, int]]
) -> None:
    """Jobs come, users give signs, time passes: what is started has the highest w of all that wait."""
    scheduler, terms, now = Scheduler(), TERMS[level], seconds(1)
    active: dict[str, int] = {}
    waiting: dict[str, Job] = {}

    def w(one: Job) -> float:
        fresh = freshness(active.get(one.session_id), now, terms)
        if overdue(one.created_us, now, terms):
            fresh = 1.0
        return FIRST[0] * lateness(one.created_us, now, terms) + FIRST[1] * fresh

    for passed, what, n in [*steps, *([(1, "p", 0)] * 30)]:
        now += passed
        if what == "s" and f"j{n}" not in waiting:
            one = job(f"j{n}", f"s{n}", level=level, created_us=now, deadline_us=now + seconds(10**6))
            _submit(scheduler, one)
            waiting[one.id] = one
        elif what == "t":
            active[f"s{n}"] = now
            scheduler.reprioritise(f"s{n}", now)
        elif what == "p":
            started = _plan(scheduler, now, "w")
            assert bool(started) == bool(waiting)
            for id in started.get("w", []):
                chosen = w(waiting.pop(id))
                assert chosen >= max(map(w, waiting.values()), default=-1e9) - TOLERANCE
                scheduler.finish(id, now)
    assert not waiting


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(-900, 900)), min_size=1, max_size=12),
    st.integers(0, 11),
)
def test_reprioritise_is_the_same_as_submitting_anew(sessions: list[tuple[int, int]], fresh: int) -> None:
    """A sign that comes while a job waits does what it would have done before."""
    orders = []
    for before in (True, False):
        scheduler, now = Scheduler(), seconds(2)
        if before:
            scheduler.reprioritise(f"s{fresh}", now)
        for n, (created_ms, due_ms) in enumerate(sessions):
            created = created_ms * 1000
            _submit(scheduler, job(f"j{n}", f"s{n}", created_us=created, due_us=created + due_ms * 1000))
        if not before:
            scheduler.reprioritise(f"s{fresh}", now)
        order = []
        while started := _plan(scheduler, now, "w"):
            order += started["w"]
            scheduler.finish(started["w"][0], now)
        orders.append(order)
    assert orders[0] == orders[1]
    assert len(orders[0]) == len(sessions)


def test_who_has_just_spoken_goes_before_who_came_a_little_earlier() -> None:
    """Freshness is worth .6 of a bound at most: less than what came long before."""
    scheduler, now = Scheduler(), seconds(1)
    _submit(scheduler, job("long", "l", created_us=0), job("early", "e", created_us=seconds(0.9)))
    _submit(scheduler, job("fresh", "f", created_us=seconds(1)))
    scheduler.reprioritise("f", now)
    assert _plan(scheduler, now, "w", room=3) == {"w": ["long", "fresh", "early"]}


def test_sessions_of_a_tier_take_turns_whatever_one_of_them_has_piled_up() -> None:
    """A backlog that came first waits from when it could run: the greedy session gets its turn, not all of them."""
    scheduler, now = Scheduler(), 0
    for session, many in (("greedy", 40), ("b", 10), ("c", 10), ("d", 10)):
        _submit(scheduler, *(job(f"{session}{n}", session, created_us=now) for n in range(many)))
        now += seconds(0.01)
    served: Counter[str] = Counter()
    for _ in range(40):
        (id,) = _plan(scheduler, now, "w")["w"]
        now += seconds(0.05)
        finished = scheduler.finish(id, now)
        assert finished is not None
        served[finished.session_id] += 1
    assert set(served.values()) == {10}


@pytest.mark.parametrize("level", [1, 2])
def test_sessions_of_a_tier_are_served_alike_though_half_of_their_users_said_nothing_for_long(
    level: int,
) -> None:
    """Twenty sessions that always have work on four places, all of it late: who asked long ago waits a little longer
    and not for ever (Jain's index of what is served is .95 or more), and nobody's job runs into its deadline."""
    scheduler, now, running = Scheduler(), 0, list[str]()
    served: Counter[str] = Counter({f"s{n}": 0 for n in range(20)})
    for n in range(20):
        scheduler.reprioritise(f"s{n}", 0)
        _submit(scheduler, job(f"{n}", f"s{n}", level=level, deadline_us=seconds(10)))
    for n in range(20, 2020):
        now += seconds(0.06)
        if n % 50 == 0:
            for session in range(0, 20, 2):
                scheduler.reprioritise(f"s{session}", now)
        running += _plan(scheduler, now, "w", room=4 - len(running)).get("w", [])
        ended = scheduler.finish(running.pop(0), now)
        assert ended is not None
        served[ended.session_id] += 1
        _submit(
            scheduler,
            job(f"{n}", ended.session_id, level=level, created_us=now, deadline_us=now + seconds(10)),
        )
        assert not scheduler.expire(now)
    assert sum(served.values()) ** 2 / (20 * sum(many**2 for many in served.values())) >= 0.95


def _served(scheduler: Scheduler, session: str, worker: str) -> None:
    _submit(scheduler, job(f"first of {session}", session))
    assert _plan(scheduler, 0, worker) == {worker: [f"first of {session}"]}
    scheduler.finish(f"first of {session}", 0)


def test_a_reply_goes_where_its_prompt_was_read_and_waits_for_nobody() -> None:
    """Though another worker is emptier; to that one where the other is busy, and once it is lost."""
    scheduler = Scheduler()
    _served(scheduler, "s", "b")
    _submit(scheduler, job("j", "s"))
    free = {"a": FreeSlots("llm", 9), "b": FreeSlots("llm", 1)}
    assert [one.worker_id for one in scheduler.plan(0, free).assignments] == ["b"]
    scheduler.finish("j", 0)
    _submit(scheduler, job("k", "s"))
    assert _plan(scheduler, 0, "a") == {"a": ["k"]}
    scheduler.finish("k", 0)
    scheduler.lost("a", 0)
    _submit(scheduler, job("l", "s"))
    free = {"a": FreeSlots("llm", 1), "b": FreeSlots("llm", 9)}
    assert [one.worker_id for one in scheduler.plan(0, free).assignments] == ["b"]


def test_a_worker_takes_of_equals_the_session_it_knows() -> None:
    """Of two that wait about as long, the one whose prompt this worker has; not before one that waits much longer."""
    for later_s, expected in ((0.05, "known"), (0.5, "other")):
        scheduler = Scheduler()
        _served(scheduler, "other", "a")
        _served(scheduler, "known", "b")
        _submit(scheduler, job("other", "other", created_us=0))
        _submit(scheduler, job("known", "known", created_us=seconds(later_s)))
        assert _plan(scheduler, seconds(0.6), "b") == {"b": [expected]}


def test_a_session_that_nobody_knows_goes_where_its_hash_belongs_among_equals() -> None:
    """Each to its own, so that a second reply finds what the first has left; memory that is free counts before it."""
    places: Counter[str] = Counter()
    for n in range(60):
        scheduler = Scheduler()
        _submit(scheduler, job("j", f"s{n}"))
        (worker,) = _plan(scheduler, 0, "a", "b", "c")
        assert worker == rendezvous(f"s{n}", ["a", "b", "c"])
        places[worker] += 1
    assert min(places.values()) > 5
    _submit(scheduler := Scheduler(), job("j", "s"))
    free = {"a": FreeSlots("llm", 1, 0.1), "b": FreeSlots("llm", 1, 0.9), "c": FreeSlots("llm", 1, 0.5)}
    assert [one.worker_id for one in scheduler.plan(0, free).assignments] == ["b"]


def test_a_little_more_free_memory_does_not_fill_a_worker_while_another_stands_empty() -> None:
    """No two processes have the same share in use to the last digit: new sessions are spread all the same."""
    scheduler, taken = Scheduler(), Counter({"a": 0, "b": 0})
    for n in range(8):
        _submit(scheduler, job(f"j{n}", f"s{n}"))
        free = {"a": FreeSlots("llm", 8 - taken["a"], 0.60), "b": FreeSlots("llm", 8 - taken["b"], 0.61)}
        taken.update(one.worker_id for one in scheduler.plan(0, free).assignments)
    assert taken == {"a": 4, "b": 4}


@given(st.sets(st.text("abc", min_size=1), min_size=2), st.lists(st.text("xyz"), max_size=20), st.data())
def test_a_worker_that_goes_moves_only_its_own_sessions(
    workers: set[str], sessions: list[str], data: st.DataObject
) -> None:
    """All others stay where they belong."""
    gone = data.draw(st.sampled_from(sorted(workers)))
    for session in sessions:
        home = rendezvous(session, workers)
        assert home == gone or rendezvous(session, workers - {gone}) == home


def test_order_looks_anew_at_a_few_only_in_one_plan() -> None:
    """However many fade or turn late at once, a plan stays short; all are done in the end, and nothing is left over."""
    order = Order({level: Weights() for level in TERMS})
    lanes = [Lane(f"s{n}", "llm") for n in range(MOVED + RENEWED + 10)]
    for n, lane in enumerate(lanes):
        order.put(lane, Urgency(3, 1, 0, n), 0, 0)
    now = seconds(100)
    order.advance(now)
    late = [bool(lane.place and lane.place.late) for lane in lanes]
    assert MOVED <= sum(late) <= MOVED + RENEWED
    for _ in range(len(lanes) // RENEWED + 2):
        order.advance(now)
    assert all(lane.place and lane.place.late and lane.place.epoch for lane in lanes)
    for lane in lanes:
        order.take(lane)
        order.take(lane)
    order.advance(now)
    assert order.levels == []
    assert not order._turns


def test_order_what_comes_and_goes_while_nobody_plans_leaves_nothing_behind() -> None:
    """No worker is free for long, users give signs and take back what they asked: times to turn late are kept for what
    stands there, and a few more."""
    order, lane = Order({level: Weights() for level in TERMS}), Lane("s", "llm")
    for n in range(10_000):
        order.put(lane, Urgency(3, 1, 0, n), 0, 0)
        order.take(lane)
    assert len(order._turns) <= LOOKED_AT + 1
