"""When a decode is believed, when it is silence, and where the ladder goes on: rules without a model."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.whisper_judgement import (
    BEAM,
    ENDED,
    SAMPLED,
    SHORT,
    WHOLE,
    WIDE,
    Decoded,
    believable,
    best,
    loops,
    next_rung,
    silent,
)

GOOD = Decoded("turn on the light", (1, 2, 3, 4), -0.2, 0.05)
UNSURE = replace(GOOD, average_logprob=-1.4)
LOOP = replace(GOOD, text="5, " * 60, tokens=(7, 8) * 60)
NOISE = Decoded("you", (5,), -0.8, 0.9)
SECOND = 16_000

decodes = st.builds(
    Decoded,
    text=st.sampled_from(["", "you", "8", "Thank you.", "turn on the light", "no " * 80]),
    tokens=st.lists(st.integers(0, 3), max_size=40).map(tuple),
    average_logprob=st.floats(-3, 0),
    no_speech_probability=st.floats(0, 1),
    capped=st.booleans(),
    rung=st.sampled_from([SHORT, WHOLE, BEAM]),
    beam=st.sampled_from([1, WIDE]),
)


@pytest.mark.parametrize("period", [1, 2, 8])
def test_loops_is_seen_in_tokens_alone(period: int) -> None:
    """Six repeats of a group of up to eight tokens at the end are a loop, five are not: digits repeat in earnest."""
    group = tuple(range(period))
    assert loops(replace(GOOD, tokens=(90, 91, *group * 6)))
    assert not loops(replace(GOOD, tokens=(90, 91, *group * 5)))


def test_loops_is_seen_in_text_and_at_the_limit() -> None:
    """A text that compresses too well, and a decode that ran into its limit, are loops."""
    assert loops(replace(LOOP, tokens=()))
    assert loops(replace(GOOD, capped=True))
    assert not loops(GOOD)


@pytest.mark.parametrize("text", ["8", "8.", "20", "stop"])
def test_silent_keeps_a_lone_word_or_digit(text: str) -> None:
    """A single digit is speech, though nothing but digits and dots stands there."""
    assert not silent(Decoded(text, (1,), -1.2, 0.4))


@pytest.mark.parametrize("text", ["you", "Thank you.", "Thanks for watching!", "", "..."])
def test_silent_drops_what_whisper_writes_for_noise(text: str) -> None:
    """The phrases of silent captions are dropped where Whisper doubts that it heard speech or doubts the text."""
    assert silent(Decoded(text, (1,), -0.7, 0.8))
    assert silent(Decoded(text, (1,), -1.2, 0.3))


def test_silent_keeps_thanks_that_were_said() -> None:
    """A confident "thank you" in sound that is speech stays."""
    assert not silent(Decoded("Thank you.", (1, 2), -0.4, 0.1))


def test_next_rung_climbs_one_by_one_while_the_text_is_unsure() -> None:
    """Short, the same with beam 5, the whole with beam 5, then the end: sampling would only guess."""
    assert next_rung([UNSURE], 3 * SECOND, draft=False) == SHORT
    assert next_rung([UNSURE, replace(UNSURE, beam=WIDE)], 3 * SECOND, draft=False) == BEAM
    assert next_rung([replace(UNSURE, rung=WHOLE)], SECOND, draft=False) == BEAM
    assert next_rung([replace(UNSURE, rung=BEAM)], SECOND, draft=False) == ENDED


def test_next_rung_leaves_a_brief_unsure_text_as_it_is() -> None:
    """Under two seconds the full window is not asked, unless the text runs away: that one needs it."""
    wide = replace(UNSURE, beam=WIDE)
    assert next_rung([UNSURE, wide], SECOND, draft=False) == ENDED
    assert next_rung([LOOP], SECOND, draft=False) == WHOLE
    assert next_rung([UNSURE, replace(LOOP, beam=WIDE)], SECOND, draft=False) == WHOLE


def test_next_rung_samples_only_where_every_rung_loops() -> None:
    """A loop on all rungs is sampled; one decode that does not loop is enough to end."""
    looping = [replace(LOOP, rung=rung) for rung in (SHORT, WHOLE, BEAM)]
    assert next_rung(looping, SECOND, draft=False) == SAMPLED
    assert next_rung([replace(UNSURE, rung=WHOLE), looping[2]], SECOND, draft=False) == ENDED


def test_next_rung_checks_a_mere_moment_of_silence_once() -> None:
    """Under a second of sound, silence is looked at again; longer sound is not."""
    assert next_rung([NOISE], SECOND - 1, draft=False) == SHORT
    assert next_rung([replace(NOISE, beam=WIDE)], SECOND - 1, draft=False) == ENDED
    assert next_rung([NOISE], SECOND, draft=False) == ENDED
    assert next_rung([replace(NOISE, rung=WHOLE)], SECOND - 1, draft=False) == ENDED


@given(decodes, st.integers(1, 30 * SECOND))
def test_next_rung_of_a_draft_is_the_end(decoded: Decoded, samples: int) -> None:
    """A partial transcript costs one decode."""
    assert next_rung([decoded], samples, draft=True) == ENDED


@given(decodes, st.integers(1, 30 * SECOND))
def test_next_rung_always_climbs_and_leaves_what_is_believed(decoded: Decoded, samples: int) -> None:
    """The ladder has no way down, so it ends; a believable decode with speech in it ends it at once."""
    following = next_rung([decoded], samples, draft=False)
    assert following > decoded.rung or (following == SHORT and decoded.beam < WIDE)
    if believable(decoded) and not silent(decoded):
        assert following == ENDED


@given(st.lists(decodes, min_size=1, max_size=4))
def test_best_never_takes_a_loop_or_silence_over_speech(candidates: list[Decoded]) -> None:
    """Where some rung heard speech and did not loop, such a rung wins."""
    sound = [one for one in candidates if not loops(one) and not silent(one)]
    if sound:
        assert best(candidates) in sound
