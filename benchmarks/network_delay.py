"""How long sound takes into a server's hand over a bad network, and where it lies afterwards: ours beside aiortc's.

Both hear the same beeps, at the same time, through relays with the same seed: a clear line, then a bad one, a clear
one, none at all, and a clear one again.
"""

import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from benchmarks.network_ears import FRAME, BareEar, Ear, Mouth, OurEar, beeps, onsets
from benchmarks.network_faults import CLEAR, CUT, Conditions
from benchmarks.network_relay import Relay
from modalities.ports import SPEECH_RATE_HZ, Pcm

BAD = Conditions(loss=0.05, delay_s=0.02, jitter_s=0.06, swapped=0.02, doubled=0.02)
"""5 % lost, 60 ms of jitter, 2 % out of order, 2 % twice."""


@dataclass(frozen=True, slots=True)
class Stages:
    """How long each stage lasts, in seconds; whole seconds, so that beeps fall into the same places."""

    clear: int = 4
    bad: int = 20
    mended: int = 8
    cut: int = 3
    after: int = 8


@dataclass(frozen=True, slots=True)
class Delay:
    """One way's figures in ms. Delays are medians, from sending a frame until the server had it; `mended_ms` and
    `after_ms` leave the first second of their stage out. `lost_percent`: frames of the bad stage that were never there
    (the relay lost `line_lost_percent` of all packets). Shifts: how far the beeps after the outage lie from their
    places, by their stamps and, where that is how it is read, with sound strung together."""

    way: str
    base_ms: float
    bad_ms: float
    mended_ms: float
    after_ms: float
    line_lost_percent: float
    lost_percent: float
    shift_ms: float
    strung_shift_ms: float | None


async def measure(stages: Stages, conditions: Conditions = BAD, seed: int = 1) -> tuple[Delay, Delay]:
    """Runs the stages for both ways at once; returns ours, then aiortc's."""
    ears: tuple[Ear, Ear] = (OurEar(), BareEar())
    mouths = (Mouth(), Mouth())
    try:
        relays = await asyncio.gather(*(m.call(ear, seed) for m, ear in zip(mouths, ears, strict=True)))
        await asyncio.gather(*(_wait_for_sound(ear) for ear in ears))
        counts = await _play(mouths, relays, ears, stages, conditions)
    finally:
        for one in (*mouths, *ears):
            await one.close()
    ours, theirs = (_judge(ear, mouth, every) for ear, mouth, every in zip(ears, mouths, counts, strict=True))
    return ours, theirs


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a stage began: its first frame, and what was lost until then, of packets and of frames."""

    frame: int
    sent: int
    lost: int
    never_heard: int


async def _wait_for_sound(ear: Ear) -> None:
    while not ear.hearing.pieces:  # noqa: ASYNC110 - what is waited for tells nobody
        await asyncio.sleep(0.01)


async def _play(
    mouths: Sequence[Mouth],
    relays: Sequence[Relay],
    ears: Sequence[Ear],
    stages: Stages,
    conditions: Conditions,
) -> list[list[Mark]]:
    """Says the beeps while the stages pass; returns for each mouth where they began, and where the last one ended."""
    begin = [len(mouth.sent_s) for mouth in mouths]
    for mouth in mouths:
        mouth.microphone.say(beeps(sum(astuple(stages))))
    marks: list[list[Mark]] = [[] for _ in mouths]
    passed_s = 0

    async def reach(number: int) -> None:
        frame = begin[number] + 50 * passed_s
        await _until(mouths[number], frame)
        line = relays[number].statistics()[0]
        marks[number].append(Mark(frame, line.sent, line.lost, ears[number].never_heard))

    for duration_s, line in zip(
        (*astuple(stages), 1), (CLEAR, conditions, CLEAR, CUT, CLEAR, CLEAR), strict=True
    ):
        await asyncio.gather(*(reach(number) for number in range(len(mouths))))
        for relay in relays:
            relay.set(line)
        passed_s += duration_s
    await asyncio.sleep(1)  # a full jitter buffer lets the last of it go
    return marks


async def _until(mouth: Mouth, frame: int) -> None:
    while len(mouth.sent_s) < frame:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.005)


def _judge(ear: Ear, mouth: Mouth, marks: Sequence[Mark]) -> Delay:
    begin, bad, mended, cut, after, end = (mark.frame for mark in marks)
    hearing = ear.hearing
    # Frames that left before the line stood are nobody's: the first beep, on a clear line, tells how many.
    ahead = begin - round(onsets(hearing.sound())[0] * SPEECH_RATE_HZ / FRAME)
    delays_ms = {
        frame + ahead: (at_s - mouth.sent_s[frame + ahead]) * 1_000
        for frame, at_s in hearing.frames_at().items()
        if 0 <= frame + ahead < len(mouth.sent_s)
    }

    def median(start: int, stop: int) -> float:
        found = [delays_ms[frame] for frame in range(start, stop) if frame in delays_ms]
        return round(statistics.median(found), 1) if found else float("nan")

    packets, lost = marks[2].sent - marks[1].sent, marks[2].lost - marks[1].lost
    never_heard = marks[3].never_heard - marks[1].never_heard
    return Delay(
        way=ear.name,
        base_ms=median(begin, bad),
        bad_ms=median(bad, mended),
        mended_ms=median(mended + 50, cut),
        after_ms=median(after + 50, end),
        line_lost_percent=round(100 * lost / packets, 1),
        lost_percent=round(100 * never_heard / (mended - bad), 1),
        shift_ms=_shift_ms(hearing.sound(), (end - after) // 50, (after - begin) / 50),
        strung_shift_ms=_shift_ms(hearing.sound(strung=True), (end - after) // 50, (after - begin) / 50)
        if ear.strings
        else None,
    )


def _shift_ms(sound: Pcm, beeps_after: int, after_s: float) -> float:
    """Returns the worst distance of the last beeps from where they belong, one a second, seen from the first."""
    found = onsets(sound)
    first, last = found[0], np.array(found[-beeps_after:])
    wanted = first + after_s + np.arange(beeps_after)
    return round(float(np.abs(last - wanted).max()) * 1_000, 1) if len(last) == beeps_after else float("nan")
