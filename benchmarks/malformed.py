"""`chorale bench malformed`: one client sends nothing but malformed messages, another is told a long reply meanwhile.

The server is the whole application in a process of its own, its language model a script that says a word every
`WORD_MS`. What is measured is the time between two words as the other client sees it, with and without the attack, and
what the server holds before and after. An attacker within its rate (``open``: a server that has no such rule) is
answered message by message; one that is not (``limited``) is held back, sent away, and comes back.
"""

import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from websockets.asyncio.client import connect

from benchmarks.outcome import ROOT, Claim, Outcome, Row, screen, table, this_machine

WORD_MS = 10
WORDS = 2_000
QUIET_S = 20.0
SETTLED_WITHIN_S = 60.0
GROWTH_BYTES = 64 * 2**20
SCRIPTED = {f"CHORALE_WORKERS__{role}__ENGINE": "scripted" for role in ("ASR", "UNDERSTAND", "LLM", "SPEECH")}
RATES: dict[str, Mapping[str, str]] = {
    "open": {"CHORALE_INBOUND__EVENTS_PER_S": "1000000"},
    "limited": {"CHORALE_INBOUND__EVENTS_PER_S": "250", "CHORALE_INBOUND__EXCESS_S": "0.4"},
}

Held = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Found:
    """What one run gave. Gaps are in seconds."""

    quiet: list[float]
    attacked: list[float]
    attack: Mapping[str, Any]
    before: Held
    after: Held

    def row(self, rate: str) -> Row:
        """Returns the figures; memory in MiB."""
        return {
            "inbound": rate,
            "messages": self.attack["answered"],
            "a second": self.attack["answered"] / self.attack["seconds"],
            "links closed": self.attack["closed"],
            "quiet p50 ms": _quantile_ms(self.quiet, 50),
            "quiet p99 ms": _quantile_ms(self.quiet, 99),
            "attacked p50 ms": _quantile_ms(self.attacked, 50),
            "attacked p99 ms": _quantile_ms(self.attacked, 99),
            "attacked max ms": max(self.attacked) * 1_000,
            "tasks": f"{self.before['tasks']} → {self.after['tasks']}",
            "files": f"{self.before['files']} → {self.after['files']}",
            "MiB": f"{self.before['resident_bytes'] >> 20} → {self.after['resident_bytes'] >> 20}",
        }

    @property
    def grown_bytes(self) -> int:
        return self.after["resident_bytes"] - self.before["resident_bytes"]


class Server:
    """The server's process, and questions to it."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    async def held(self) -> Held:
        """Returns what it holds now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        answer: Held = json.loads(await self._process.stdout.readline())
        return answer

    async def settled(self, wanted: Held) -> Held:
        """Returns what it holds once that is no more tasks and files than `wanted`, or after a while."""
        deadline_s = time.monotonic() + SETTLED_WITHIN_S
        while True:
            held = await self.held()
            if (
                all(held[name] <= wanted[name] for name in ("tasks", "files"))
                or time.monotonic() > deadline_s
            ):
                return held
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def serving(rate: str, log: Path | None = None) -> AsyncIterator[Server]:
    """Serves with one of `RATES`; `log` gets what the server writes."""
    model = {"pause_ms": WORD_MS, "default": "word " * WORDS, "replies": {"quick": "yes"}}
    settings = {
        **SCRIPTED,
        **RATES[rate],
        "CHORALE_AUDIO__VAD__ENGINE": "scripted",
        "CHORALE_WORKERS__LLM__OPTIONS": json.dumps(model),
        "CHORALE_SESSIONS__GRACE_S": "1",
    }
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(log.open("wb")) if log else asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.malformed_server"),
            cwd=ROOT,
            env={**os.environ, **settings},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(process, int(await process.stdout.readline()))
            process.stdin.close()
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def gaps(port: int, enough: asyncio.Event) -> list[float]:
    """Is told one reply after another until there is `enough`; returns the times between two words of a reply."""
    found: list[float] = []
    async with connect(f"ws://127.0.0.1:{port}/v1/realtime", proxy=None) as link:
        while not enough.is_set():
            await link.send(
                json.dumps({"type": "response.create", "response": {"output_modalities": ["text"]}})
            )
            last_s, kind = None, ""
            while kind != "response.done":
                kind = json.loads(await link.recv())["type"]
                if kind == "response.output_text.delta":
                    now_s = time.perf_counter()
                    if last_s is not None:
                        found.append(now_s - last_s)
                    last_s = now_s
                if enough.is_set() and found:
                    return found
    return found


