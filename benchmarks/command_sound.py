"""How the commands of `chorale bench commands` sound: the project's own voice, in rooms, on telephones and in noise.

Everything is drawn by a seed and is the same sound each time. The voice says a sentence without variation; speakers are
that voice at another pitch and speed. It is one voice all the same: what is measured with it is no promise for people.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_lines import Half
from modalities.adapters.piper import Piper, PiperSettings
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.clients.recording import read_recording

Float = NDArray[np.float64]
Channel = Literal["near", "room", "telephone"]

SNRS: tuple[int | None, ...] = (None, 20, 10, 5, 0)
"""Decibels between the speech and the noise, while somebody speaks; None: no noise is added."""

CHANNELS: Mapping[Channel, int] = {"near": 60, "room": 22, "telephone": 18}
SPEAKERS: Mapping[Half, Sequence[tuple[float, float]]] = {
    "tuned": ((1.0, 1.0), (0.93, 1.1), (1.07, 0.9)),
    "held": ((0.97, 1.05), (1.12, 1.0), (0.89, 0.95)),
}
"""Pitch and speed of the voice, in parts of its own."""

REAL_NOISE: Mapping[Half, Sequence[str]] = {
    "tuned": ("nonspeech/noise1_0-10s.flac", "nonspeech/office_ambience_20-35s.flac"),
    "held": ("nonspeech/noise2.flac", "nonspeech/noise3.flac", "nonspeech/music_cold_day_10-20s.flac"),
}
_CHATTER: Mapping[Half, Sequence[str]] = {
    "tuned": (
        "I told her that we could not possibly leave before the end of the month.",
        "He said the trains were late again, so nobody was surprised.",
        "Have you seen where they put the big ladder this morning?",
        "We had the best soup that you can imagine, and it was not even dear.",
    ),
    "held": (
        "They are going to paint the whole house over the summer, I believe.",
        "My brother never answers when somebody asks him about work.",
        "It was so loud in there that we went home early.",
        "Which one of you has taken the keys from the table?",
    ),
}
BEFORE_S, BEHIND_S = 0.6, 0.4
_LEVEL = 0.08
"""Root mean square of the speech, of full scale."""


@dataclass(frozen=True, slots=True)
class Air:
    """Where somebody speaks, and through what. `noise`: white, pink, babble, real, or none."""

    speaker: int
    channel: Channel
    snr_db: int | None
    noise: str


def airs(half: Half, seed: int, number: int, real: bool) -> Air:
    """Returns the air of the n-th command: the levels of noise in turn, everything else drawn."""
    drawn = np.random.default_rng([seed, number, half == "held"])
    snr = SNRS[number // 3 % len(SNRS)]  # three domains take turns
    kinds = ["white", "pink", "babble", "babble", *(["real", "real"] if real else [])]
    noise = "none" if snr is None else str(drawn.choice(kinds))
    weights = np.array(list(CHANNELS.values())) / sum(CHANNELS.values())
    channel: Channel = tuple(CHANNELS)[int(drawn.choice(len(CHANNELS), p=weights))]
    return Air(int(drawn.integers(len(SPEAKERS[half]))), channel, snr, noise)


@dataclass(slots=True)
class Studio:
    """Says and mixes. `speech`: the folder of recorded speech, where real noises are taken from. `keep`: a folder in
    which the voice's sentences are kept."""

    speech: Path | None = None
    keep: Path | None = None
    _voice: Piper | None = None
    _noises: dict[tuple[Half, str], Float] = field(default_factory=dict)

    def record(self, half: Half, text: str, air: Air, seed: int) -> Pcm:
        """Returns somebody saying a text, with a little before and behind it, at 16 kHz."""
        pitch, speed = SPEAKERS[half][air.speaker]
        return self.mix(half, self._said(text, pitch, speed), air, _seed(seed, text))

    def mix(self, half: Half, said: Float, air: Air, seed: int) -> Pcm:
        """Returns speech as it comes through the air."""
        drawn = np.random.default_rng(seed)
        level = np.sqrt(np.mean(np.square(said[np.abs(said) > 0.02 * np.abs(said).max()])))
        said = said * (_LEVEL / max(level, 1e-9))
        if air.channel == "room":
            said = _in_room(said, drawn)
        before, behind = (np.zeros(round(one * SPEECH_RATE_HZ)) for one in (BEFORE_S, BEHIND_S))
        whole = np.concatenate((before, said, behind))
        if air.snr_db is not None:
            noise = self._noise(half, air.noise, len(whole), drawn)
            whole = whole + noise * _LEVEL / 10 ** (air.snr_db / 20)
        if air.channel == "telephone":
            whole = _by_telephone(whole)
        found: Pcm = np.clip(np.round(whole * 32_767), -32_768, 32_767).astype(np.int16)
        return found

    def _said(self, text: str, pitch: float, speed: float) -> Float:
        """A higher voice is the same sound faster; its speed is made up for by saying it slower."""
        name = hashlib.blake2b(f"{text}/{pitch}/{speed}".encode(), digest_size=12).hexdigest()
        file = self.keep / f"{name}.npy" if self.keep else None
        if file is not None and file.is_file():
            return np.asarray(np.load(file), np.float64) / 32_768
        if self._voice is None:
            self._voice = Piper(PiperSettings(variation=0.0))
        rate = round(self._voice.sample_rate_hz * pitch / 50) * 50
        resampler = Resampler(rate, SPEECH_RATE_HZ)
        pieces = [resampler.feed(chunk) for chunk in self._voice.synthesize(text, speed / pitch)]
        pcm = np.concatenate([*pieces, resampler.flush()]).astype(np.int16)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, pcm)
        return pcm.astype(np.float64) / 32_768

    def _noise(self, half: Half, kind: str, length: int, drawn: np.random.Generator) -> Float:
        """Returns noise of level 1."""
        if kind == "white":
            found: Float = drawn.normal(0, 1, length)
        elif kind == "pink":
            found = _pink(drawn.normal(0, 1, length))
        else:
            source = self._source(half, kind, drawn)
            found = np.resize(np.roll(source, -int(drawn.integers(len(source)))), length)
        return found / max(float(np.sqrt(np.mean(np.square(found)))), 1e-9)

    def _source(self, half: Half, kind: str, drawn: np.random.Generator) -> Float:
        if kind == "babble":
            if (half, kind) not in self._noises:
                voices = [
                    self._said(text, pitch, 1.0)
                    for text, pitch in zip(_CHATTER[half], (0.9, 1.0, 1.1, 1.2), strict=True)
                ]
                longest = max(map(len, voices))
                self._noises[half, kind] = np.sum([np.resize(one, longest) for one in voices], axis=0)
            return self._noises[half, kind]
        assert self.speech is not None
        name = str(drawn.choice(list(REAL_NOISE[half])))
        if (half, name) not in self._noises:
            pcm = read_recording(self.speech / name, SPEECH_RATE_HZ)
            self._noises[half, name] = pcm.astype(np.float64) / 32_768
        return self._noises[half, name]


