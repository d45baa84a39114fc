"""`chorale bench scrape`: how long a scrape takes on a server with many sessions, and how late the loop is meanwhile.

The real registry, dispatcher and telemetry in this process, with sessions that have spoken: some have sent sound, all
have had a turn with its jobs. A scrape holds the loop only while it reads what is now (*look*); the text is made on a
thread, which shares the interpreter with the loop. So the lateness of a timer is measured with scrapes and without.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
import uvloop

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.overhead_server import Watched
from orchestrator.observability.instrument import Ending, JobRecord, TurnRecord
from orchestrator.observability.loop_lag import LoopLag
from orchestrator.sessions.links import LinkKind, SessionRequest
from orchestrator.telemetry.telemetry import Telemetry

LOOK_MS = 2.0
LAG_MS = 20.0
MOST_SERIES = 1_000
_PERIOD_S = 0.002
_KINDS = ("asr", "understand", "llm", "speech")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one number of sessions gave. Times are medians, `lag_ms` 99th percentiles."""

    look_ms: float
    scrape_ms: float
    lag_ms: float
    lag_without_ms: float
    series: int
    size_bytes: int


def command(
    sessions: Annotated[str, typer.Option(help="How many, comma-separated.")] = "1,100,1000",
    scrapes: Annotated[int, typer.Option(min=2, help="How many are measured for each.")] = 50,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """How long a scrape of `/metrics` takes, and how late the event loop is meanwhile.

    \b
    Examples:
      chorale bench scrape                             1, 100 and 1,000 sessions, twenty seconds
      chorale bench scrape --sessions 10 --scrapes 5     small and quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    seen: dict[int, Seen] = {}
    for count in (int(one) for one in sessions.split(",")):
        with console.status(f"{count} sessions"):
            seen[count] = measure(count, scrapes)
    rows: list[Row] = [
        {
            "sessions": count,
            "look, ms": one.look_ms,
            "scrape, ms": one.scrape_ms,
            "loop late p99, ms": one.lag_ms,
            "without scrapes, ms": one.lag_without_ms,
            "series": one.series,
            "KB": one.size_bytes / 1_000,
        }
        for count, one in seen.items()
    ]
    console.print(table("Scrapes", rows))
    most = seen[max(seen)]
    outcome = Outcome("scrape", {"sessions": sessions, "scrapes": scrapes}, tables={"scrapes": rows})
    outcome.claims = [
        Claim(
            f"a look holds the loop for at most {LOOK_MS} ms at one time",
            most.look_ms <= LOOK_MS,
            most.look_ms,
        ),
        Claim(f"with scrapes the loop is at most {LAG_MS} ms late (p99)", most.lag_ms <= LAG_MS, most.lag_ms),
        Claim(f"at most {MOST_SERIES} series", most.series <= MOST_SERIES, most.series),
        Claim(
            "as many series whatever the number of sessions",
            len({one.series for one in seen.values()}) == 1,
            ", ".join(str(one.series) for one in seen.values()),
        ),
    ]
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def measure(count: int, scrapes: int) -> Seen:
    """Scrapes a server with so many sessions."""
    return uvloop.run(_measure(count, scrapes))


async def _measure(count: int, scrapes: int) -> Seen:
    watched = Watched("metrics", 1)
    telemetry = watched.telemetry
    assert telemetry is not None
    assert telemetry.scrape is not None
    watched.dispatcher.start()
    for number in range(count):
        session = watched.registry.open(SessionRequest("bench", 2), LinkKind.WEBSOCKET)
        if number % 10 == 0:
            session.intake.append(np.zeros(16_000, np.int16))
        _turn(telemetry, session.id)
    await asyncio.sleep(0.2)
    looks_ms = [_longest_step_ms(telemetry.look()) for _ in range(scrapes)]
    without = await _lateness(scrapes * 0.05)
    lag = asyncio.create_task(_lateness(scrapes * 0.05))
    took_ms, text = [], b""
    while not lag.done():
        began_s = time.perf_counter()
        text = await telemetry.scrape.text()
        took_ms.append(1_000 * (time.perf_counter() - began_s))
        await asyncio.sleep(0.05)
    await watched.registry.close()
    return Seen(
        look_ms=statistics.median(looks_ms),
        scrape_ms=statistics.median(took_ms),
        lag_ms=await lag,
        lag_without_ms=without,
        series=sum(1 for line in text.splitlines() if line and not line.startswith(b"#")),
        size_bytes=len(text),
    )


async def _lateness(for_s: float) -> float:
    """Returns how late a timer was at the 99th percentile, in ms."""
    lag = LoopLag(_PERIOD_S)
    lag.start()
    await asyncio.sleep(for_s)
    lag.close()
    return lag.statistics().p99_ms


def _longest_step_ms(look: Coroutine[Any, Any, None]) -> float:
    """Takes a look, step by step as the loop would, and returns how long the longest of them held it."""
    longest_s = 0.0
    while True:
        began_s = time.perf_counter()
        try:
            look.send(None)
        except StopIteration:
            return 1_000 * max(longest_s, time.perf_counter() - began_s)
        longest_s = max(longest_s, time.perf_counter() - began_s)


def _turn(telemetry: Telemetry, session_id: str) -> None:
    """One turn of a session, with a job of each kind."""
    for kind in _KINDS:
        telemetry.job(
            JobRecord(
                session_id=session_id,
                turn=1,
                kind=kind,
                tier=2,
                outcome=Ending.COMPLETED,
                submitted_us=0,
                sent_us=1_000,
                first_us=50_000,
                ended_us=200_000,
                worked=(1_500, 199_000),
                input_tokens=100,
                cached_tokens=50,
                output_tokens=20,
            )
        )
    telemetry.turn(
        TurnRecord(
            session_id=session_id,
            conversation_id="conv",
            turn=1,
            tier=2,
            modality="audio",
            began_us=0,
            ended_us=900_000,
            outcome=Ending.COMPLETED,
            stages={"listen": (0, 1_000)},
        )
    )
