"""Sentences become pieces of sound at one rate, from their first audible sample on."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.ports import Pcm
from orchestrator.scheduling.work import Report, Speak, SpeechPiece, Spoke, Understand
from orchestrator.workers.frames import Task
from orchestrator.workers.speak import LeadTrim, Speaker


def _tone(samples: int, rate_hz: int, pitch_hz: float = 440.0) -> Pcm:
    return np.round(np.sin(2 * np.pi * pitch_hz * np.arange(samples) / rate_hz) * 8_000).astype(np.int16)


class _Voice:
    def __init__(self, rate_hz: int, chunks: Sequence[Pcm]) -> None:
        self.sample_rate_hz = rate_hz
        self.chunks = chunks
        self.yielded = 0

    def synthesize(self, text: str, speed: float = 1.0) -> Iterator[Pcm]:
        for chunk in self.chunks:
            self.yielded += 1
            yield chunk


def _say(voice: _Voice, wanted_pieces: int = 1_000_000) -> list[Report]:
    told: list[Report] = []
    Speaker(voice).do([Task("j", Speak("Hello."))], told.append, lambda _: len(told) < wanted_pieces)
    return told


def _sound(told: list[Report]) -> Pcm:
    return np.frombuffer(b"".join(one.audio for one in told if isinstance(one, SpeechPiece)), dtype="<i2")


def test_speaker_pieces_are_short_numbered_and_complete() -> None:
    """A sentence of 1 s at 24 kHz: five pieces of 200 ms, then the end that counts them; the sound is unchanged."""
    sound = _tone(24_000, 24_000)
    told = _say(_Voice(24_000, [sound]))
    pieces = [one for one in told if isinstance(one, SpeechPiece)]
    assert [(one.index, one.samples, one.rate_hz) for one in pieces] == [(n, 4_800, 24_000) for n in range(5)]
    assert told[-1] == Spoke("j", 5)
    assert np.array_equal(_sound(told), sound)


def test_speaker_other_rates_come_out_as_one_stream_at_24_khz() -> None:
    """A voice at 22,050 Hz in ragged chunks: a clean tone of the same length and pitch, without ticks at the seams."""
    rate_hz = 22_050
    sound = _tone(rate_hz * 2, rate_hz)
    cuts = np.split(sound, [1_000, 1_001, 9_000, 30_000])
    out = _sound(_say(_Voice(rate_hz, cuts))).astype(np.float64)
    assert abs(len(out) - 48_000) <= 2
    expected = np.sin(2 * np.pi * 440.0 * np.arange(len(out)) / 24_000) * 8_000
    error = (out - expected)[500:-500]
    assert 20 * np.log10(np.sqrt(np.mean(error**2)) / (8_000 / np.sqrt(2))) < -60


@pytest.mark.parametrize("silence_ms", [0, 4, 35, 180, 2_000])
def test_speaker_less_than_30_ms_of_silence_precede_the_sound(silence_ms: int) -> None:
    """What a voice waits before it speaks is not waited for by the user."""
    rate_hz = 16_000
    chunks = [np.zeros(rate_hz * silence_ms // 1000, np.int16), _tone(rate_hz, rate_hz)]
    out = _sound(_say(_Voice(rate_hz, [np.concatenate(chunks)])))
    onset = int(np.flatnonzero(np.abs(out.astype(int)) > 500)[0])
    assert onset < 0.030 * 24_000
    assert len(out) - onset == pytest.approx(24_000, abs=30)


def test_speaker_sentence_of_silence_has_no_pieces_and_ends() -> None:
    """A text that says nothing ends all the same."""
    assert _say(_Voice(16_000, [np.zeros(16_000, np.int16)] * 3)) == [Spoke("j", 0)]
    assert _say(_Voice(16_000, [])) == [Spoke("j", 0)]


def test_speaker_cancel_stops_the_voice_at_its_next_chunk() -> None:
    """Neither more pieces nor more synthesis, and no end that claims completeness."""
    voice = _Voice(24_000, [_tone(4_800, 24_000)] * 50)
    told = _say(voice, wanted_pieces=3)
    assert len(told) == 3
    assert not any(isinstance(one, Spoke) for one in told)
    assert voice.yielded <= 4


def test_speaker_cancel_is_heard_during_silence_too() -> None:
    """A voice that has not made a sound yet is stopped all the same."""
    voice = _Voice(24_000, [np.zeros(4_800, np.int16)] * 50)
    assert _say(voice, wanted_pieces=0) == []
    assert voice.yielded == 1


def test_speaker_other_work_is_a_fault() -> None:
    """A text to understand is not said."""
    with pytest.raises(TypeError):
        Speaker(_Voice(24_000, [])).do([Task("j", Understand("x"))], lambda _: None, lambda _: True)


def test_speaker_probe_takes_the_first_chunk_only() -> None:
    """A real synthesis, no longer than needed."""
    voice = _Voice(24_000, [_tone(4_800, 24_000)] * 50)
    assert Speaker(voice).probe() == "_Voice at 24000 Hz"
    assert voice.yielded == 1


@given(st.integers(0, 3_000), st.lists(st.integers(1, 700), max_size=30))
def test_lead_trim_any_cut_loses_nothing_but_silence(lead: int, cuts: list[int]) -> None:
    """However the stream is cut: what comes out is its end, and what is missing is only zeros."""
    stream = np.concatenate((np.zeros(lead, np.int16), _tone(2_000, 16_000)))
    trim = LeadTrim(16_000)
    places = [place for place in np.cumsum(cuts) if place < len(stream)]
    out = np.concatenate([trim.feed(chunk) for chunk in np.split(stream, places)])
    assert np.array_equal(out, stream[len(stream) - len(out) :])
    removed = len(stream) - len(out)
    assert removed <= lead
    assert lead - removed <= 16 * 30
