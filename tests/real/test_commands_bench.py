"""A small part of `chorale bench commands`: real models, a real session's heart, and a user who answers."""

import pytest

from benchmarks.command_cases import understood_rightly
from benchmarks.command_lines import Line, Value, Way
from benchmarks.command_sound import Air, Studio
from benchmarks.command_talk import Arm, Went, converse, meant
from benchmarks.command_work import Models
from modalities.ports import Pcm

pytestmark = pytest.mark.real

MODELS = Models(instant=True)
STUDIO = Studio()


def timer(way: Way) -> Line:
    return Line(
        "timer", "held", "default", way, "set a timer for fifteen minutes", "set a timer for 15 minutes",
        {"duration": Value("fifteen minutes", "15 minutes")}, ("duration", Value("forty minutes", "40 minutes")),
    )  # fmt: skip


def speak(text: str, seed: int) -> Pcm:
    return STUDIO.record("held", text, Air(0, "near", 20, "pink"), seed)


def talk(way: Way, arm: Arm) -> Went:
    return converse(timer(way), arm, MODELS, speak, 1)


def test_a_spoken_command_is_understood_with_the_engine_and_without_it() -> None:
    """What was said is committed in every arm, nothing is asked, and nothing comes later for it."""
    assert understood_rightly(timer("spoken"), MODELS)
    plain, on = talk("spoken", "off"), talk("spoken", "ask")
    assert plain.slots == on.slots == meant(timer("spoken"))
    assert on.questions == ()
    assert on.answered_s == plain.answered_s


def test_a_wrong_value_that_was_typed_is_asked_about_and_put_right() -> None:
    """The user is asked which one he meant, says it, and that is what the session commits."""
    on = talk("typed_slip", "ask")
    assert len(on.questions) == 1
    assert on.slots == meant(timer("typed_slip"))
