"""What a session counts of its early work, and the stages of a turn."""

from dataclasses import fields

from orchestrator.sessions.figures import EarlyFigures, TurnTimes


def test_figures_of_sessions_add_up() -> None:
    """Every counter is summed, none is forgotten."""
    names = [field.name for field in fields(EarlyFigures)]
    total = EarlyFigures(**dict.fromkeys(names, 1))
    total.add(EarlyFigures(**{name: place for place, name in enumerate(names)}))
    assert [getattr(total, name) for name in names] == [place + 1 for place in range(len(names))]


def test_stages_are_told_from_the_end_of_speech() -> None:
    """Milliseconds, to a tenth; what was never reached is told as nothing."""
    times = TurnTimes(spoken_us=1_000_000, ended_us=1_512_340, transcript_us=1_250_000, sound_us=1_900_000)
    assert times.stages_ms() == {
        "end_point_ms": 512.3,
        "transcript_ms": 250.0,
        "first_token_ms": None,
        "first_sentence_ms": None,
        "first_sound_ms": 900.0,
    }
