"""What a pressed server leaves out, whom it tells, and what it counts as a failed turn."""

from dataclasses import replace

import pytest

from orchestrator.buffers.input_queue import InputQueue, QueueBounds
from orchestrator.clock import ms, seconds
from orchestrator.flow.limiter import RefusalReason
from orchestrator.flow.shedding import DEGRADED_REPLY_TOKENS, FULL_SERVICE, Sheddable
from orchestrator.observability.instrument import Ending, JobRecord, TurnRecord
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.serving import LOOK_US, MOST_REMEMBERED, Serving
from orchestrator.scheduling.work import Reply, Speak, Transcribe, Understand
from tests.scheduling.jobs import job

TURN = TurnRecord(
    session_id="s",
    conversation_id="c",
    turn=1,
    tier=3,
    modality="text",
    began_us=0,
    ended_us=1,
    outcome=Ending.COMPLETED,
)
QUOTA = JobRecord(
    session_id="s",
    turn=1,
    kind="llm",
    tier=3,
    outcome=Ending.REFUSED,
    error=RefusalReason.TENANT.value,
    submitted_us=0,
    ended_us=0,
)
DRAFT = job("d", work=Transcribe(0, 1, draft=True), level=1)
GUESS = Job("g", "s", Reply(()), DRAFT.tier, 1, 0, 1, speculative=True)
SENTENCE = job("t", work=Speak("Hello."), level=1)
SILVER = job("r", work=Reply(()), level=3)
GOLD = job("r2", work=Reply(()), level=2)


def pressed(share: float) -> tuple[Serving, InputQueue]:
    """Returns a server whose language model's queue has been so full for ten seconds, with none of silver in it."""
    serving, queue = Serving(), InputQueue(QueueBounds(jobs=100, watermark=1.0))
    for _ in range(int(100 * share)):
        queue.admit("llm", 1, 0, 0, 0)
    for now in range(0, seconds(10), LOOK_US):
        serving.look(queue, now)
    return serving, queue


def left_out(serving: Serving, queue: InputQueue) -> set[str]:
    named = {"draft": DRAFT, "guess": GUESS, "sentence": SENTENCE, "silver": SILVER, "gold": GOLD}
    return {name for name, one in named.items() if serving.refuses(one, queue) is not None}


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.4, set()), (0.6, {"draft", "guess"}), (0.8, {"draft", "guess", "sentence"})],
)
def test_what_is_left_out_follows_the_pressure(share: float, expected: set[str]) -> None:
    """Drafts and guesses from half on, speech from 70 %, never gold's turns nor what a session needs to go on."""
    serving, queue = pressed(share)
    assert left_out(serving, queue) == expected
    assert serving.refuses(job("u", work=Understand("hi"), level=3), queue) is None
    assert serving.refuses(job("b", work=Reply(()), level=0), queue) is None


def test_silver_is_left_out_but_for_its_share() -> None:
    """While fewer than a seventh of what may wait is silver's, a silver turn is let in: silver stands not still."""
    serving, queue = pressed(0.88)
    assert serving.refuses(SILVER, queue) is None
    while queue.queued_at("llm", 3) < 100 / 7 and queue.admit("llm", 3, 0, 0, seconds(10)):
        assert queue.queued("llm") <= 100
    for _ in range(5):
        queue.withdrawn("llm", 1, 0)
    while queue.queued_at("llm", 3) < 100 / 7:
        assert queue.admit("llm", 3, 0, 0, seconds(10))
    refusal = serving.refuses(SILVER, queue)
    assert refusal is not None
    assert refusal.reason is RefusalReason.SHED
    assert refusal.retry_after_s >= 1
    assert serving.refuses(GOLD, queue) is None
    assert serving.statistics().shed[Sheddable.SILVER_TURN] == 1


