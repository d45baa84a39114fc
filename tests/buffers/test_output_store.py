"""All output logs together stay within a bound as long as one of them can go; no reader loses what it reads from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.buffers.output_store import OutputStore


def test_output_store_clears_who_was_left_longest_ago() -> None:
    """Three sessions without a link: the first that was left goes first, and no more of them than need be."""
    store = OutputStore(100)
    for session in "abc":
        store.grew(session, 40)
    for session in "bca":
        store.detached(session)
    assert store.over() == ("b",)
    assert store.over() == ()
    store.grew("a", 90)
    assert store.over() == ("c", "a")
    assert store.statistics().cleared == 3


def test_output_store_spares_who_is_attached() -> None:
    """A log that is read from stays, however large all of them are."""
    store = OutputStore(100)
    store.grew("read", 500)
    store.detached("read")
    store.attached("read")
    store.grew("left", 10)
    store.detached("left")
    assert store.over() == ("left",)
    assert store.statistics().size == 500


def test_output_store_passes_over_what_is_empty() -> None:
    """Sessions without a byte in their log have nothing to give."""
    store = OutputStore(100)
    store.detached("empty")
    store.grew("full", 150)
    store.detached("full")
    assert store.over() == ("full",)


class _Counted(str):
    """A name that counts how often it is looked up."""

    __slots__ = ("lookups",)
    lookups: int

    def __hash__(self) -> int:
        self.lookups = getattr(self, "lookups", 0) + 1
        return str.__hash__(self)


def test_output_store_walks_past_nobody() -> None:
    """While those that are read hold too much by themselves, each of their events asks again: the sessions that were
    left with empty logs are not looked at, neither those that never had anything nor those that were cleared."""
    store = OutputStore(100)
    left = [_Counted(f"left {number}") for number in range(50)]
    for session in left:
        store.detached(session)
    for session in left[:25]:
        store.grew(session, 10)
    store.grew("read", 500)
    assert len(store.over()) == 25
    before = [session.lookups for session in left]
    for _ in range(10):
        store.grew("read", 10)
        assert store.over() == ()
    assert [session.lookups for session in left] == before


def test_output_store_forgets_who_has_ended() -> None:
    """What a session held is free when it is gone, and it is never named again."""
    store = OutputStore(100)
    store.grew("gone", 90)
    store.detached("gone")
    store.ended("gone")
    store.ended("gone")
    store.grew("new", 90)
    assert store.over() == ()
    assert store.statistics().sessions == 1


def test_output_store_of_no_room_is_refused() -> None:
    """A bound of nothing is a mistake in the configuration."""
    with pytest.raises(ValueError, match="at least one byte"):
        OutputStore(0)


_Step = tuple[str, str, int]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["grew", "shrank", "attached", "detached", "ended"]),
        st.sampled_from("abcdef"),
        st.integers(0, 60),
    ),
    max_size=60,
)


@given(_STEPS)
def test_output_store_holds_its_bound_under_any_order(steps: list[_Step]) -> None:
    """After each step: what is named was left, holds something, is the oldest such; and either all logs are within the
    bound or nothing is left to clear. The sum is that of the logs."""
    store = OutputStore(100)
    sizes: dict[str, int] = {}
    left: list[str] = []
    for what, session, amount in steps:
        match what:
            case "grew":
                store.grew(session, amount)
                sizes[session] = sizes.get(session, 0) + amount
            case "shrank":
                amount = min(amount, sizes.get(session, 0))
                store.grew(session, -amount)
                sizes[session] = sizes.get(session, 0) - amount
            case "attached":
                store.attached(session)
                left = [one for one in left if one != session]
            case "detached":
                store.detached(session)
                left = [*(one for one in left if one != session), session]
            case _:
                store.ended(session)
                sizes.pop(session, None)
                left = [one for one in left if one != session]
        named = store.over()
        full = [one for one in left if sizes.get(one, 0) > 0]
        assert list(named) == full[: len(named)]
        if named:
            last = sizes[named[-1]]
            assert sum(sizes.values()) - sum(sizes[one] for one in named) + last > 100
        for one in named:
            sizes[one] = 0
        assert store.statistics().size == sum(sizes.values())
        assert sum(sizes.values()) <= 100 or not [one for one in left if sizes.get(one, 0) > 0]
