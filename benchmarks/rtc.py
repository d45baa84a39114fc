"""`chorale bench rtc`: how many WebRTC calls one core hears, beside the bare echo of aiortc in the same run.

Continuous speech comes in, silence goes out, voice activity detection is on, no model is behind it; the yardstick is
the echo of aiortc's examples, with the same codec and packet rate, as it is shipped and (``aiortc+numpy``) with the one
function that takes half of its time computed by numpy. Calls per core are found by ramp: the most at which all frames
are still processed (less than 0.1 % missing) and the event loop is late by less than 50 ms (p99). The server has a core
of its own, and clients another one, where there are two.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
import uvloop
from rich.console import Console

from benchmarks.call_cost import speech
from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.microphone import FRAME_SAMPLES, Microphone

WAYS = ("aiortc", "aiortc+numpy", "chorale")
GOAL = 2.5
MOST_MISSING = 0.001
MOST_LAG_MS = 50.0
FEW_CALLS = 4
SETTLE_S = 2.0
READY_WITHIN_S = 30.0


def command(
    ways: Annotated[str, typer.Option(help="Which servers, comma-separated.")] = ",".join(WAYS),
    calls: Annotated[int, typer.Option(min=0, help="So many calls and no ramp.")] = 0,
    most: Annotated[int, typer.Option(min=1, help="Where the ramp ends at the latest.")] = 96,
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each step is measured.")] = 4.0,
    profile: Annotated[bool, typer.Option("--profile", help="Profile the event loop too.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """How many WebRTC calls one core hears, beside the echo of aiortc.

    \b
    Examples:
      chorale bench rtc                           the ramp of all three, some minutes
      chorale bench rtc --calls 2 --seconds 2     no ramp: what two calls cost
      chorale bench rtc --profile                 and where the event loop's time goes
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    outcome = Outcome("rtc", {"ways": ways, "calls": calls, "most": most, "seconds": seconds})
    found: dict[str, int] = {}
    rows: list[Row] = []
    for way in ways.split(","):
        steps = uvloop.run(measure(way, calls, most, seconds, profile, console, outcome))
        passed = [step for step in steps if step.holds]
        found[way] = max((step.calls for step in passed), default=0)
        outcome.figures[f"calls per core, {way}"] = found[way]
        if all(step.holds for step in steps):
            outcome.figures[f"limit not reached, {way}"] = True
        rows += [step.row(way) for step in sorted(steps, key=lambda step: step.calls)]
    outcome.tables["steps"] = rows
    console.print(table("Calls on one core", rows))
    if not calls:
        for way in WAYS[:2]:
            if found.get(way) and "chorale" in found:
                ratio = found["chorale"] / found[way]
                outcome.figures[f"of {way}"] = ratio
                if way == "aiortc" and "limit not reached, aiortc" not in outcome.figures:
                    text = f"calls per core: at least {GOAL} times the echo of aiortc as it is shipped"
                    outcome.claims.append(Claim(text, ratio >= GOAL, ratio))
        console.print(
            ", ".join(f"{name}: {value}" for name, value in outcome.figures.items()), highlight=False
        )
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


@dataclass(frozen=True, slots=True)
class Step:
    """One number of calls and what became of them. Shares are of one core; `clients` is what the load itself took."""

    calls: int
    missing: float
    lag_p99_ms: float
    cpu: float
    loop_cpu: float
    clients: float

    @property
    def holds(self) -> bool:
        """All frames were processed, and in time."""
        return self.missing < MOST_MISSING and self.lag_p99_ms < MOST_LAG_MS

    def row(self, way: str) -> Row:
        return {
            "way": way,
            "calls": self.calls,
            "holds": "yes" if self.holds else "no",
            "% missing": round(100 * self.missing, 2),
            "loop lag p99 ms": round(self.lag_p99_ms, 1),
            "% of a core": round(100 * self.cpu, 1),
            "% per call": round(100 * self.cpu / self.calls, 2),
            "of it, event loop": round(100 * self.loop_cpu / self.calls, 2),
            "% clients": round(100 * self.clients, 1),
        }


class Tape(Microphone):
    """Says one coded recording again and again, from a place of its own: costs its process next to nothing."""

    def __init__(self, packets: list[bytes], start: int) -> None:
        super().__init__()
        self._packets = packets
        self._at = start

    def _next_payload(self) -> bytes:
        self._at = (self._at + 1) % len(self._packets)
        return self._packets[self._at]


