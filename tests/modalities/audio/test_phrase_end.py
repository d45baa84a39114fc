import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.phrase_end import GONE_WINDOWS, HEARD_WINDOWS, QUIET_WINDOWS, PhraseEnd, PhraseEnds
from modalities.audio.prosody import contour, prosody
from modalities.audio.segmenter import WINDOW
from modalities.ports import Pcm

PAUSE = 10
"""Windows: 320 ms, one that counts."""


def sound(windows: int) -> Pcm:
    buzz = 9_000 * np.sign(np.sin(np.arange(windows * WINDOW) * 2 * np.pi * 130 / 16_000))
    return buzz.astype(np.int16).reshape(windows, WINDOW)


def ends(*runs: int) -> tuple[PhraseEnd, ...]:
    """Returns the pauses in speech and silence by turns, given in windows; silence first."""
    probabilities = [p for n, run in enumerate(runs) for p in [0.9 if n % 2 else 0.02] * run]
    return PhraseEnds().observe(sound(len(probabilities)), probabilities, 0)


def test_phrase_ends_where_speech_pauses() -> None:
    """One pause, known with its second window, at the first sample behind the speech."""
    (end,) = ends(5, 20, QUIET_WINDOWS)
    assert end.stop == 25 * WINDOW
    assert ends(5, 20, QUIET_WINDOWS - 1) == ()


def test_phrase_end_holds_the_prosody_of_the_seconds_before() -> None:
    """It is the prosody of the sound up to the pause, no more than two seconds of it, and none of the silence."""
    (end,) = ends(0, 90, 5)
    before = sound(90)[90 - HEARD_WINDOWS :]
    assert end.prosody == prosody(contour(before.reshape(-1)))
    assert end.prosody.voiced > 0.9


def test_phrase_end_needs_speech() -> None:
    """A click, and a murmur that never reaches the threshold of speech, end no phrase."""
    assert ends(5, 1, 20) == ()
    assert PhraseEnds().observe(sound(60), [0.4] * 40 + [0.0] * 20, 0) == ()


def test_phrase_ends_remember_the_pauses_of_a_speaker_who_goes_on() -> None:
    """The rhythm holds the pauses before this one; closures inside words do not count, and it is bounded."""
    assert [end.earlier_ms for end in ends(0, 9, PAUSE, 9, 20, 9, 5)] == [(), (320,), (320, 640)]
    assert [end.earlier_ms for end in ends(0, 9, 3, 9, 5)] == [(), ()]
    assert len(ends(*([0] + [9, PAUSE] * 30))[-1].earlier_ms) == 8


def test_phrase_ends_forget_the_rhythm_of_a_turn_that_is_over() -> None:
    """Who was silent for over two seconds begins another turn."""
    assert [end.earlier_ms for end in ends(0, 9, PAUSE, 9, GONE_WINDOWS + 1, 9, 5)] == [(), (320,), ()]


def test_phrase_goes_on_with_a_murmur() -> None:
    """Speech that fades under the threshold, soon after speech, moves the pause: the segmenter does so."""
    probabilities = [0.9] * 10 + [0.0] * 5 + [0.4] + [0.0] * 5
    found = PhraseEnds().observe(sound(len(probabilities)), probabilities, 0)
    assert [end.stop for end in found] == [10 * WINDOW, 16 * WINDOW]


def test_phrase_ends_start_afresh_behind_a_hole() -> None:
    """Sound that was left out is not bridged: neither its speech nor its rhythm counts any more."""
    phrases = PhraseEnds()
    phrases.observe(sound(10), [0.9] * 10, 0)
    assert phrases.observe(sound(10), [0.0] * 10, 100) == ()
    (end,) = phrases.observe(sound(14), [0.9] * 4 + [0.0] * 10, 110)
    assert end.earlier_ms == ()
    assert end.stop == 114 * WINDOW


@given(
    st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.9, 0.95]), max_size=200),
    st.lists(st.integers(0, 12), max_size=40),
)
def test_phrase_ends_do_not_depend_on_the_chunks(probabilities: list[float], sizes: list[int]) -> None:
    """Any way to cut the same windows into calls gives the same pauses."""
    windows = sound(len(probabilities))
    whole = PhraseEnds().observe(windows, probabilities, 0)
    phrases, at = PhraseEnds(), 0
    found: list[PhraseEnd] = []
    for size in [*sizes, len(probabilities)]:
        found += phrases.observe(windows[at : at + size], probabilities[at : at + size], at)
        at = min(at + size, len(probabilities))
    assert tuple(found) == whole
