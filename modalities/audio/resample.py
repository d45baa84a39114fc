"""Changes the sample rate of a stream of sound with 2 to 4 ms of look-ahead.

A windowed-sinc polyphase filter in numpy: Kaiser window, linear phase, delay compensated, so that output sample k is
the sound at time k / `to_hz` (Crochiere and Rabiner, Multirate Digital Signal Processing, ch. 4). Stream resamplers
made for files work in blocks and hold back up to 115 ms; `docs/decisions/resampling.md` has the comparison.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from modalities.ports import Pcm

ZERO_CROSSINGS = 32
"""Half the filter's length, in samples of the lower rate: 2 ms at 16 kHz, 4 ms at 8 kHz."""

_KAISER_BETA = 8.0
"""Side lobes about 80 dB down, as little as 16-bit sound itself resolves."""

_CUTOFF = 0.92
"""Middle of the transition band, as a share of half the lower rate: at 16 kHz speech passes flat up to 6.8 kHz and what
could alias is down by 80 dB from 8.0 kHz on."""

_LEAST_BLOCK = 16
"""Outputs of one row of the matrix product, at least: wide rows copy less, narrow ones multiply fewer zeros."""


_MOST_PHASES = 1_000
"""Of real pairs of rates 11,025 and 16,000 Hz have the most (640); more would take a matrix of many megabytes."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """Input row (`width` samples, beginning `half` - 1 before the first output's time) @ `matrix` = `block` outputs.
    Successive rows begin `stride` input samples apart."""

    matrix: NDArray[np.float32]
    half: int
    width: int
    block: int
    stride: int


class Resampler:
    """Turns int16 mono at `from_hz` into int16 mono at `to_hz`, chunk by chunk, as if it were one piece.

    A chunk may give no sample at all. How the sound is cut into chunks changes no sample by more than one step.
    """

    __slots__ = ("_down", "_filter", "_held", "_next", "_origin", "_taken", "_up")

    def __init__(self, from_hz: int, to_hz: int) -> None:
        if from_hz < 1 or to_hz < 1:
            raise ValueError(f"sample rates are positive, not {from_hz} and {to_hz}")
        common = gcd(from_hz, to_hz)
        self._up = to_hz // common
        self._down = from_hz // common
        if max(self._up, self._down) > _MOST_PHASES:
            raise ValueError(f"{from_hz} and {to_hz} Hz have no common measure that a filter could use")
        self._filter = _design(self._up, self._down)
        self._restart()

    def feed(self, pcm: Pcm) -> Pcm:
        """Returns the samples that are certain once `pcm` has come; the last 2 to 4 ms wait for what follows."""
        if self._up == self._down:
            return pcm
        self._taken += len(pcm)
        certain = -(-(self._taken - self._filter.half) * self._up // self._down)
        return self._advance(pcm, certain)

    def flush(self) -> Pcm:
        """Returns what is left, taking silence to follow, and begins a new stream."""
        total = -(-self._taken * self._up // self._down)
        rest = self._advance(np.zeros(0, dtype=np.int16), total)
        self._restart()
        return rest

    def _restart(self) -> None:
        self._held = np.zeros(self._filter.half - 1, dtype=np.float32)
        self._origin = 1 - self._filter.half
        self._next = 0
        self._taken = 0

    def _advance(self, pcm: Pcm, stop: int) -> Pcm:
        """Adds input and returns output samples up to number `stop`."""
        use = self._filter
        if stop <= self._next:
            self._held = np.concatenate((self._held, pcm), dtype=np.float32)
            return np.zeros(0, dtype=np.int16)
        skipped = self._next % self._up
        rows = -(-(stop - self._next + skipped) // use.block)
        spare = max(0, (rows - 1) * use.stride + use.width - len(self._held) - len(pcm))
        padded = np.concatenate((self._held, pcm, np.zeros(spare, dtype=np.float32)), dtype=np.float32)
        step = padded.itemsize
        table = as_strided(padded, (rows, use.width), (use.stride * step, step), writeable=False)
        sound = (table @ use.matrix).ravel()[skipped : skipped + stop - self._next]
        self._next = stop
        first = stop // self._up * self._down - use.half + 1
        self._held = padded[first - self._origin : len(padded) - spare]
        self._origin = first
        np.rint(sound, out=sound)
        return sound.clip(-32_768, 32_767).astype(np.int16)


@lru_cache(maxsize=32)
def _design(up: int, down: int) -> _Filter:
    """Computes the filter for a ratio; each output's weights add up to 1, so a constant stays what it is."""
    slower = min(1.0, up / down)
    half = int(np.ceil(ZERO_CROSSINGS / slower))
    cycles = max(1, _LEAST_BLOCK // up)
    block = cycles * up
    width = 2 * half + (block - 1) * down // up
    inputs = np.arange(width)[:, None] - (half - 1)
    away = inputs - (np.arange(block) * down / up)[None, :]
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (away / half) ** 2, 0, 1))) / np.i0(_KAISER_BETA)
    cutoff = _CUTOFF * slower
    matrix = np.where(np.abs(away) < half, np.sinc(away * cutoff) * window, 0.0)
    matrix /= matrix.sum(axis=0, keepdims=True)
    return _Filter(matrix.astype(np.float32), half, width, block, cycles * down)
