"""What one row of `voice` is: a server, a way to it, an end of turn, so many calls; and the run that fills it."""

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.outcome import Row
from benchmarks.voice_clips import Clip
from benchmarks.voice_lines import Doors, Line, settle
from benchmarks.voice_servers import ChildServer
from benchmarks.voice_turn import STAGES, Turn, TurnWatch, quantile_ms
from orchestrator.clients.address import CallFailed, ServerAway, ServerRefused

INSTRUCTIONS = "You are a helpful voice assistant. Answer in one short sentence."
REPLY_TOKENS = 60
TURNS_PER_CONVERSATION = 5
_STAGGER_S = 0.9
_PAUSE_S = (0.2, 1.2)
_AT_REST_S = 5.0
"""A call that has been silent for so long is at rest."""
_LEAD_S = 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """`end` is a name for the end of turn, ``server_vad 200`` for example; `early` off keeps replies from being begun
    before the turn is certain."""

    server: str
    transport: str
    end: str
    calls: int
    turns: int
    early: bool = True

    @property
    def title(self) -> str:
        early = "" if self.early else ", nothing early"
        return f"{self.server}, {self.transport}, {self.end}{early}, {self.calls} calls"

    def session(self) -> dict[str, Any]:
        """Returns the session settings of the Realtime protocol."""
        kind, _, silence = self.end.partition(" ")
        detection: dict[str, object] = {"type": kind}
        if silence:
            detection["silence_duration_ms"] = int(silence)
        heard = {"turn_detection": detection, "transcription": {"model": "whisper-1", "language": "en"}}
        return {
            "instructions": INSTRUCTIONS,
            "max_output_tokens": REPLY_TOKENS,
            "audio": {"input": heard},
        }


@dataclass(slots=True)
class Measured:
    """The turns of one case, and what the server used meanwhile."""

    case: Case
    turns: list[Turn] = field(default_factory=list)
    own_cores: float = 0.0
    all_cores: float = 0.0
    wasted: dict[str, float] = field(default_factory=dict)

    def row(self) -> Row:
        """Returns the row of the table; times in ms, processor in percent of one core."""
        times = [turn.sound_ms for turn in self.turns]
        answered = [turn for turn in self.turns if turn.sound_ms is not None]
        row: dict[str, Any] = {
            "server": self.case.server,
            "transport": self.case.transport,
            "end of turn by": self.case.end + ("" if self.case.early else ", nothing early"),
            "calls": self.case.calls,
            "turns": len(self.turns),
            "answered": len(answered),
            "p50": _whole(quantile_ms(times, 0.5)),
            "p95": _whole(quantile_ms(times, 0.95)),
        }
        for stage in STAGES:
            lasted = [turn.stages_ms()[stage] for turn in answered if stage in turn.stages_ms()]
            row[stage] = _whole(statistics.median(lasted)) if lasted else None
        row["cut in"] = sum(turn.early_end for turn in self.turns)
        row["server %"] = _whole(100 * self.own_cores)
        row["all %"] = _whole(100 * self.all_cores)
        return row


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


async def run_case(
    case: Case, doors: Doors, server: ChildServer, clips: Sequence[Clip], done: Callable[[Turn], None]
) -> Measured:
    """Speaks all turns of a case, its calls at the same time, each at its own pace."""
    measured = Measured(case)
    each = -(-case.turns // case.calls)
    lengths = [min(TURNS_PER_CONVERSATION, each - start) for start in range(0, each, TURNS_PER_CONVERSATION)]

    def note(turn: Turn) -> None:
        measured.turns.append(turn)
        done(turn)

    async def caller(number: int) -> None:
        chance = random.Random(number)
        await asyncio.sleep(number * _STAGGER_S)
        said = number
        for length in lengths:
            rest = [clips[(said + index) % len(clips)] for index in range(length)]
            said += length
            await _converse(case, doors, rest, chance, note)

    began_s, before = time.monotonic(), server.usage()
    async with asyncio.TaskGroup() as group:
        for number in range(case.calls):
            group.create_task(caller(number))
    after, lasted_s = server.usage(), time.monotonic() - began_s
    measured.own_cores = (after.own_s - before.own_s) / lasted_s
    measured.all_cores = (after.all_s - before.all_s) / lasted_s
    return measured


async def silent_share(doors: Doors, server: ChildServer, calls: int, seconds: float) -> tuple[float, float]:
    """Returns how many cores so many silent calls take: the server's own process, and all of it."""
    async with asyncio.TaskGroup() as group:
        hang_up = asyncio.Event()
        waiting = [asyncio.Event() for _ in range(calls)]

        async def call(connected: asyncio.Event) -> None:
            async with doors.open({}):
                connected.set()
                await hang_up.wait()

        for connected in waiting:
            group.create_task(call(connected))
        for connected in waiting:
            await connected.wait()
        await asyncio.sleep(_AT_REST_S)
        began_s, before = time.monotonic(), server.usage()
        await asyncio.sleep(seconds)
        after, lasted_s = server.usage(), time.monotonic() - began_s
        hang_up.set()
    return (after.own_s - before.own_s) / lasted_s, (after.all_s - before.all_s) / lasted_s


async def _converse(
    case: Case, doors: Doors, clips: Sequence[Clip], chance: random.Random, note: Callable[[Turn], None]
) -> None:
    left = list(clips)
    try:
        async with doors.open(case.session()) as line:
            await asyncio.sleep(_LEAD_S)
            while left:
                note(await _ask(line, left[0]))
                left.pop(0)
                await asyncio.sleep(chance.uniform(*_PAUSE_S))
    except (CallFailed, ServerAway, ServerRefused, OSError) as fault:
        for _ in left:
            note(Turn(None, {}, "", "", False, f"connection: {fault}"))


async def _ask(line: Line, clip: Clip) -> Turn:
    line.watch = TurnWatch()
    await line.say(clip)
    await settle(line)
    return line.watch.turn()


def session_of(turn: Turn) -> Mapping[str, Any]:
    """Returns a turn as JSON keeps it."""
    return {
        "sound_ms": turn.sound_ms,
        "moments_ms": dict(turn.moments_ms),
        "transcript": turn.transcript,
        "reply": turn.reply,
        "early_end": turn.early_end,
        "failure": turn.failure,
    }
