"""What an outage does to the words before and after it: recordings in a call whose line is cut for three seconds in
between, beside a call that says the same over a clear line."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.network_ears import Mouth, OurEar
from benchmarks.network_faults import CLEAR, CUT
from benchmarks.recordings import Recording
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ, Pcm
from modalities.text.normalize import normalize, word_errors
from orchestrator.clients.recording import CALL_RATE_HZ, Samples, read_recording

CUT_S = 3.0
QUIET_S = 0.6
"""Before, between and behind what is said."""

SETTLE_S = 0.5
FRAMES_PER_S = 50


@dataclass(frozen=True, slots=True)
class Outage:
    """Figures over all pairs of recordings: word errors in percent before and after the outage, and of the same over a
    clear line; how far the second recording lay from its place, seen from the first (worst, ms)."""

    words: int
    before_percent: float
    after_percent: float
    clear_before_percent: float
    clear_after_percent: float
    shift_ms: float


@dataclass(frozen=True, slots=True)
class Heard:
    """What of two recordings was heard, each with some quiet around, and how far apart they lay from what was said."""

    before: Pcm
    after: Pcm
    shift_ms: float


async def say_around(first: Samples, middle: Samples, second: Samples, cut: bool, seed: int) -> Heard:
    """Says three 48 kHz recordings in a call, the middle one for `CUT_S` seconds, in which the line is cut or not."""
    ear, mouth = OurEar(), Mouth(resends=True)
    quiet = np.zeros(int(QUIET_S * CALL_RATE_HZ), np.int16)
    middle = np.pad(middle, (0, int(CUT_S * CALL_RATE_HZ)))[: int(CUT_S * CALL_RATE_HZ)]
    pieces = [quiet, first, quiet, middle, quiet, second, quiet]
    starts = [0, *(int(stop) for stop in np.cumsum([len(piece) for piece in pieces]))]
    try:
        relay = await mouth.call(ear, seed)
        while not ear.hearing.pieces:  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)
        begin = len(mouth.sent_s)
        said = mouth.microphone.say(np.concatenate(pieces))
        for at, line in ((starts[3], CUT if cut else CLEAR), (starts[4], CLEAR)):
            while len(mouth.sent_s) < begin + at * FRAMES_PER_S // CALL_RATE_HZ:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)
            relay.set(line)
        await said
        await asyncio.sleep(SETTLE_S)
        heard = ear.hearing.sound()
    finally:
        await mouth.close()
        await ear.close()
    sounds = [_at_speech_rate(sound) for sound in (first, second)]
    split = find(sounds[0], heard) + len(sounds[0])
    found = [find(sounds[0], heard[:split]), split + find(sounds[1], heard[split:])]
    apart_s = (starts[5] - starts[1]) / CALL_RATE_HZ
    margin = int(QUIET_S * SPEECH_RATE_HZ * 2 / 3)
    before, after = (
        heard[max(0, at - margin) : at + len(sound) + margin] for at, sound in zip(found, sounds, strict=True)
    )
    return Heard(before, after, round(1_000 * ((found[1] - found[0]) / SPEECH_RATE_HZ - apart_s), 1))


def _at_speech_rate(sound: Samples) -> Pcm:
    resampler = Resampler(CALL_RATE_HZ, SPEECH_RATE_HZ)
    return np.concatenate([resampler.feed(sound), resampler.flush()])


def find(sound: Pcm, within: Pcm) -> int:
    """Returns where `sound` lies in a longer one, by its correlation."""
    size = 1 << (len(within) + len(sound)).bit_length()
    spectra: list[NDArray[np.complex128]] = [
        np.fft.rfft(one.astype(np.float64), size) for one in (within, sound)
    ]
    likeness = np.fft.irfft(spectra[0] * np.conj(spectra[1]), size)[: max(1, len(within) - len(sound) + 1)]
    return int(np.argmax(likeness))


async def compare(
    recordings: Sequence[Recording], recognise: Callable[[Pcm], str], done: Callable[[], None]
) -> Outage:
    """Says each pair of neighbours around an outage and over a clear line, at the same time."""
    shift_ms = 0.0
    words, errors = np.zeros(2, np.int64), np.zeros((2, 2), np.int64)
    for number, pair in enumerate(pairwise(recordings)):
        first, second = [await asyncio.to_thread(read_recording, one.path) for one in pair]
        middle = second[::-1].copy()  # as loud as speech, and found nowhere else
        ways = await asyncio.gather(
            *(say_around(first, middle, second, cut, 10 * number) for cut in (True, False))
        )
        wanted = [normalize(one.transcript or "") for one in pair]
        words += [len(one) for one in wanted]
        for way, heard in enumerate(ways):
            for part, pcm in enumerate((heard.before, heard.after)):
                got = normalize(await asyncio.to_thread(recognise, pcm))
                errors[way, part] += word_errors(wanted[part], got)
        shift_ms = max(shift_ms, abs(ways[0].shift_ms))
        done()
    (before, after), (clear_before, clear_after) = np.round(100 * errors / words, 1).tolist()
    return Outage(int(words.sum()), before, after, clear_before, clear_after, shift_ms)