def _seed(seed: int, text: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}/{text}".encode(), digest_size=8).digest())


def _pink(white: Float) -> Float:
    spectrum = np.fft.rfft(white)
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 1))
    return np.asarray(np.fft.irfft(spectrum, len(white)), np.float64)


def _in_room(said: Float, drawn: np.random.Generator) -> Float:
    """A room of 0.25 to 0.6 s: decaying noise behind the direct sound, as loud as that (direct to reverberant 3 dB)."""
    decay_s = drawn.uniform(0.25, 0.6)
    times = np.arange(round(decay_s * SPEECH_RATE_HZ)) / SPEECH_RATE_HZ
    tail = drawn.normal(0, 1, len(times)) * np.exp(-6.9 * times / decay_s)
    tail *= 10 ** (-3 / 20) / np.sqrt(np.sum(np.square(tail)))
    tail[0] = 1.0
    length = len(said) + len(tail) - 1
    size = 1 << (length - 1).bit_length()
    return np.asarray(
        np.fft.irfft(np.fft.rfft(said, size) * np.fft.rfft(tail, size), size)[:length], np.float64
    )


def _by_telephone(sound: Float) -> Float:
    """300 to 3,400 Hz, and eight bits of the µ-law."""
    spectrum = np.fft.rfft(sound)
    frequencies = np.fft.rfftfreq(len(sound), 1 / SPEECH_RATE_HZ)
    spectrum[(frequencies < 300) | (frequencies > 3_400)] = 0
    narrow = np.clip(np.fft.irfft(spectrum, len(sound)), -1, 1)
    folded = np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log(256)
    steps = np.round(folded * 127) / 127
    return np.asarray(np.sign(steps) * (256 ** np.abs(steps) - 1) / 255, np.float64)
