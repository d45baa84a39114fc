"""Who may wait: kind by kind up to its mark, what unblocks a session up to the bounds, and every count comes back."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from orchestrator.buffers.input_queue import InputQueue, QueueBounds
from orchestrator.clock import ms, seconds
from orchestrator.flow.watermark import LEAST_WAITING, AdaptiveWatermark, FixedWatermark


def test_one_kind_cannot_fill_the_places_of_another() -> None:
    """Recognition at its mark leaves the language model all of its places."""
    queue = InputQueue(QueueBounds(jobs=20))
    assert all(queue.admit("asr", 3, 0, 0, 0) for _ in range(17))
    assert not queue.admit("asr", 3, 0, 0, 0)
    assert all(queue.admit("llm", 3, 0, 0, 0) for _ in range(17))
    assert (queue.admitted, queue.refused) == (34, 1)


def test_each_level_has_a_mark_of_its_own_and_unblocking_work_the_bound() -> None:
    """Half of 20 places for silver, 18 and 19 with gold and platinum (each at most half), 20 with level 0."""
    queue = InputQueue(QueueBounds(jobs=20), {"llm": FixedWatermark(20, 0.5)})
    let_in = {level: sum(queue.admit("llm", level, 0, 0, 0) for _ in range(30)) for level in (3, 2, 1, 0)}
    assert let_in == {3: 10, 2: 8, 1: 1, 0: 1}
    assert not queue.admit("llm", 0, 0, 0, 0)


def test_gold_that_fills_its_places_leaves_platinum_its_own() -> None:
    """The mark counts what waits at a level and above: a rush of gold is refused at it, platinum is not."""
    queue = InputQueue(QueueBounds(jobs=100), {"llm": FixedWatermark(100, 0.2)})
    assert sum(queue.admit("llm", 2, 0, 0, 0) for _ in range(100)) == 20
    assert not queue.admit("llm", 3, 0, 0, 0)
    assert sum(queue.admit("llm", 1, 0, 0, 0) for _ in range(100)) == 20


def test_sound_of_lower_levels_leaves_the_higher_ones_their_bytes() -> None:
    """Silver stops at .7 of the bytes, gold at .8, platinum at .9; only what unblocks a session takes the rest."""
    queue = InputQueue(QueueBounds(audio_bytes=1_000, watermark=0.7))
    for level, bytes_of_all in ((3, 700), (2, 800), (1, 900), (0, 1_000)):
        while queue.admit("asr", level, 0, 50, 0):
            pass
        assert queue.audio_bytes == bytes_of_all


def test_repeats_of_lower_levels_take_no_place_of_higher_ones() -> None:
    """What a lost worker had comes back over its level's mark, and still gold, platinum and level 0 are let in."""
    queue = InputQueue(QueueBounds(jobs=20, audio_bytes=1_000))
    assert all(queue.admit("asr", 3, 0, 50, 0) for _ in range(17))
    for _ in range(10):
        queue.back("asr", 3, 50, 0)
    assert [queue.admit("asr", level, 0, 50, 0) for level in (3, 2, 1, 0)] == [False, True, True, True]


def test_a_mark_above_the_bound_lets_no_more_in() -> None:
    """The bound in jobs holds whatever a mark says, and keeps places for the levels above."""
    queue = InputQueue(QueueBounds(jobs=5), {"llm": FixedWatermark(100)})
    assert queue.mark("llm") == 2
    for level, of_all in ((3, 2), (2, 3), (1, 4), (0, 5)):
        while queue.admit("llm", level, 0, 0, 0):
            pass
        assert queue.queued("llm") == of_all


def test_a_bound_without_a_share_kept_free_is_the_same_for_all() -> None:
    """With a watermark of 1 whoever comes first gets the last place: it is asked for."""
    queue = InputQueue(QueueBounds(jobs=3, watermark=1.0), {"llm": FixedWatermark(100)})
    assert [queue.admit("llm", 3, 0, 0, 0) for _ in range(4)] == [True, True, True, False]
    assert not queue.admit("llm", 0, 0, 0, 0)


