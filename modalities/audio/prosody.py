"""Pitch, loudness and voicing of speech, and how a phrase closes: pure numpy, causal, cheap enough for every pause.

A *contour* has one row per window of 512 samples (32 ms) of the 16 kHz stream. Pitch comes from the normalised
cross-correlation of the last two windows with themselves (D. Talkin, "A robust algorithm for pitch tracking", 1995),
at a quarter of the rate; a row depends on its window and the one before, on nothing else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modalities.ports import SPEECH_RATE_HZ, Pcm

WINDOW = 512
"""Samples per row of a contour."""

WINDOW_MS = WINDOW * 1_000 // SPEECH_RATE_HZ

LOWEST_HZ = 65.0
HIGHEST_HZ = 420.0
SILENT_DB = -100.0
"""Loudness of digital silence, dB below full scale."""

_DECIMATION = 4
_RATE = SPEECH_RATE_HZ // _DECIMATION
_FRAME = 2 * WINDOW // _DECIMATION
_SPAN = 1 << (2 * _FRAME - 1).bit_length()
_SHORTEST = int(_RATE / HIGHEST_HZ)
_LONGEST = int(_RATE / LOWEST_HZ) + 1
_VOICED = 0.6
_SAME_PEAK = 0.9
"""The shortest lag whose peak reaches this share of the highest one is the period: its multiples peak as well."""

_QUIET_BELOW_LOUDEST_DB = 30.0
_FAINTEST_DB = -65.0
"""Periodic sound below this is hum."""

_FINAL_WINDOWS = 8
_HELD_WINDOWS = 16
_FADE_WINDOWS = 10
_ONE_PITCH = 0.7
"""Semitones from one window to the next that are the same note."""

_OCTAVE_OFF = 9.0

_LEAST_VOICED = 4

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Contour:
    """Loudness (dB full scale), pitch (Hz, 0 where there is none) and voicing (0 to 1) of successive windows, each of
    shape (n,)."""

    loudness_db: Floats
    pitch_hz: Floats
    voicing: Floats

    def __len__(self) -> int:
        return len(self.loudness_db)

    @property
    def voiced(self) -> NDArray[np.bool_]:
        """Which windows hold a voice: periodic, and not far below the loudest of them."""
        if not len(self):
            return np.zeros(0, dtype=np.bool_)
        floor = max(_FAINTEST_DB, float(self.loudness_db.max()) - _QUIET_BELOW_LOUDEST_DB)
        voiced: NDArray[np.bool_] = (self.pitch_hz > 0) & (self.loudness_db > floor)
        return voiced


@dataclass(frozen=True, slots=True)
class Closing:
    """How a phrase ends, against the speech before it.

    `fall`: semitones that the pitch sinks over the last 250 ms of voice (negative: it rises). `depth`: semitones that
    it ends below the median. `held_ms`: the longest stretch of the last half second in which the voice runs on evenly,
    by under 0.7 semitones from window to window: a syllable drawn out, as by those who look
    for the next word; at ends voices creak, glide or fade instead.
    `fade_db`: how far the last third of a second lies under the loudest of the phrase.
    """

    fall: float
    depth: float
    held_ms: int
    fade_db: float


@dataclass(frozen=True, slots=True)
class Prosody:
    """Pitch and loudness of an extent of speech. `pitch_hz` is the median, `range_st` the semitones between the tenth
    and ninetieth part, both 0 without a voice; `voiced` is the share of windows that hold one. `closing` is None where
    there is too little voice to tell."""

    pitch_hz: float
    range_st: float
    loudness_db: float
    voiced: float
    closing: Closing | None


def contour(pcm: Pcm, before: Pcm | None = None) -> Contour:
    """Returns the contour of the whole windows in `pcm` (int16, 16 kHz). `before` is the window in front of it, where
    there is one: with it, sound cut into pieces gives the rows of the whole."""
    count = len(pcm) // WINDOW
    sound = np.zeros((count + 1, WINDOW), dtype=np.float32)
    if before is not None and len(before) >= WINDOW:
        sound[0] = before[-WINDOW:]
    sound[1:] = pcm[: count * WINDOW].reshape(count, WINDOW)
    sound /= 32_768.0
    return rows(sound[:-1], sound[1:])


def rows(past: Floats, now: Floats) -> Contour:
    """Returns one row per window of `now`, shape (n, 512) in [-1, 1]; `past` holds the windows before them. The windows
    may come from different streams."""
    power = np.einsum("ij,ij->i", now, now, dtype=np.float64) / WINDOW
    loudness = np.maximum(10 * np.log10(power + 1e-12), SILENT_DB).astype(np.float32)
    thin = np.concatenate((past, now), axis=1).reshape(-1, _FRAME, _DECIMATION).mean(axis=2)
    voicing, pitch = _pitch(thin - thin.mean(axis=1, keepdims=True))
    return Contour(loudness, pitch, voicing)


def prosody(extent: Contour) -> Prosody:
    """Returns what is to be said of an extent: a whole utterance or its last seconds."""
    voiced = extent.voiced
    loudness = extent.loudness_db[voiced] if voiced.any() else extent.loudness_db
    mean = 10 * np.log10(np.mean(10 ** (loudness.astype(np.float64) / 10))) if len(loudness) else SILENT_DB
    if not voiced.any():
        return Prosody(0.0, 0.0, float(mean), 0.0, None)
    pitch = extent.pitch_hz[voiced]
    low, median, high = np.percentile(pitch, (10, 50, 90))
    return Prosody(
        pitch_hz=float(median),
        range_st=_semitones(float(high), float(low)),
        loudness_db=float(mean),
        voiced=float(voiced.mean()),
        closing=_closing(extent, voiced),
    )


def _pitch(frames: Floats) -> tuple[Floats, Floats]:
    """Returns voicing and pitch of frames, shape (n, 256) at 4 kHz without mean."""
    n = len(frames)
    spectrum = np.fft.rfft(frames, _SPAN, axis=1)
    products = np.fft.irfft(spectrum * spectrum.conj(), _SPAN, axis=1)[:, : _LONGEST + 2]
    energy = np.zeros((n, _FRAME + 1))
    np.cumsum(np.square(frames, dtype=np.float64), axis=1, out=energy[:, 1:])
    lags = np.arange(_LONGEST + 2)
    head = energy[:, _FRAME - lags]
    tail = energy[:, -1:] - energy[:, lags]
    likeness = products / np.sqrt(head * tail + 1e-9)
    inner = likeness[:, _SHORTEST : _LONGEST + 1]
    peaks = (inner >= likeness[:, _SHORTEST - 1 : _LONGEST]) & (
        inner > likeness[:, _SHORTEST + 1 : _LONGEST + 2]
    )
    heights = np.where(peaks, inner, -1.0)
    highest = heights.max(axis=1, initial=-1.0)
    first = np.argmax(heights >= _SAME_PEAK * highest[:, None], axis=1) + _SHORTEST
    row = np.arange(n)
    left, top, right = (likeness[row, first + step] for step in (-1, 0, 1))
    bend = left - 2 * top + right
    shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, 1.0), 0.0)
    voicing = np.clip(highest, 0.0, 1.0)
    pitch = np.where(voicing >= _VOICED, _RATE / (first + np.clip(shift, -0.5, 0.5)), 0.0)
    return voicing.astype(np.float32), pitch.astype(np.float32)


def _closing(extent: Contour, voiced: NDArray[np.bool_]) -> Closing | None:
    where = np.flatnonzero(voiced)
    if len(where) < _LEAST_VOICED:
        return None
    track = np.full(len(extent), np.nan)
    track[where] = _folded(12 * np.log2(extent.pitch_hz[where].astype(np.float64)))
    last = track[max(0, int(where[-1]) + 1 - _FINAL_WINDOWS) : where[-1] + 1]
    last = last[~np.isnan(last)]
    third = -(-len(last) // 3)
    end = float(np.median(last[-third:]))
    loudness = extent.loudness_db
    return Closing(
        fall=float(np.median(last[:third])) - end,
        depth=float(np.nanmedian(track)) - end,
        held_ms=_longest(np.abs(np.diff(track[-_HELD_WINDOWS - 1 :])) < _ONE_PITCH) * WINDOW_MS,
        fade_db=float(np.percentile(loudness, 95) - loudness[-_FADE_WINDOWS:].mean()),
    )


def _folded(semitones: NDArray[np.float64]) -> NDArray[np.float64]:
    """Takes pitches that lie about an octave off for the octave errors that they mostly are."""
    off = semitones - float(np.median(semitones))
    folded: NDArray[np.float64] = np.where(off > _OCTAVE_OFF, semitones - 12, semitones)
    return np.where(off < -_OCTAVE_OFF, semitones + 12, folded)


def _longest(claims: NDArray[np.bool_]) -> int:
    """Returns the length of the longest run of True."""
    longest = run = 0
    for claim in claims.tolist():
        run = run + 1 if claim else 0
        longest = max(longest, run)
    return longest


def _semitones(high: float, low: float) -> float:
    return 12 * float(np.log2(high / low))