def test_sessions_are_the_last() -> None:
    """A new session is opened at 90 % and not at 100 %."""
    assert pressed(0.9)[0].may_open() is None
    refusal = pressed(1.0)[0].may_open()
    assert refusal is not None
    assert (refusal.reason, refusal.retry_after_s) == (RefusalReason.SHED, 2.0)


def test_a_late_loop_is_pressure() -> None:
    """Queues may be empty and the loop late all the same: drafts make it later."""
    serving = Serving(lag_s=lambda: 0.06)
    queue = InputQueue()
    for now in range(0, seconds(5), LOOK_US):
        serving.look(queue, now)
    assert left_out(serving, queue) == {"draft", "guess"}


def test_without_shedding_pressure_makes_no_difference() -> None:
    """`flow.shedding: false` leaves the queue's own bound."""
    serving, queue = Serving(sheds=False), InputQueue(QueueBounds(jobs=1, watermark=1.0))
    queue.admit("llm", 3, 0, 0, 0)
    for now in range(0, seconds(5), LOOK_US):
        serving.look(queue, now)
    assert serving.service == FULL_SERVICE


def test_looks_are_no_closer_than_they_may_be() -> None:
    """A thousand jobs of one millisecond cost one look."""
    serving, queue = Serving(), InputQueue(QueueBounds(jobs=1, watermark=1.0))
    queue.admit("llm", 3, 0, 0, 0)
    assert serving.look(queue, 0), "the first look believes what it sees"
    assert not any(serving.look(InputQueue(), ms(1)) for _ in range(1_000))
    assert serving.statistics().pressure == 1


def failing(serving: Serving, outcome: Ending, error: str) -> bool:
    """A hundred turns end so; says whether the server goes easy on itself then."""
    for turn in range(100):
        serving.turn(replace(TURN, turn=turn, outcome=outcome, error=error, ended_us=ms(turn)))
    serving.look(InputQueue(), seconds(1))
    return serving.service.degraded


@pytest.mark.parametrize(
    ("outcome", "error", "degraded"),
    [
        (Ending.COMPLETED, "", False),
        (Ending.CANCELLED, "", False),
        (Ending.FAILED, "invalid_value", False),
        (Ending.FAILED, "worker_failed", True),
        (Ending.FAILED, "deadline_exceeded", True),
        (Ending.REFUSED, "rate_limit_exceeded", True),
    ],
)
def test_what_counts_as_a_failed_turn(outcome: Ending, error: str, degraded: bool) -> None:
    """What the server owes its clients, and not what they took back or asked wrongly."""
    assert failing(Serving(), outcome, error) == degraded


def test_turns_beyond_a_quota_are_no_fault_of_the_server() -> None:
    """A tenant who asks for more than his share degrades nobody's service."""
    serving = Serving()
    for turn in range(100):
        serving.job(replace(QUOTA, turn=turn))
    assert not failing(serving, Ending.REFUSED, "rate_limit_exceeded")


def test_turns_beyond_a_quota_are_remembered_within_a_bound() -> None:
    """Jobs whose turn never ends are forgotten."""
    serving = Serving()
    for turn in range(MOST_REMEMBERED + 100):
        serving.job(replace(QUOTA, turn=turn))
    assert len(serving._by_quota) == MOST_REMEMBERED
    assert failing(serving, Ending.REFUSED, "rate_limit_exceeded"), "the first hundred are forgotten"


@pytest.mark.parametrize(
    ("asked", "done"), [(None, DEGRADED_REPLY_TOKENS), (500, DEGRADED_REPLY_TOKENS), (10, 10)]
)
def test_replies_are_short_while_degraded(asked: int | None, done: int) -> None:
    """The client's own bound holds where it is lower; without degradation nothing is changed."""
    one = job("r", work=Reply((), max_tokens=asked))
    serving = Serving()
    assert serving.as_served(one) is one
    assert failing(serving, Ending.FAILED, "worker_failed")
    work = serving.as_served(one).work
    assert isinstance(work, Reply)
    assert work.max_tokens == done
    assert serving.as_served(SENTENCE) is SENTENCE