def test_a_mark_falls_where_waits_are_long() -> None:
    """An adaptive mark hears of starts and ends through the queue: slow work has fewer wait for it."""
    queue = InputQueue(QueueBounds(jobs=512), {"llm": AdaptiveWatermark(512, ms(640))})
    for n in range(435):
        assert queue.admit("llm", 3, 0, 0, 0), n
    for n in range(1, 40):
        queue.started("llm", 3, 0, ms(100 * n), ms(100 * n))
        queue.finished("llm", ms(100), ms(100 * n))
    assert queue.mark("llm") == LEAST_WAITING
    assert not queue.admit("llm", 3, 0, 0, seconds(4))


def test_pressure_is_that_of_the_fullest() -> None:
    """Half of one kind's mark and a quarter of the sound: half."""
    queue = InputQueue(QueueBounds(jobs=10, audio_bytes=1_000, watermark=1.0))
    assert queue.pressure(0) == 0
    queue.admit("asr", 3, 0, 250, 0)
    assert queue.pressure(0) == 0.25
    for _ in range(5):
        queue.admit("llm", 3, 0, 0, 0)
    assert queue.pressure(0) == 0.5


def test_expected_wait_follows_the_kinds_own_work() -> None:
    """Ten jobs of about 2 s each by two workers: ten seconds; another kind is not told of them."""
    queue = InputQueue()
    for n in range(100):
        queue.admit("llm", 3, 0, 0, seconds(2 * n))
        queue.started("llm", 3, 0, 0, seconds(2 * n))
        queue.finished("llm", seconds(2), seconds(2 * n + 2))
    for _ in range(10):
        queue.admit("llm", 3, 0, 0, seconds(300))
    assert queue.expected_wait_s("llm", 2) == pytest.approx(10, rel=0.05)
    assert queue.expected_wait_s("asr", 2) == 0.1


class QueueMachine(RuleBasedStateMachine):
    """A list of what waits beside the real thing."""

    BOUNDS = QueueBounds(jobs=8, audio_bytes=1_000, lane_jobs=3)

    def __init__(self) -> None:
        super().__init__()
        self.queue = InputQueue(self.BOUNDS, {"a": AdaptiveWatermark(8, ms(100))})
        self.waiting: list[tuple[str, int, int]] = []
        self.running: list[tuple[str, int, int]] = []
        self.now = 0

    @rule(
        kind=st.sampled_from("ab"), level=st.integers(0, 3), lane=st.integers(0, 3), size=st.integers(0, 400)
    )
    def admit(self, kind: str, level: int, lane: int, size: int) -> None:
        above = sum(one == kind and at <= level for one, at, _ in self.waiting)
        above_bytes = sum(one for _, at, one in self.waiting if at <= level)
        if self.queue.admit(kind, level, lane, size, self.now):
            assert lane < self.BOUNDS.lane_jobs
            self.waiting.append((kind, level, size))
            return
        # No refusal is the doing of what waits at lower levels: one place and 50 bytes are kept free of them.
        kept_bytes = 50 if level < 3 else 850
        assert lane >= self.BOUNDS.lane_jobs or above >= 1 or above_bytes + size > kept_bytes

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), started=st.booleans())
    def leave(self, data: st.DataObject, started: bool) -> None:
        job = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        if started:
            self.running.append(job)
            self.queue.started(*job, ms(3), self.now)
        else:
            self.queue.withdrawn(*job)

    @precondition(lambda self: self.running)
    @rule(lost=st.booleans())
    def end(self, lost: bool) -> None:
        job = self.running.pop()
        if lost and sum(kind == job[0] for kind, _, _ in self.waiting) < self.BOUNDS.jobs:
            self.waiting.append(job)
            self.queue.back(*job, self.now)
        else:
            self.queue.finished(job[0], ms(5), self.now)

    @rule(us=st.integers(0, 10**6))
    def later(self, us: int) -> None:
        self.now += us

    @invariant()
    def counts_are_exact(self) -> None:
        for kind in "ab":
            assert self.queue.queued(kind) == sum(one == kind for one, _, _ in self.waiting)
            assert self.queue.queued(kind) <= self.BOUNDS.jobs
            for level in range(4):
                there = sum((one, at) == (kind, level) for one, at, _ in self.waiting)
                assert self.queue.queued_at(kind, level) == there
        assert self.queue.audio_bytes == sum(size for _, _, size in self.waiting)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30)
