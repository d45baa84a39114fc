"""What a WebRTC call costs a server: our door beside the bare echo of aiortc, in the same run."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.outcome import Claim, Figure, Outcome, table, this_machine
from orchestrator.clients.call import RealtimeCall

SETTLE_S = 2.0
FRAMES_PER_S = 50


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
    """Processor time of the server per call: idle (silence both ways) and talking (speech both ways)."""
    console, machine = Console(), this_machine()
    console.print(f"[dim]{machine}[/]")
    rows: list[dict[str, Figure]] = []
    for way in ("aiortc", "chorale"):
        rows += asyncio.run(_measure(way, calls, seconds))
    console.print(table("Cost of a call", rows))
    outcome = Outcome("call-cost", {"calls": calls, "seconds": seconds}, tables={"cost": rows})
    for state in ("idle", "talking"):
        theirs, ours = (row["% of a core per call"] for row in rows if row["state"] == state)
        assert isinstance(theirs, float)
        assert isinstance(ours, float)
        ratio = theirs / ours
        outcome.figures[f"{state}_ratio"] = ratio
        outcome.claims.append(
            Claim(f"a call that is {state} costs less than half of aiortc's", ratio > 2, ratio)
        )
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


async def _measure(way: str, calls: int, seconds: float) -> list[dict[str, Figure]]:
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
    finally:
        server.terminate()
        await server.wait()
    return [
        {"way": way, "calls": calls, "state": state, **row}
        for state, row in (("idle", idle), ("talking", talking))
    ]


async def _wait_for(url: str) -> None:
    for _ in range(200):
        try:
            await _usage(url)
        except httpx.ConnectError:
            await asyncio.sleep(0.05)
        else:
            return


async def _phase(url: str, lines: list[RealtimeCall], seconds: float) -> dict[str, Figure]:
    await asyncio.sleep(SETTLE_S)
    before, packets = await _usage(url), sum(line.received_packets for line in lines)
    await asyncio.sleep(seconds)
    after, packets = await _usage(url), sum(line.received_packets for line in lines) - packets
    wall_s = after["wall_s"] - before["wall_s"]
    share = (after["cpu_s"] - before["cpu_s"]) / wall_s / len(lines)
    return {
        "% of a core per call": round(100 * share, 2),
        "frames/s back": round(packets / wall_s / len(lines), 1),
        "threads": after["threads"],
        "peak MiB": round(after["memory_mib"]),
    }


async def _usage(url: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False) as client:
        used: dict[str, Any] = (await client.get(f"{url}/usage")).json()
    return used
