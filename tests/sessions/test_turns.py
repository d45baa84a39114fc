"""Which signs of a user belong to one turn."""

import pytest

from orchestrator.clock import ms
from orchestrator.sessions.turns import TurnWindow


@pytest.mark.parametrize(("gap_ms", "same"), [(0, True), (1_500, True), (1_501, False)])
def test_turn_window_stays_open_for_its_time_after_the_last_sign(gap_ms: int, same: bool) -> None:
    """A sign at the window's very end joins, one later opens the next turn."""
    window = TurnWindow(ms(1_500))
    first = window.sign(ms(1_000))
    assert (window.sign(ms(1_000 + gap_ms)).id == first.id) == same


def test_turn_window_is_kept_open_by_speech() -> None:
    """Four seconds of speech are one sign: what comes within the window after their end joins."""
    window = TurnWindow(ms(1_500))
    first = window.sign(ms(1_000))
    window.sign(ms(5_000), speaking=True)
    assert window.sign(ms(6_000)).id == first.id
    assert window.sign(ms(8_000)).id != first.id


def test_turn_window_closes_at_the_clients_word() -> None:
    """After an explicit commit or response.create nothing joins."""
    window = TurnWindow(ms(1_500))
    first = window.sign(ms(1_000))
    window.close()
    assert window.sign(ms(1_001)).id != first.id
