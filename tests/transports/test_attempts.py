"""Who errs too often has to wait, longer each time; nobody else does, and the table stays small."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import US_PER_S
from orchestrator.transports.attempts import ALLOWED, Attempts

HOME = "203.0.113.7"


def erring(attempts: Attempts, address: str = HOME, now_us: int = 0, times: int = ALLOWED) -> None:
    for _ in range(times):
        assert attempts.failure(address, now_us) == 0


def test_attempts_let_some_wrong_keys_pass_and_no_more() -> None:
    """The eleventh in a minute has to wait; another address does not."""
    attempts = Attempts()
    erring(attempts)
    assert attempts.blocked_for(HOME, 0) == 0
    assert attempts.failure(HOME, 0) == 2
    assert attempts.blocked_for(HOME, 0) == 2
    assert attempts.blocked_for(HOME, 2 * US_PER_S - 1) > 0
    assert attempts.blocked_for(HOME, 2 * US_PER_S) == 0
    assert attempts.blocked_for("203.0.113.8", 0) == 0


def test_attempts_make_each_wait_twice_as_long_up_to_a_minute() -> None:
    """Who goes on at once after each wait errs once a minute in the end."""
    attempts, now_us, waits_s = Attempts(), 0, []
    erring(attempts)
    for _ in range(8):
        waits_s.append(attempts.failure(HOME, now_us))
        now_us += round(waits_s[-1] * US_PER_S)
    assert waits_s == [2, 4, 8, 16, 32, 60, 60, 60]


def test_attempts_forgive_who_has_not_erred_for_long() -> None:
    """One wrong key every six seconds is never too much; after a quiet time the waits are short again."""
    attempts = Attempts()
    for number in range(100):
        assert attempts.failure(HOME, number * 6 * US_PER_S) == 0
    attempts = Attempts()
    erring(attempts)
    for now_s in (0, 2, 6):
        attempts.failure(HOME, now_s * US_PER_S)
    later_us = 200 * US_PER_S
    erring(attempts, now_us=later_us)
    assert attempts.failure(HOME, later_us) == 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.7", HOME, True),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.8", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("a name", "another", False),
    ],
)
def test_attempts_count_what_one_household_gets(one: str, other: str, same: bool) -> None:
    """Of IPv6 the first half; an IPv4 address is the same in both spellings."""
    attempts = Attempts()
    erring(attempts, one, times=ALLOWED)
    attempts.failure(one, 0)
    assert (attempts.blocked_for(other, 0) > 0) == same


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=200))
def test_attempts_keep_a_bounded_table(failures: list[tuple[int, int]]) -> None:
    """Whoever comes, no more than the bound are remembered, and who erred last is among them."""
    attempts, now_us = Attempts(capacity=8), 0
    for number, pause_s in failures:
        now_us += pause_s * US_PER_S
        attempts.failure(f"203.0.113.{number}", now_us)
        assert len(attempts) <= 8
    seen = len({number for number, _ in failures})
    assert len(attempts) + attempts.forgotten >= seen


def test_attempts_forget_who_erred_longest_ago() -> None:
    """With a full table the oldest makes room, not the one who has just erred."""
    attempts = Attempts(capacity=2)
    for address in ("a", "b"):
        erring(attempts, address)
        attempts.failure(address, 0)
    attempts.failure("c", 0)
    assert attempts.blocked_for("a", 0) == 0
    assert attempts.blocked_for("b", 0) == 2
    assert attempts.forgotten == 1
