"""When a worker counts as silent, and how long the next start waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import ms, seconds
from orchestrator.workers.supervision import PHASES, Backoff, Phase, PhaseEvent, Pulse


def _checks(pulse: Pulse, times_ms: list[int]) -> list[bool]:
    return [pulse.is_silent(ms(time)) for time in times_ms]


def test_pulse_is_silent_after_the_limit_and_not_before() -> None:
    """Checked every 500 ms with a limit of 3 s: the sixth check finds it."""
    pulse = Pulse(3.0, 0.5, 0)
    assert _checks(pulse, [500, 1000, 1500, 2000, 2500, 3000]) == [False] * 5 + [True]


def test_pulse_any_sign_of_life_begins_the_count_anew() -> None:
    """One beat after 2.9 s gives 3 s more."""
    pulse = Pulse(3.0, 0.5, 0)
    assert not any(_checks(pulse, [500, 1000, 1500, 2000, 2500]))
    pulse.heard()
    assert _checks(pulse, [3000, 3500, 4000, 4500, 5000, 5500]) == [False] * 5 + [True]


def test_pulse_server_that_was_away_does_not_take_it_for_silence() -> None:
    """After the server itself hung for a minute, the beats that wait in the pipe get a chance to be read."""
    pulse = Pulse(3.0, 0.5, 0)
    assert not any(_checks(pulse, [500, 1000, 61_000, 61_500]))


@given(st.lists(st.tuples(st.integers(1, 5_000), st.booleans()), max_size=100))
def test_pulse_worker_that_beats_before_each_check_is_never_silent(steps: list[tuple[int, bool]]) -> None:
    """However irregular the checks are: heard since the last one is alive."""
    pulse = Pulse(3.0, 0.5, 0)
    now = 0
    for pause_ms, twice in steps:
        now += ms(pause_ms)
        for _ in range(1 + twice):
            pulse.heard()
        assert not pulse.is_silent(now)


def test_backoff_doubles_to_its_limit_while_nothing_is_steady() -> None:
    """0.2 s, doubling to 10 s."""
    backoff = Backoff(0.2, 10.0, 30.0)
    assert [backoff.after(0) for _ in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


def test_backoff_begins_anew_after_a_steady_life() -> None:
    """A worker that worked for half a minute is started again at once."""
    backoff = Backoff(0.2, 10.0, 30.0)
    for _ in range(5):
        backoff.after(seconds(29.9))
    assert backoff.after(seconds(30)) == pytest.approx(0.2)
    assert backoff.after(0) == pytest.approx(0.4)


def test_phases_every_phase_can_be_stopped() -> None:
    """A stop is never our own fault."""
    assert {phase for phase, event in PHASES if event is PhaseEvent.STOPPED} == set(Phase)
    assert {to for (_, event), to in PHASES.items() if event is PhaseEvent.STOPPED} == {Phase.STOPPED}


def test_phases_only_a_probe_makes_a_worker_ready() -> None:
    """No other way leads to READY."""
    assert {event for (_, event), to in PHASES.items() if to is Phase.READY} == {PhaseEvent.PROBED}
