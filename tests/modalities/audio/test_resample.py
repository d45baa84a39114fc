import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from modalities.audio.resample import Resampler
from modalities.ports import Pcm

RATES = [
    (48_000, 16_000),
    (24_000, 16_000),
    (16_000, 24_000),
    (24_000, 48_000),
    (8_000, 16_000),
    (24_000, 8_000),
    (22_050, 24_000),
    (44_100, 16_000),
]


def _sine(hz: float, rate_hz: int, seconds: float = 1.0, amplitude: float = 12_000) -> Pcm:
    return (np.sin(2 * np.pi * hz * np.arange(int(rate_hz * seconds)) / rate_hz) * amplitude).astype(np.int16)


def _in_chunks(resampler: Resampler, pcm: Pcm, sizes: list[int]) -> Pcm:
    pieces, at, index = [], 0, 0
    while at < len(pcm):
        size = sizes[index % len(sizes)]
        pieces.append(resampler.feed(pcm[at : at + size]))
        at, index = at + size, index + 1
    return np.concatenate([*pieces, resampler.flush()])


def _at_once(from_hz: int, to_hz: int, pcm: Pcm) -> Pcm:
    resampler = Resampler(from_hz, to_hz)
    return np.concatenate([resampler.feed(pcm), resampler.flush()])


def _decibels(error: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    return float(10 * np.log10(np.mean(error**2) / np.mean(reference**2) + 1e-20))


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_resampler_fed_in_frames_of_20_ms_equals_one_shot(from_hz: int, to_hz: int) -> None:
    """F-S1: a 440 Hz sine in 20 ms chunks against an independent one-shot resampler: error below -60 dB."""
    pcm = _sine(440, from_hz)
    streamed = _in_chunks(Resampler(from_hz, to_hz), pcm, [from_hz // 50])
    wanted = soxr.resample(pcm, from_hz, to_hz, quality="VHQ").astype(np.float64)
    assert abs(len(streamed) - len(wanted)) <= 1
    inner = slice(to_hz // 20, to_hz - to_hz // 20)
    assert _decibels(streamed[inner] - wanted[inner], wanted[inner]) < -60


@given(
    st.sampled_from(RATES),
    st.lists(st.integers(1, 700), min_size=1, max_size=8),
    st.integers(0, 3_000),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_resampler_result_does_not_depend_on_the_chunks(
    rates: tuple[int, int], sizes: list[int], length: int, seed: int
) -> None:
    """However the sound is cut, the samples are those of one piece, to a step of rounding."""
    pcm = np.random.default_rng(seed).integers(-20_000, 20_000, length).astype(np.int16)
    chunked = _in_chunks(Resampler(*rates), pcm, sizes).astype(np.int32)
    whole = _at_once(*rates, pcm).astype(np.int32)
    assert len(chunked) == len(whole) == -(-length * rates[1] // rates[0])
    assert np.all(np.abs(chunked - whole) <= 1)


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_resampler_holds_back_a_few_milliseconds_only(from_hz: int, to_hz: int) -> None:
    """After any number of input samples at most 4 ms of them have not come out: nothing waits for a block."""
    resampler = Resampler(from_hz, to_hz)
    given_in = given_out = 0
    for size in [1, 7, 160, 441, 960, 13] * 20:
        given_in += size
        given_out += len(resampler.feed(np.zeros(size, dtype=np.int16)))
        assert given_in / from_hz - given_out / to_hz <= 0.004 + 1 / to_hz


def test_resampler_may_return_nothing() -> None:
    """F-S1: too little input gives an empty array, not an error, and nothing is lost by it."""
    resampler = Resampler(48_000, 16_000)
    assert len(resampler.feed(np.zeros(0, dtype=np.int16))) == 0
    assert len(resampler.feed(np.ones(5, dtype=np.int16))) == 0
    assert len(resampler.flush()) == 2


@pytest.mark.parametrize("hz", [8_400, 9_000, 12_000, 20_000])
def test_resampler_lets_nothing_above_half_the_rate_through(hz: int) -> None:
    """What 16 kHz cannot hold is gone by 70 dB instead of folded into the speech band."""
    out = _at_once(48_000, 16_000, _sine(hz, 48_000)).astype(np.float64)[800:-800]
    assert np.sqrt(np.mean(out**2)) < 12_000 / np.sqrt(2) * 10 ** (-70 / 20)


@pytest.mark.parametrize("hz", [50, 300, 3_000, 6_500])
def test_resampler_passes_speech_flat(hz: int) -> None:
    """From 48 to 16 kHz the band of speech keeps its level within 0.05 dB."""
    out = _at_once(48_000, 16_000, _sine(hz, 48_000)).astype(np.float64)[800:-800]
    level = 20 * np.log10(np.sqrt(np.mean(out**2)) / (12_000 / np.sqrt(2)))
    assert abs(level) < 0.05


def test_resampler_clips_instead_of_wrapping_around() -> None:
    """Overshoot at a square wave's edges stays at full scale: a wrapped sample would be a loud click."""
    square = np.where(np.arange(4_800) // 240 % 2 == 0, 32_767, -32_768).astype(np.int16)
    out = _at_once(48_000, 24_000, square).astype(np.int32)
    middle_of_plateaus = out[60::120]
    assert np.all(np.abs(middle_of_plateaus) > 32_000)
    assert np.all(
        np.sign(middle_of_plateaus) == np.sign(np.where(np.arange(len(middle_of_plateaus)) % 2 == 0, 1, -1))
    )


def test_resampler_flushed_begins_a_new_stream() -> None:
    """After `flush` the next sound comes out as from a fresh resampler."""
    pcm = _sine(440, 24_000, 0.1)
    resampler = Resampler(24_000, 16_000)
    _in_chunks(resampler, pcm, [123])
    assert np.array_equal(
        _in_chunks(resampler, pcm, [480]), _in_chunks(Resampler(24_000, 16_000), pcm, [480])
    )


def test_resampler_of_equal_rates_passes_sound_on() -> None:
    """Nothing is changed and nothing waits."""
    resampler = Resampler(24_000, 24_000)
    pcm = _sine(440, 24_000, 0.02)
    assert np.array_equal(resampler.feed(pcm), pcm)
    assert len(resampler.flush()) == 0


@pytest.mark.parametrize(("from_hz", "to_hz"), [(0, 16_000), (16_000, -1), (15_991, 16_000)])
def test_resampler_refuses_rates_it_cannot_serve(from_hz: int, to_hz: int) -> None:
    """Zero, negative and incommensurable rates raise at construction, not at the first sound."""
    with pytest.raises(ValueError, match=r"Hz|rates"):
        Resampler(from_hz, to_hz)
