"""How much of a response the user has heard, by the samples that were sent and the clock."""

import pytest

from orchestrator.clock import ms
from orchestrator.ids import IdSequence
from orchestrator.sessions.response import ResponseRun, ResponseShape, Spoken
from orchestrator.wire.session import PCM

SHAPE = ResponseShape("audio", "inf", PCM, "joe", None, "conv")


def sounding(sent_ms: int) -> ResponseRun:
    """A response of which so much was sent, from 1 s on."""
    run = ResponseRun(IdSequence("T"), SHAPE, 1)
    run.begin()
    run.open_message()
    run.add_text("One two three four five.", 0)
    run.spoken.append(Spoken("job", 0, 24))
    assert run.add_sound("job", sent_ms * 24, ms(1_000))
    return run


@pytest.mark.parametrize(("at_ms", "heard_ms"), [(900, 0), (1_000, 0), (2_500, 1_500), (9_000, 3_000)])
def test_response_is_heard_as_time_goes_but_no_further_than_it_was_sent(at_ms: int, heard_ms: int) -> None:
    """Without a call's track: the time since the first sound, never under nothing and never over what was sent."""
    assert sounding(3_000).heard_samples(ms(at_ms)) == heard_ms * 24


@pytest.mark.parametrize(("played_ms", "heard_ms"), [(0, 0), (2_000, 2_000), (3_500, 3_000)])
def test_response_is_heard_as_far_as_a_track_has_played_of_what_was_sent(
    played_ms: int, heard_ms: int
) -> None:
    """A track's count is taken for no more than was sent; the clock says nothing then."""
    run = sounding(3_000)
    run.played_samples = played_ms * 24
    assert run.heard_samples(ms(60_000)) == heard_ms * 24


def test_response_has_sound_in_hand_as_long_as_some_of_it_is_to_be_heard() -> None:
    """Two seconds of three are still to come; what is being made of an open sentence counts by its length."""
    run = sounding(3_000)
    run.spoke("job")
    assert run.sound_in_hand_us(ms(2_000)) == ms(2_000)
    run.spoken.append(Spoken("next", 24, 34))
    assert run.sound_in_hand_us(ms(2_000)) == ms(2_000) + ms(600)
    assert run.sound_in_hand_us(ms(60_000)) == ms(600)
