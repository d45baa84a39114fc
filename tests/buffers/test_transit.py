"""Slots with versions: one claimant each, one end each, and nothing of an old version counts."""

from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from orchestrator.buffers.transit import Slot, Transit
from orchestrator.errors import InvalidState, Overloaded


def test_a_slot_goes_from_ready_over_processing_to_done() -> None:
    """One claim, one end; both a second time come to nothing and are counted."""
    transit = Transit()
    slot = transit.add("job")
    assert not transit.finish(slot), "nobody has it"
    assert transit.claim(slot, "w1")
    assert not transit.claim(slot, "w2")
    assert transit.held_by("w1") == ["job"]
    assert transit.finish(slot)
    assert not transit.finish(slot)
    transit.release(slot)
    told = transit.statistics()
    assert (told.ready, told.processing, told.done, told.stale) == (0, 0, 1, 3)


def test_what_comes_back_has_a_new_version() -> None:
    """The lost worker's end names the old version and comes to nothing; the repeat's counts."""
    transit = Transit()
    old = transit.add("job")
    transit.claim(old, "lost")
    new = transit.back(old)
    assert new == Slot(old.number, old.version + 1)
    assert transit.claim(new, "w2")
    assert not transit.finish(old)
    assert transit.finish(new)
    assert transit.held_by("lost") == transit.held_by("w2") == []


def test_a_slot_that_is_used_again_is_not_taken_for_its_last_content() -> None:
    """A late end or a second release of a job whose slot has another job now harms nobody."""
    transit = Transit(1)
    first = transit.add("a")
    transit.claim(first, "w")
    transit.release(first)
    second = transit.add("b")
    assert second.number == first.number
    assert not transit.claim(first, "w")
    assert not transit.finish(first)
    with pytest.raises(InvalidState):
        transit.release(first)
    assert transit.claim(second, "w")
    with pytest.raises(InvalidState):
        transit.back(first)


def test_slots_are_bounded() -> None:
    """Full is said, and a released slot is there again."""
    transit = Transit(2)
    slot = transit.add("a")
    transit.add("b")
    with pytest.raises(Overloaded):
        transit.add("c")
    transit.release(slot)
    transit.add("c")


def test_of_eight_threads_one_claims_a_slot() -> None:
    """Two hundred slots that eight threads claim at the same time: each has exactly one owner."""
    transit = Transit()
    slots = [transit.add(f"j{n}") for n in range(200)]
    won: list[list[Slot]] = [[] for _ in range(8)]
    start = Barrier(8)

    def claim(number: int) -> None:
        start.wait(timeout=60)
        won[number] += [slot for slot in slots if transit.claim(slot, f"worker {number}")]

    threads = [Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(slot for of_one in won for slot in of_one) == slots
    assert sum(len(transit.held_by(f"worker {n}")) for n in range(8)) == 200


class _Slow(Slot):
    """A slot whose claimant is interrupted at the last moment, while its place is looked up."""

    meanwhile: Callable[[], None] | None = None

    def __hash__(self) -> int:
        meanwhile, _Slow.meanwhile = _Slow.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().__hash__()


def test_a_claim_that_is_interrupted_is_no_second_one() -> None:
    """Between a claimant's look and its swap another one of the same name claims the slot, ends it and puts a new job
    there: the late one gets neither."""
    transit = Transit(1)
    slot, others = transit.add("a"), list[Slot]()

    def meanwhile() -> None:
        assert transit.claim(slot, "w")
        assert transit.finish(slot)
        transit.release(slot)
        others.append(transit.add("b"))

    _Slow.meanwhile = meanwhile
    assert not transit.claim(_Slow(*slot), "w")
    assert transit.held_by("w") == []
    assert transit.statistics().ready == 1
    assert transit.claim(others[0], "w")


class TransitMachine(RuleBasedStateMachine):
    """A dictionary of who has what beside the real thing; old slots are kept and tried at random."""

    WORKERS = ("w1", "w2")

    def __init__(self) -> None:
        super().__init__()
        self.transit = Transit(6)
        self.held: dict[Slot, str | None] = {}
        self.names: dict[Slot, str] = {}
        self.old: list[Slot] = []
        self.made = 0

    @rule()
    def add(self) -> None:
        if len(self.held) == 6:
            with pytest.raises(Overloaded):
                self.transit.add("more")
            return
        self.made += 1
        slot = self.transit.add(f"j{self.made}")
        assert slot not in self.old
        self.held[slot], self.names[slot] = None, f"j{self.made}"

    @precondition(lambda self: self.held)
    @rule(data=st.data(), worker=st.sampled_from(WORKERS))
    def claim(self, data: st.DataObject, worker: str) -> None:
        slot = data.draw(st.sampled_from(sorted(self.held)))
        assert self.transit.claim(slot, worker) == (self.held[slot] is None)
        self.held[slot] = self.held[slot] or worker

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(sorted(self.held)))
        assert self.transit.finish(slot) == (self.held[slot] is not None)
        self.transit.release(slot)
        del self.held[slot]
        self.old.append(slot)

    @rule(worker=st.sampled_from(WORKERS))
    def lose(self, worker: str) -> None:
        lost = [slot for slot, by in self.held.items() if by == worker]
        assert sorted(self.transit.held_by(worker)) == sorted(self.names[slot] for slot in lost)
        for slot in lost:
            del self.held[slot]
            self.old.append(slot)
            new = self.transit.back(slot)
            self.held[new], self.names[new] = None, self.names[slot]

    @precondition(lambda self: self.old)
    @rule(data=st.data())
    def try_old(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(self.old))
        assert not self.transit.claim(slot, "w1")
        assert not self.transit.finish(slot)

    @invariant()
    def counts(self) -> None:
        told = self.transit.statistics()
        assert told.processing == sum(by is not None for by in self.held.values())
        assert told.ready == sum(by is None for by in self.held.values())


TestTransitMachine = TransitMachine.TestCase
TestTransitMachine.settings = settings(max_examples=60, stateful_step_count=30)
