"""What waits to be sent is bounded, and whoever sends it holds up nobody."""

import threading
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.observability.faults import FAULTS
from orchestrator.telemetry.shipper import Shipper, Waiting

LONG_S = 30.0


@dataclass(frozen=True)
class Heavy:
    weight: int


@given(st.lists(st.one_of(st.integers(0, 40).map(Heavy), st.integers(1, 30)), max_size=100))
def test_waiting_is_bounded_and_counts_what_it_drops(steps: list[Heavy | int]) -> None:
    """What was put is there, was taken or was counted, and is never more than the bound."""
    waiting: Waiting[Heavy] = Waiting(most=50)
    put = taken = 0
    for step in steps:
        if isinstance(step, Heavy):
            put += max(1, step.weight)
            waiting.put(step)
        else:
            taken += sum(max(1, one.weight) for one in waiting.take(step))
        assert waiting.weight <= 50
        assert put == taken + waiting.weight + waiting.dropped


def test_waiting_gives_the_oldest_first_and_at_least_one() -> None:
    """One that is larger than was asked for goes alone."""
    waiting: Waiting[Heavy] = Waiting(most=100)
    for weight in (40, 5, 5):
        waiting.put(Heavy(weight))
    assert waiting.take(10) == [Heavy(40)]
    assert waiting.take(10) == [Heavy(5), Heavy(5)]
    assert waiting.take(10) == []


def test_shipper_sends_again_and_again_and_once_more_at_the_end() -> None:
    """What was put just before the end is sent too."""
    sent = threading.Semaphore(0)
    count = 0

    def send() -> bool:
        nonlocal count
        count += 1
        sent.release()
        return True

    shipper = Shipper("test", send, every_s=0.001)
    shipper.start()
    for _ in range(3):
        assert sent.acquire(timeout=LONG_S)
    shipper.stop()
    assert shipper.join(LONG_S)
    before = count
    assert before >= 4
    idle = Shipper("test", send, every_s=LONG_S * 100)
    idle.start()
    idle.stop()
    assert idle.join(LONG_S)
    assert count == before + 1


def test_shipper_whose_receiver_hangs_is_not_waited_for() -> None:
    """`join` returns when its time is over; the thread ends with what it waits for."""
    hanging, let_go = threading.Event(), threading.Event()

    def send() -> bool:
        hanging.set()
        return let_go.wait(LONG_S)

    shipper = Shipper("test", send, every_s=0.001)
    shipper.start()
    assert hanging.wait(LONG_S)
    shipper.stop()
    assert not shipper.join(0.01)
    let_go.set()
    assert shipper.join(LONG_S)


def test_shipper_says_once_that_nothing_is_taken_and_once_that_it_is_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A collector that is down for a day costs two lines, not one per batch."""
    caplog.set_level("INFO")
    answers = iter([True, False, False, False, True, True])
    done = threading.Event()

    def send() -> bool:
        answer = next(answers, None)
        if answer is None:
            done.set()
        return answer is not False

    shipper = Shipper("traces", send, every_s=0.001)
    shipper.start()
    assert done.wait(LONG_S)
    shipper.stop()
    assert shipper.join(LONG_S)
    assert [record.levelname for record in caplog.records if "taken" in record.message] == ["WARNING", "INFO"]


def test_shipper_that_was_never_started_ends_at_once() -> None:
    """A server that could not listen stops its telemetry too."""
    shipper = Shipper("test", lambda: True, every_s=1)
    shipper.stop()
    assert shipper.join(0)


def test_shipper_goes_on_after_a_fault_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """What nobody foresaw costs what it was sending, not all that follows; it is told and counted."""
    before = FAULTS.counts().get("broken", 0)
    calls = 0
    done = threading.Event()

    def send() -> bool:
        nonlocal calls
        calls += 1
        if calls <= 2:
            raise KeyError("nothing foreseen")
        done.set()
        return True

    shipper = Shipper("broken", send, every_s=0.001)
    shipper.start()
    assert done.wait(LONG_S)
    shipper.stop()
    assert shipper.join(LONG_S)
    assert FAULTS.counts()["broken"] == before + 2
    assert [record.name for record in caplog.records if record.exc_info] == ["chorale.faults"]
