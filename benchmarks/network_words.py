"""What a bad network costs in words: recordings spoken into our door over several lines at once, then recognised."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.direct import BEAM, SAME_MODEL
from benchmarks.network_delay import BAD
from benchmarks.network_ears import Mouth, OurEar
from benchmarks.network_faults import CLEAR, Conditions
from benchmarks.recordings import Recording
from modalities.adapters.packages import package_file
from modalities.ports import Pcm
from modalities.text.normalize import normalize, word_errors
from orchestrator.clients.recording import CALL_RATE_HZ, read_recording

LINES: Mapping[str, Conditions] = {
    "clear": CLEAR,
    "5 %, jitter 60 ms": BAD,
    "5 % in bursts of 4": Conditions(loss=0.05, burst=4, delay_s=0.02, jitter_s=0.06),
    "5 % in bursts of 4, sent again": Conditions(loss=0.05, burst=4, delay_s=0.02, jitter_s=0.06),
    "10 %, jitter 60 ms": Conditions(loss=0.1, delay_s=0.02, jitter_s=0.06),
}
RESENDING = frozenset({"5 % in bursts of 4, sent again"})
"""Lines whose client offers to send lost packets again, as ours does and browsers where they are told to."""

LEAD_S = TAIL_S = 0.6
SETTLE_S = 0.5


@dataclass(frozen=True, slots=True)
class Words:
    """One line's figures over all clips: word errors, and packets lost, in percent."""

    line: str
    words: int
    errors_percent: float
    lost_percent: float


async def say_over(sound: Pcm, line: Conditions, seed: int, resends: bool = False) -> tuple[Pcm, int, int]:
    """Says 48 kHz sound in a call of its own; returns what the session heard, and packets sent and lost meanwhile."""
    ear, mouth = OurEar(), Mouth(resends)
    try:
        relay = await mouth.call(ear, seed)
        while not ear.hearing.pieces:  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)
        relay.set(line)
        mouth.microphone.say(np.zeros(int(LEAD_S * CALL_RATE_HZ), np.int16))
        await mouth.microphone.say(np.concatenate([sound, np.zeros(int(TAIL_S * CALL_RATE_HZ), np.int16)]))
        await asyncio.sleep(SETTLE_S)
        counted = relay.statistics()[0]
        return ear.hearing.sound(), counted.sent, counted.lost
    finally:
        await mouth.close()
        await ear.close()


def recogniser(threads: int) -> Callable[[Pcm], str]:
    """Returns what makes words of 16 kHz sound: the recogniser of `benchmarks.direct`."""
    from faster_whisper import WhisperModel

    folder = package_file(*SAME_MODEL)
    if folder is None:
        raise LookupError(f"the package {SAME_MODEL[0]} is not installed: chorale models install")
    model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=threads)

    def recognise(pcm: Pcm) -> str:
        segments, _ = model.transcribe(pcm.astype(np.float32) / 32_768, language="en", beam_size=BEAM)
        return " ".join(segment.text.strip() for segment in segments)

    return recognise


async def compare(
    recordings: Sequence[Recording], recognise: Callable[[Pcm], str], done: Callable[[], None]
) -> list[Words]:
    """Says each recording over every line at the same time; returns the figures of each line."""
    words = dict.fromkeys(LINES, 0)
    errors, sent, lost = dict(words), dict(words), dict(words)
    for number, recording in enumerate(recordings):
        sound = await asyncio.to_thread(read_recording, recording.path)
        heard = await asyncio.gather(
            *(say_over(sound, line, 10 * number, name in RESENDING) for name, line in LINES.items())
        )
        wanted = normalize(recording.transcript or "")
        for name, (pcm, packets, gone) in zip(LINES, heard, strict=True):
            words[name] += len(wanted)
            errors[name] += word_errors(wanted, normalize(await asyncio.to_thread(recognise, pcm)))
            sent[name] += packets
            lost[name] += gone
        done()
    return [
        Words(
            name,
            words[name],
            round(100 * errors[name] / words[name], 1),
            round(100 * lost[name] / sent[name], 1),
        )
        for name in LINES
    ]
