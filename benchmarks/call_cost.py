"""What a WebRTC call costs a server: our door beside the bare echo of aiortc, in the same run."""

import asyncio
import itertools
import os
import statistics
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import typer
from aiortc.rtp import is_rtcp
from numpy.typing import NDArray

from benchmarks.outcome import Claim, Figure, Outcome, Row, screen, table, this_machine
from orchestrator.clients.call import RealtimeCall

SETTLE_S = 2.0
BURSTS = 10
LOSE_EVERY = 20


def speech(rate_hz: int, duration_s: float = 10.0) -> NDArray[np.int16]:
    """A voice-like sound: a gliding pitch with harmonics, in syllables of 200 ms; as much work to code as speech."""
    at = np.arange(int(rate_hz * duration_s)) / rate_hz
    phase = 2 * np.pi * np.cumsum(130 + 30 * np.sin(2 * np.pi * 0.7 * at)) / rate_hz
    voice = sum(np.sin(n * phase) / n for n in range(1, 25))
    noise = np.random.default_rng(1).normal(0, 0.05, len(at))
    envelope = 0.25 + 0.75 * np.abs(np.sin(2 * np.pi * 2.5 * at))
    sound: NDArray[np.int16] = (6_000 * envelope * (voice + noise)).clip(-32_000, 32_000).astype(np.int16)
    return sound


def command(
    calls: Annotated[int, typer.Option(min=1, help="Calls at the same time.")] = 4,
    seconds: Annotated[float, typer.Option(min=1, help="How long each phase is measured.")] = 10.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Processor time of the server per call.

    Idle is silence both ways, talking is speech both ways.
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    rows: list[Row] = []
    delays: list[Row] = []
    for way in ("aiortc", "chorale"):
        costs, delay = asyncio.run(_measure(way, calls, seconds))
        rows += costs
        delays.append(delay)
    console.print(table("Cost of a call", rows))
    console.print(
        table(f"From the first packet of a sound to the server's hand (lossy: 1 in {LOSE_EVERY})", delays)
    )
    outcome = Outcome(
        "call-cost", {"calls": calls, "seconds": seconds}, tables={"cost": rows, "delay": delays}
    )
    for state in ("idle", "talking"):
        theirs, ours = (row["% of a core per call"] for row in rows if row["state"] == state)
        assert isinstance(theirs, float)
        assert isinstance(ours, float)
        ratio = theirs / ours
        outcome.figures[f"{state}_ratio"] = ratio
        outcome.claims.append(
            Claim(f"a call that is {state} costs less than half of aiortc's", ratio > 2, ratio)
        )
    for state in ("median ms", "median ms, lossy"):
        theirs, ours = (row[state] for row in delays)
        assert isinstance(theirs, int)
        assert isinstance(ours, int)
        text = f"sound is there in less than half of aiortc's time ({state})"
        outcome.claims.append(Claim(text, theirs > 2 * ours, theirs - ours))
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


async def _measure(way: str, calls: int, seconds: float) -> tuple[list[Row], Row]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.call_server", way, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(await server.stdout.readline())}"
    try:
        async with AsyncExitStack() as stack:
            await _wait_for(url)
            lines = [await stack.enter_async_context(RealtimeCall.connect(url)) for _ in range(calls)]
            idle = await _phase(url, lines, seconds)
            sound = speech(48_000)
            for line in lines:
                for _ in range(int((seconds + 3 * SETTLE_S) // 10) + 1):
                    line.microphone.say(sound)
            talking = await _phase(url, lines, seconds)
        async with RealtimeCall.connect(url) as line:
            whole = await _delay_ms(url, line)
            _lose(line, LOSE_EVERY)
            lossy = await _delay_ms(url, line)
    finally:
        server.terminate()
        await server.wait()
    phases = {"idle": idle, "talking": talking}
    delays: Row = {
        "way": way,
        "median ms": whole[0],
        "worst ms": whole[1],
        "median ms, lossy": lossy[0],
        "worst ms, lossy": lossy[1],
    }
    return [{"way": way, "calls": calls, "state": state, **row} for state, row in phases.items()], delays


async def _delay_ms(url: str, line: RealtimeCall) -> tuple[int, int]:
    """Returns how long it takes from sending the first frame of a burst until the server has it: median and worst."""
    burst, pause = speech(48_000, 0.3) * 2, np.zeros(int(0.5 * 48_000), np.int16)
    await _get(url, "onsets")
    known, delays_ms = len(await _get(url, "onsets")), []
    for _ in range(BURSTS):
        await line.say(pause)
        began_s = await line.say(burst) - (len(burst) / 48_000 - 0.02)
        await line.say(pause)
        found = (await _get(url, "onsets"))[known:]
        known += len(found)
        delays_ms += [(at_s - began_s) * 1_000 for at_s in found[:1]]
    return round(statistics.median(delays_ms)), round(max(delays_ms))


def _lose(line: RealtimeCall, every: int) -> None:
    """Loses every so-manyth packet on its way out."""
    transport: Any = line._peer.getSenders()[0].transport
    usual, count = transport._send_rtp, itertools.count(1)

    async def send(data: bytes) -> None:
        if is_rtcp(data) or next(count) % every:
            await usual(data)

    transport._send_rtp = send


async def _wait_for(url: str) -> None:
    for _ in range(200):
        try:
            await _get(url, "usage")
        except httpx.ConnectError:
            await asyncio.sleep(0.05)
        else:
            return


async def _phase(url: str, lines: list[RealtimeCall], seconds: float) -> dict[str, Figure]:
    await asyncio.sleep(SETTLE_S)
    before, packets = await _get(url, "usage"), sum(line.received_packets for line in lines)
    await asyncio.sleep(seconds)
    after, packets = await _get(url, "usage"), sum(line.received_packets for line in lines) - packets
    wall_s = after["wall_s"] - before["wall_s"]
    share = (after["cpu_s"] - before["cpu_s"]) / wall_s / len(lines)
    return {
        "% of a core per call": round(100 * share, 2),
        "frames/s back": round(packets / wall_s / len(lines), 1),
        "threads": after["threads"],
        "peak MiB": round(after["memory_mib"]),
    }


async def _get(url: str, what: str) -> Any:
    """Asks over a connection of its own: between two questions the server may have closed an idle one."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"{url}/{what}")).json()