class Lines:
    """Calls that speak without end; use as ``async with``."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._packets = coded_speech()
        self._stacks: list[AsyncExitStack] = []

    def __len__(self) -> int:
        return len(self._stacks)

    async def make(self, count: int) -> None:
        """Calls, or hangs up, until there are so many."""
        while len(self._stacks) < count:
            tape, stack = Tape(self._packets, 37 * len(self._stacks)), AsyncExitStack()
            await stack.enter_async_context(
                RealtimeCall.connect(self._url, microphone=tape, connect_within_s=60)
            )
            self._stacks.append(stack)
        while len(self._stacks) > count:
            await self._stacks.pop().aclose()

    async def __aenter__(self) -> "Lines":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.make(0)


def coded_speech() -> list[bytes]:
    """Ten seconds of speech as packets of 20 ms."""
    sound, microphone = speech(48_000), Microphone()
    return [
        microphone._encode(sound[at : at + FRAME_SAMPLES])
        for at in range(0, len(sound) - FRAME_SAMPLES + 1, FRAME_SAMPLES)
    ]


async def measure(
    way: str, calls: int, most: int, seconds: float, profile: bool, console: Console, outcome: Outcome
) -> list[Step]:
    """Returns the steps of the ramp, or the one of `calls`."""
    steps: list[Step] = []
    async with _server(way) as url, Lines(url) as lines:

        async def step(count: int) -> Step:
            with console.status(f"{way}: {count} calls"):
                await lines.make(count)
                seen = await _look(url, count, seconds)
            console.print(f"[dim]{way}: {count} calls, {'all is well' if seen.holds else 'too many'}[/]")
            steps.append(seen)
            return seen

        async def holds(count: int) -> bool:
            """Tried again where it fails: another program's moment is not the server's."""
            return (await step(count)).holds or (await step(count)).holds

        if calls:
            await step(calls)
        else:
            good, count = 0, FEW_CALLS
            while count <= most and await holds(count):
                good, count = count, count + max(2, count // 4)
            bad = min(count, most + 1)
            while good and bad - good > max(1, good // 25):
                middle = (good + bad) // 2
                good, bad = (middle, bad) if await holds(middle) else (good, middle)
        if profile:
            await _get(url, "profile")
            await asyncio.sleep(seconds)
            rows = await _get(url, "profile")
            outcome.tables[f"profile of {way}"] = rows
            console.print(table(f"Where the event loop's time goes: {way}, {len(lines)} calls", rows))
    return steps


async def _look(url: str, count: int, seconds: float) -> Step:
    await asyncio.sleep(SETTLE_S)
    before, used = await _get(url, "usage"), os.times()
    await asyncio.sleep(seconds)
    after, spent = await _get(url, "usage"), os.times()
    wall_s = after["wall_s"] - before["wall_s"]
    frames = after["processed"] - before["processed"]
    # The detector tells of its windows ten times a second: so much may be on its way at either end.
    due = 50 * wall_s * count - 5 * count
    return Step(
        count,
        max(0.0, 1 - frames / due),
        after["lag_p99_ms"],
        (after["cpu_s"] - before["cpu_s"]) / wall_s,
        (after["loop_cpu_s"] - before["loop_cpu_s"]) / wall_s,
        (spent.user + spent.system - used.user - used.system) / wall_s,
    )


@asynccontextmanager
async def _server(way: str) -> AsyncIterator[str]:
    """A server on a core of its own; we go to the others."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.rtc_server", way, stdout=asyncio.subprocess.PIPE
    )
    if len(cores) > 1:
        os.sched_setaffinity(server.pid, cores[:1])
        os.sched_setaffinity(0, cores[1:])
    try:
        assert server.stdout is not None
        async with asyncio.timeout(READY_WITHIN_S):
            url = f"http://127.0.0.1:{int(await server.stdout.readline())}"
            await _get(url, "usage")
        yield url
    finally:
        if len(cores) > 1:
            os.sched_setaffinity(0, cores)
        server.terminate()
        await server.wait()


async def _get(url: str, what: str) -> Any:
    """Asks over a connection of its own: between two questions the server may have closed an idle one."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        return (await client.get(f"{url}/{what}")).json()
