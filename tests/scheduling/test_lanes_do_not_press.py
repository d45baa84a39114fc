"""What waits for its own session takes nobody's place: marks, pressure and admission do not go by it."""

import heapq

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import ms, seconds
from orchestrator.flow.limiter import Refusal
from orchestrator.flow.shedding import FULL_SERVICE
from orchestrator.flow.watermark import AdaptiveWatermark, FixedWatermark
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.serving import Serving
from tests.scheduling.jobs import job


def test_long_replies_on_a_machine_with_free_places_are_no_pressure() -> None:
    """Eight sessions with eight sentences each on sixteen places: eight stand idle, nothing is refused or left out."""
    mark = AdaptiveWatermark(512, ms(640))
    scheduler, serving = Scheduler(QueueBounds(), marks={"speech": mark}), Serving()
    running: list[tuple[int, str]] = []
    now, number = 0, 0
    while now < seconds(10):
        for session in range(8):
            lane = scheduler._lanes.get((f"s{session}", "speech"))
            for _ in range(8 - (len(lane.queued) if lane else 0)):
                number += 1
                one = job(f"j{number}", f"s{session}", "speech", 1, now, now + seconds(60))
                assert scheduler.submit(one, now) is None
        for assignment in scheduler.plan(now, {"w": FreeSlots("speech", 16 - len(running))}).assignments:
            for given_out in assignment.jobs:
                heapq.heappush(running, (now + ms(130), given_out.id))
        serving.look(scheduler.queue, now)
        assert serving.service == FULL_SERVICE
        assert scheduler.queue.waiting("speech") == 0
        now, ended = heapq.heappop(running)
        scheduler.finish(ended, now)
    assert scheduler.queue.queued("speech") >= 48


def test_the_backlog_of_one_session_teaches_a_mark_nothing() -> None:
    """Sixty jobs of one session run one after the other, whatever places there are: that is no rate and no wait."""
    mark = AdaptiveWatermark(512, ms(640))
    scheduler, now = Scheduler(QueueBounds(), marks={"llm": mark}), 0
    for n in range(60):
        scheduler.submit(job(f"j{n}", "s", "llm", 3, 0), 0)
    while scheduler.queue.queued("llm"):
        (assignment,) = scheduler.plan(now, {"w": FreeSlots("llm", 8)}).assignments
        (one,) = assignment.jobs
        now += ms(250)
        scheduler.finish(one.id, now)
    assert (mark.gain, mark.rate, mark.mark(now)) == (1.0, None, 435)


def test_a_session_that_runs_is_let_in_beyond_the_mark() -> None:
    """The second sentence of a reply is no new turn: it is refused by the bounds only, another session by the mark."""
    scheduler = Scheduler(QueueBounds(jobs=100), marks={"speech": FixedWatermark(2, 1.0)})
    scheduler.submit(job("a1", "a", "speech", 2, 0), 0)
    scheduler.plan(0, {"w": FreeSlots("speech", 1)})
    assert scheduler.submit(job("b1", "b", "speech", 2, 0), 0) is None
    assert scheduler.submit(job("c1", "c", "speech", 2, 0), 0) is None
    assert isinstance(scheduler.submit(job("d1", "d", "speech", 2, 0), 0), Refusal)
    assert scheduler.submit(job("a2", "a", "speech", 2, 0), 0) is None
    assert scheduler.submit(job("b2", "b", "speech", 2, 0), 0) is None


@given(
    st.lists(
        st.tuples(st.sampled_from("spfcl"), st.integers(0, 3), st.integers(0, 3)),
        max_size=60,
    )
)
def test_what_waits_for_a_place_is_what_could_start(steps: list[tuple[str, int, int]]) -> None:
    """After any submits, plans, ends, withdrawals and losses: as many jobs as lanes that wait with nothing at work."""
    scheduler, running = Scheduler(), list[str]()
    for number, (step, session, level) in enumerate(steps):
        match step:
            case "s":
                scheduler.submit(job(f"j{number}", f"s{session}", "llm", level, 0), number)
            case "p":
                plan = scheduler.plan(number, {"w": FreeSlots("llm", session)})
                running += [one.id for assignment in plan.assignments for one in assignment.jobs]
            case "f" if running:
                scheduler.finish(running.pop(0), number)
            case "c" if number:
                scheduler.cancel(f"j{session * 7 % number}")
            case "l":
                scheduler.lost("w", number)
                running.clear()
            case _:
                pass
        lanes = list(scheduler._lanes.values())
        ready = [lane for lane in lanes if lane.queued and lane.running is None]
        assert scheduler.queue.waiting("llm") == len(ready)
        for at in range(4):
            assert 0 <= scheduler.queue.waiting_at("llm", at) <= scheduler.queue.queued_at("llm", at)
