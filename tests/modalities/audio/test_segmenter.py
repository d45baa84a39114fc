from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.segmenter import (
    BEGIN_WINDOWS,
    TAIL_SAMPLES,
    WINDOW,
    Segmenter,
    SegmenterSettings,
    SegmentEvent,
    SpeechBegan,
    SpeechEnded,
)

SETTINGS = SegmenterSettings(threshold=0.5, prefix_padding_ms=300, silence_ms=500, max_utterance_s=30)
WINDOWS_OF_SILENCE = 16
"""500 ms rounded up to whole windows."""


def _spoken(quiet: int, loud: int, after: int) -> list[float]:
    return [0.02] * quiet + [0.9] * loud + [0.02] * after


probabilities = st.lists(
    st.one_of(st.sampled_from([0.0, 0.34, 0.36, 0.49, 0.5, 0.9]), st.floats(0, 1)), max_size=200
)
settings_ = st.builds(
    SegmenterSettings,
    threshold=st.floats(0, 1),
    prefix_padding_ms=st.integers(0, 2_000),
    silence_ms=st.integers(0, 1_500),
    max_utterance_s=st.floats(0.1, 5),
)


def test_segmenter_finds_one_utterance() -> None:
    """Speech from window 40 to 60: it begins 300 ms earlier, is known 64 ms later, and ends with its tail."""
    events = Segmenter(SETTINGS).observe(_spoken(40, 20, 40), 0)
    assert events == (
        SpeechBegan(start_sample=40 * WINDOW - 4_800, detected_sample=42 * WINDOW),
        SpeechEnded(
            stop_sample=60 * WINDOW + TAIL_SAMPLES, detected_sample=(60 + WINDOWS_OF_SILENCE) * WINDOW
        ),
    )


def test_segmenter_padding_does_not_reach_before_the_sound() -> None:
    """F-T4: speech from the very first sample begins at 0, and nothing of it is lost."""
    events = Segmenter(SETTINGS).observe(_spoken(0, 10, 0), 0)
    assert events == (SpeechBegan(0, 2 * WINDOW),)


def test_segmenter_click_is_no_speech() -> None:
    """A single loud window, however often, begins nothing."""
    assert Segmenter(SETTINGS).observe([0.99, 0.1] * 50, 0) == ()


def test_segmenter_barge_in_is_known_within_64_ms() -> None:
    """A beginning is told with its second window: the 200 ms budget of an interruption is not spent on waiting."""
    segmenter = Segmenter(SETTINGS)
    assert segmenter.observe([0.9], 0) == ()
    assert len(segmenter.observe([0.9], 1)) == 1
    assert BEGIN_WINDOWS * WINDOW * 1_000 // 16_000 <= 64


def test_segmenter_pause_shorter_than_the_silence_stays_inside() -> None:
    """A thinking pause of 480 ms does not cut the sentence in two."""
    sound = _spoken(10, 10, WINDOWS_OF_SILENCE - 1) + _spoken(0, 10, 30)
    events = Segmenter(SETTINGS).observe(sound, 0)
    assert [type(event) for event in events] == [SpeechBegan, SpeechEnded]


def test_segmenter_fading_voice_goes_on_under_the_threshold() -> None:
    """Hysteresis: 0.4 begins nothing but keeps a running utterance alive."""
    segmenter = Segmenter(SETTINGS)
    assert segmenter.observe([0.4] * 50, 0) == ()
    segmenter.observe([0.9] * 3, 50)
    assert segmenter.observe([0.4] * 100, 53) == ()
    assert segmenter.speaking
    assert segmenter.silence_ms == 0


def test_segmenter_next_utterance_begins_after_the_last_one() -> None:
    """Prefix padding never reaches into the previous utterance: no word is recognised twice."""
    sound = _spoken(10, 5, WINDOWS_OF_SILENCE) + _spoken(0, 10, 0)
    settings = SegmenterSettings(prefix_padding_ms=2_000)
    first, ended, second = Segmenter(settings).observe(sound, 0)
    assert isinstance(first, SpeechBegan)
    assert isinstance(ended, SpeechEnded)
    assert isinstance(second, SpeechBegan)
    assert second.start_sample == ended.stop_sample


def test_segmenter_endless_utterance_is_cut_and_goes_on() -> None:
    """F-T7: an hour of talk comes in utterances of at most the limit, without a hole between them."""
    settings = SegmenterSettings(max_utterance_s=2)
    events = Segmenter(settings).observe([0.9] * 1_000, 0)
    ends = [event for event in events if isinstance(event, SpeechEnded)]
    begins = [event for event in events if isinstance(event, SpeechBegan)]
    assert len(ends) >= 15
    assert all(event.forced for event in ends)
    assert [event.start_sample for event in begins[1:]] == [event.stop_sample for event in ends][
        : len(begins) - 1
    ]
    assert all(
        end.stop_sample - begin.start_sample <= 32_000 for begin, end in zip(begins, ends, strict=False)
    )


