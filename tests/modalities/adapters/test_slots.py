"""Conversations find their slot again while it is theirs."""

from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.slots import Slots


def turn(slots: Slots, key: str) -> int:
    slot = slots.take(key)
    assert slot is not None
    slots.give_back(slot)
    return slot


def test_slots_bring_a_conversation_back_to_its_own() -> None:
    """As many conversations as there are slots never disturb each other."""
    slots = Slots(3)
    first = {key: turn(slots, key) for key in "abc"}
    assert sorted(first.values()) == [0, 1, 2]
    assert {key: turn(slots, key) for key in "cab"} == first


def test_slots_give_a_newcomer_the_one_that_rested_longest() -> None:
    """Without an unneeded slot the least recently used conversation loses its own."""
    slots = Slots(2)
    own = {key: turn(slots, key) for key in "ab"}
    assert turn(slots, "c") == own["a"]
    assert turn(slots, "b") == own["b"]


def test_slots_prefer_one_that_nobody_will_come_back_to() -> None:
    """A single question leaves nothing that is worth keeping."""
    slots = Slots(2)
    kept, passing = turn(slots, "a"), turn(slots, "")
    assert kept != passing
    turn(slots, "a")
    assert turn(slots, "b") == passing


def test_slots_do_not_wait_for_a_busy_own() -> None:
    """A conversation whose slot is busy takes another one; with all busy there is none."""
    slots = Slots(2)
    assert {slots.take("a"), slots.take("a")} == {0, 1}
    assert slots.take("a") is None


def test_slots_know_whom_they_bring_back() -> None:
    """A conversation is held while its slot is free and nobody else's; one that will not come back never is."""
    slots = Slots(2)
    turn(slots, "a"), turn(slots, "")
    assert slots.holds("a")
    assert not slots.holds("")
    assert not slots.holds("b")
    slot = slots.take("a")
    assert not slots.holds("a")
    assert slot is not None
    slots.give_back(slot)
    turn(slots, "b"), turn(slots, "c")
    assert not slots.holds("a")


@given(st.lists(st.one_of(st.sampled_from(["", "a", "b", "c", "d"]), st.integers(0, 3)), max_size=40))
def test_slots_are_never_given_twice(steps: list[str | int]) -> None:
    """Whatever is taken and given back, a slot serves one conversation at a time and none is lost."""
    slots = Slots(3)
    busy: list[int] = []
    for step in steps:
        if isinstance(step, int):
            if busy:
                slots.give_back(busy.pop(step % len(busy)))
            continue
        slot = slots.take(step)
        assert (slot is None) == (len(busy) == 3)
        if slot is not None:
            assert slot not in busy
            busy.append(slot)
