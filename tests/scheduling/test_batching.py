"""Which jobs are of one shape."""

from orchestrator.scheduling.batching import clip_samples, shape_of
from orchestrator.scheduling.work import Reply, Speak, Transcribe, Understand

S = 16_000


def test_shape_clips_that_round_up_to_one_length_match() -> None:
    """1 s and 4.9 s are both recognised at 5 s; 5.1 s is not."""
    assert shape_of(Transcribe(0, S)) == shape_of(Transcribe(7 * S, 7 * S + 49 * S // 10))
    assert shape_of(Transcribe(0, 5 * S)) == shape_of(Transcribe(0, S))
    assert shape_of(Transcribe(0, 51 * S // 10)) != shape_of(Transcribe(0, S))


def test_shape_clip_longer_than_any_still_has_one() -> None:
    """What exceeds 30 s goes with the longest."""
    assert shape_of(Transcribe(0, 90 * S)) == shape_of(Transcribe(0, 29 * S))


def test_shape_drafts_and_careful_passes_do_not_mix() -> None:
    """A draft must not wait for a beam search."""
    shapes = {
        shape_of(Transcribe(0, S, draft=True)),
        shape_of(Transcribe(0, S)),
        shape_of(Transcribe(0, S, rung=2)),
    }
    assert len(shapes) == 3


def test_shape_replies_and_speech_have_none() -> None:
    """They run side by side or one by one, never as one call; texts to understand all match."""
    assert shape_of(Reply(())) is None
    assert shape_of(Speak("Hi.")) is None
    assert shape_of(Understand("a")) == shape_of(Understand("quite another text"))


def test_clip_samples_follows_the_sound_where_there_is_some() -> None:
    """A stored clip has no extent on the stream, only sound."""
    assert clip_samples(Transcribe(0, 0, clip="c", audio=bytes(2 * S))) == S
    assert clip_samples(Transcribe(S, 3 * S)) == 2 * S