async def attacked(port: int, count: int, seed: int) -> Mapping[str, Any]:
    """Attacks from another process; returns what it tells."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.malformed_attack", str(port), str(count), str(seed)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate()
    answer: Mapping[str, Any] = json.loads(told)
    return answer


async def measure(
    rate: str, count: int, seed: int = 0, quiet_s: float = QUIET_S, log: Path | None = None
) -> Found:
    """Runs one attack. A first, small one comes before what is held is counted: everything has been used by then."""
    async with serving(rate, log) as server:
        empty = await server.held()
        await attacked(server.port, min(count, 1_000), seed + 1)
        before = await server.settled(empty)
        enough = asyncio.Event()
        talking = asyncio.create_task(gaps(server.port, enough))
        await asyncio.sleep(quiet_s)
        enough.set()
        quiet, enough = await talking, asyncio.Event()
        talking = asyncio.create_task(gaps(server.port, enough))
        attack = await attacked(server.port, count, seed)
        enough.set()
        return Found(quiet, await talking, attack, before, await server.settled(before))


def claims(found: Found, rate: str, count: int) -> list[Claim]:
    """Returns what has to be so, whatever the machine."""
    rest = {name: found.after[name] - found.before[name] for name in ("tasks", "files")}
    return [
        Claim(
            f"{rate}: every message is answered", found.attack["answered"] == count, found.attack["answered"]
        ),
        Claim(f"{rate}: the attacked session lives", found.attack["served"], found.attack["served"]),
        Claim(f"{rate}: no task is left over", rest["tasks"] <= 0, rest["tasks"]),
        Claim(f"{rate}: no file or socket is left over", rest["files"] <= 0, rest["files"]),
        Claim(f"{rate}: memory does not grow", found.grown_bytes < GROWTH_BYTES, found.grown_bytes),
    ]


def command(
    messages: Annotated[int, typer.Option(min=1_000, help="How many, for each way.")] = 100_000,
    inbound: Annotated[list[str] | None, typer.Option(help="Only this way: open or limited.")] = None,
    seed: Annotated[int, typer.Option(help="Which messages.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Malformed messages over one WebSocket while another session is told a reply.

    \b
    Examples:
      chorale bench malformed                     100,000 messages, within the inbound rate and over it; some minutes
      chorale bench malformed --messages 5000     a look
      chorale bench malformed --inbound limited   only the client that is sent away, and comes back
    """
    chosen = inbound or list(RATES)
    if unknown := [name for name in chosen if name not in RATES]:
        raise typer.BadParameter(f"There is no way '{unknown[0]}'. There are: {', '.join(RATES)}.")
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    outcome = Outcome("malformed", {"messages": messages, "seed": seed})
    rows: list[Row] = []
    for rate in chosen:
        with console.status(f"attacking: {rate}"):
            found = asyncio.run(measure(rate, messages, seed))
        rows.append(found.row(rate))
        outcome.claims += claims(found, rate, messages)
    outcome.tables["gaps between two words"] = rows
    console.print(table("Gaps between two words of a reply", rows))
    for claim in outcome.claims:
        console.print(f"{'holds' if claim.holds else 'FAILS'}: {claim.text} ({claim.figure})")
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _quantile_ms(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1_000