def test_segmenter_less_silence_configured_ends_the_running_utterance() -> None:
    """Semantic VAD: once the sentence is known to be complete, the next window may end it."""
    segmenter = Segmenter(SegmenterSettings(silence_ms=4_000))
    segmenter.observe(_spoken(10, 10, 20), 0)
    assert segmenter.speaking
    assert segmenter.silence_ms == 640
    segmenter.configure(SegmenterSettings(silence_ms=400))
    (ended,) = segmenter.observe([0.02], 40)
    assert ended == SpeechEnded(20 * WINDOW + TAIL_SAMPLES, 41 * WINDOW)


def test_segmenter_reset_ends_without_a_word_and_moves_the_floor() -> None:
    """F-T3: after a commit at a sample nothing before that sample belongs to the next utterance."""
    segmenter = Segmenter(SETTINGS)
    segmenter.observe(_spoken(10, 10, 0), 0)
    segmenter.reset(20 * WINDOW + 100)
    assert not segmenter.speaking
    (began,) = segmenter.observe([0.9] * 5, 20)
    assert began == SpeechBegan(20 * WINDOW + 100, 22 * WINDOW)


def test_segmenter_reset_ahead_of_the_windows_ignores_what_lies_before() -> None:
    """A clear that overtook the probabilities drops the speech that they still tell of."""
    segmenter = Segmenter(SETTINGS)
    segmenter.reset(30 * WINDOW)
    assert segmenter.observe([0.9] * 30, 0) == ()
    assert segmenter.observe([0.9], 30) == ()
    assert segmenter.observe([0.9], 31) == (SpeechBegan(30 * WINDOW, 32 * WINDOW),)


def test_segmenter_windows_left_out_are_silence() -> None:
    """Marked silence that no model looked at ends an utterance at the sample where its silence is long enough."""
    segmenter = Segmenter(SETTINGS)
    segmenter.observe(_spoken(0, 10, 0), 0)
    (ended,) = segmenter.observe([0.02], 10**9)
    assert ended == SpeechEnded(10 * WINDOW + TAIL_SAMPLES, (10 + WINDOWS_OF_SILENCE) * WINDOW)
    assert segmenter.position == (10**9 + 1) * WINDOW


def test_segmenter_run_across_a_hole_is_no_run() -> None:
    """Two loud windows with left-out ones between them are two clicks."""
    segmenter = Segmenter(SETTINGS)
    segmenter.observe([0.9], 0)
    assert segmenter.observe([0.9], 5) == ()


@pytest.mark.parametrize("value", [float("nan"), -1.0])
def test_segmenter_probability_that_is_none_counts_as_silence(value: float) -> None:
    """A broken detector cannot keep an utterance open."""
    segmenter = Segmenter(SETTINGS)
    segmenter.observe([0.9] * 5, 0)
    assert len(segmenter.observe([value] * 20, 5)) == 1


@given(settings_, probabilities, st.lists(st.integers(0, 12), max_size=60))
def test_segmenter_result_does_not_depend_on_the_chunks(
    settings: SegmenterSettings, sound: list[float], sizes: list[int]
) -> None:
    """Any way to cut the same windows into calls, repeats included, gives the same events."""
    whole = Segmenter(settings).observe(sound, 0)
    segmenter = Segmenter(settings)
    events: list[SegmentEvent] = []
    at = 0
    for size in [*sizes, len(sound)]:
        events += segmenter.observe(sound[max(0, at - 3) : at + size], max(0, at - 3))
        at = min(at + size, len(sound))
    assert tuple(events) == whole


@given(settings_, probabilities, st.integers(0, 100_000))
def test_segmenter_beginnings_and_ends_alternate_and_never_overlap(
    settings: SegmenterSettings, sound: Sequence[float], reset_at: int
) -> None:
    """Positions only grow, each utterance has length, and nothing lies before a reset."""
    segmenter = Segmenter(settings)
    half = len(sound) // 2
    events = list(segmenter.observe(sound[:half], 0))
    if segmenter.speaking:
        events.pop()
    floor = max([reset_at, *(event.stop_sample for event in events if isinstance(event, SpeechEnded))])
    segmenter.reset(reset_at)
    later = segmenter.observe(sound[half:], half)
    assert all(event.start_sample >= floor for event in later if isinstance(event, SpeechBegan))
    events += later
    for index, event in enumerate(events):
        assert isinstance(event, SpeechBegan if index % 2 == 0 else SpeechEnded)
    places = [event.start_sample if isinstance(event, SpeechBegan) else event.stop_sample for event in events]
    assert places == sorted(places)
    assert all(places[i] < places[i + 1] for i in range(0, len(places) - 1, 2))
    assert all(a.detected_sample <= b.detected_sample for a, b in pairwise(events))
    assert all(place <= event.detected_sample for place, event in zip(places, events, strict=True))
    assert segmenter.silence_ms >= 0


@given(settings_, probabilities)
def test_segmenter_utterance_never_outgrows_its_limit(
    settings: SegmenterSettings, sound: list[float]
) -> None:
    """An utterance is as long as the limit allows, or as its padded beginning where that is longer."""
    events = Segmenter(settings).observe(sound, 0)
    least = settings.prefix_padding_ms * 16 + (BEGIN_WINDOWS + 1) * WINDOW
    for began, ended in zip(events[::2], events[1::2], strict=False):
        assert isinstance(began, SpeechBegan)
        assert isinstance(ended, SpeechEnded)
        assert ended.stop_sample - began.start_sample <= max(settings.max_utterance_s * 16_000, least)
