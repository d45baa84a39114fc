"""States that a conversation was in."""

from consistency.observation import Token
from consistency.snapshots import MOST_TOKENS, Committed, Snapshot


def test_snapshot_shares_the_tokens_that_did_not_change() -> None:
    """A new state holds the old one's tokens themselves; the old one stays as it was."""
    first = Snapshot().commit(
        Committed(1, tokens=(Token("book", "time", "7"), Token("book", "place", "here")))
    )
    second = first.commit(Committed(2, tokens=(Token("book", "time", "8"),)))
    assert [token.value for token in first.tokens] == ["7", "here"]
    assert [token.value for token in second.tokens] == ["here", "8"]
    assert second.tokens[0] is first.tokens[1]
    assert second.number == 2


def test_snapshot_is_told_from_every_other_by_its_digest() -> None:
    """What was committed, by whom and in which order makes the digest; the same makes the same."""
    seven, eight = Token("book", "time", "7"), Token("book", "time", "8")
    changes = [
        Committed(1),
        Committed(2),
        Committed(1, tokens=(seven,)),
        Committed(1, tokens=(eight,)),
        Committed(1, words=(("a", "hello"),)),
        Committed(1, superseded=("a",)),
        Committed(1, prints=(b"x",)),
    ]
    digests = {Snapshot().commit(change).digest for change in changes}
    assert len(digests) == len(changes)
    assert Snapshot().commit(changes[2]) == Snapshot().commit(changes[2])
    there = Snapshot().commit(changes[2]).commit(Committed(2, tokens=(eight,)))
    back = Snapshot().commit(changes[3]).commit(Committed(2, tokens=(seven,)))
    assert there.digest != back.digest


def test_snapshot_lets_withdrawn_tokens_go_and_holds_a_bounded_number() -> None:
    """What was misheard leaves with its reading; the oldest of too many leave first."""
    state = Snapshot().commit(Committed(1, tokens=(Token("", "minutes", "50"), Token("", "room", "kitchen"))))
    state = state.commit(Committed(2, withdrawn=(Token("", "minutes", "50"),)))
    assert [token.value for token in state.tokens] == ["kitchen"]
    for number in range(3, 3 + 2 * MOST_TOKENS):
        state = state.commit(Committed(number, tokens=(Token("", f"slot {number}", "x"),)))
    assert len(state.tokens) == MOST_TOKENS
    assert state.tokens[-1].slot == f"slot {2 + 2 * MOST_TOKENS}"
