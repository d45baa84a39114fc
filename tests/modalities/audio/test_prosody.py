from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.prosody import HIGHEST_HZ, LOWEST_HZ, WINDOW, Contour, contour, prosody
from modalities.ports import Pcm

RATE = 16_000


def voice(pitch_hz: Sequence[float], level: float = 0.3) -> Pcm:
    """Returns a buzz, one third of a second for every step between the pitches given, gliding."""
    track = np.interp(
        np.arange((len(pitch_hz) - 1) * RATE // 3) / (RATE / 3), np.arange(len(pitch_hz)), pitch_hz
    )
    phase = np.cumsum(2 * np.pi * track / RATE)
    buzz = sum(np.sin(n * phase) / n for n in range(1, 12))
    return (np.asarray(buzz) * level * 16_000).astype(np.int16)


def noise(seconds: float, level: float = 0.1, seed: int = 1) -> Pcm:
    samples = np.random.default_rng(seed).normal(0, level * 32_768, int(seconds * RATE))
    return np.clip(samples, -32_768, 32_767).astype(np.int16)


@pytest.mark.parametrize("pitch", [75, 100, 147, 220, 310, 400])
def test_contour_finds_the_pitch_of_a_steady_voice(pitch: float) -> None:
    """From a low man's voice to a child's, within one per cent, in nearly every window."""
    found = contour(voice([pitch] * 4)).pitch_hz[1:]
    assert np.mean(np.abs(found / pitch - 1) < 0.01) > 0.9


def test_contour_does_not_drift_over_a_minute() -> None:
    """The last second of a minute on one note measures like the first."""
    found = contour(voice([140.0] * 181)).pitch_hz
    assert abs(np.median(found[-31:]) - np.median(found[1:32])) < 0.5


def test_contour_of_noise_and_silence_holds_no_voice() -> None:
    """Hiss has loudness and no pitch; digital silence has neither, and nothing divides by it."""
    hiss, silence = contour(noise(2)), contour(np.zeros(RATE, np.int16))
    assert np.mean(hiss.pitch_hz > 0) < 0.02
    assert np.allclose(hiss.loudness_db, -20, atol=1)
    assert not silence.pitch_hz.any()
    assert (silence.loudness_db == -100).all()
    assert prosody(silence).closing is None
    assert prosody(silence).pitch_hz == 0


def test_contour_of_nothing_is_empty() -> None:
    """Less than a window has no row, and no rows have a prosody all the same."""
    empty = contour(np.zeros(WINDOW - 1, np.int16))
    assert len(empty) == 0
    assert prosody(empty).voiced == 0


@given(st.lists(st.integers(0, 12), max_size=20), st.integers(0, 2**32 - 1))
def test_contour_does_not_depend_on_the_chunks(sizes: list[int], seed: int) -> None:
    """Sound cut into pieces at whole windows gives the rows of the whole."""
    sound = np.concatenate((voice([120, 180, 90]), noise(0.3, seed=seed)))
    whole = contour(sound)
    pieces, at = [], 0
    for size in [*sizes, len(whole)]:
        before = sound[at - WINDOW : at] if at else None
        pieces.append(contour(sound[at : at + size * WINDOW], before))
        at = min(at + size * WINDOW, len(whole) * WINDOW)
    for name in ("loudness_db", "pitch_hz", "voicing"):
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        assert np.allclose(joined, getattr(whole, name), rtol=1e-4, atol=1e-3)


@given(st.lists(st.integers(-32_768, 32_767), max_size=40), st.integers(1, 60))
def test_contour_and_prosody_take_any_sound(samples: list[int], repeats: int) -> None:
    """Every figure is finite and within its range, whatever the samples."""
    found = contour(np.array(samples * repeats, dtype=np.int16))
    assert np.isfinite(found.loudness_db).all()
    assert ((found.voicing >= 0) & (found.voicing <= 1)).all()
    pitch = found.pitch_hz[found.pitch_hz > 0]
    assert ((pitch > LOWEST_HZ * 0.9) & (pitch < HIGHEST_HZ * 1.15)).all()
    whole = prosody(found)
    figures = [whole.pitch_hz, whole.range_st, whole.loudness_db, whole.voiced]
    if whole.closing is not None:
        figures += [whole.closing.fall, whole.closing.depth, whole.closing.fade_db]
        assert 0 <= whole.closing.held_ms <= 512
    assert np.isfinite(figures).all()


def test_prosody_tells_falling_from_rising_and_level() -> None:
    """A statement falls, a question rises, a hesitation stays where it is."""
    fall, rise, level = (
        prosody(contour(voice(pitches))).closing
        for pitches in ([140, 145, 140, 80], [120, 118, 122, 180], [130, 130, 130, 130])
    )
    assert fall is not None
    assert rise is not None
    assert level is not None
    assert fall.fall > 1.5
    assert fall.depth > 1.5
    assert rise.fall < -1.5
    assert abs(level.fall) < 0.2
    assert level.held_ms > 300 > fall.held_ms


def test_prosody_hears_a_voice_fade() -> None:
    """What dies away lies further under the loudest than what stops at full voice."""
    loud = voice([130] * 4)
    faded = (loud * np.linspace(1, 0.02, len(loud)) ** 2).astype(np.int16)
    stopped, dying = (prosody(contour(sound)).closing for sound in (loud, faded))
    assert stopped is not None
    assert dying is not None
    assert abs(stopped.fade_db) < 2
    assert dying.fade_db > 15


def test_prosody_measures_an_utterance() -> None:
    """Median pitch, its range in semitones, loudness of the voice and the share of it: silence around adds nothing."""
    said = prosody(
        contour(np.concatenate((np.zeros(RATE, np.int16), voice([100, 100, 200, 200]), noise(1, 0.0001))))
    )
    assert 100 <= said.pitch_hz <= 200
    assert said.range_st == pytest.approx(12, abs=0.7)
    assert said.voiced == pytest.approx(1 / 3, abs=0.05)
    assert said.loudness_db == pytest.approx(
        float(10 * np.log10(np.mean((voice([100, 100, 200, 200]) / 32_768.0) ** 2))), abs=1
    )


def test_prosody_folds_octave_errors() -> None:
    """One window an octave up does not make a phrase fall by twelve semitones."""
    pitch = np.full(20, 120, dtype=np.float32)
    pitch[13:15] = 240
    flat = np.full(20, -20, dtype=np.float32)
    closing = prosody(Contour(flat, pitch, np.ones(20, dtype=np.float32))).closing
    assert closing is not None
    assert closing.fall == 0
