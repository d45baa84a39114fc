"""`chorale bench doors`: how much later the first word of a reply comes through each door than from the workers.

A scripted language model says its first word after 30 ms, so that it is no part of the burst that a reply begins with,
and has a place for everybody. The same question is put to it with nothing in between, to the dispatcher, and by clients
in a process of their own at each door of a server that has the loop of the real one; ways take turns, round by round.
Each client asks one question after the other, with pauses of its own. What a client's library takes is in the figures,
as its users have it. gRPC-Web, Connect and event streams take a request for each question beside the stream of
answers; a chat completion is one request, with no session behind it.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from benchmarks.door_clients import DOORS, Place, Talk, talk
from benchmarks.door_direct import Crew, asking
from benchmarks.nginx_front import front_of, is_installed
from benchmarks.outcome import Outcome, Row, screen, table, this_machine
from benchmarks.resume_server import Ports, ScriptedWorkers, serving
from orchestrator.clock import MonotonicClock

DELTAS = 20
PACE_S = 0.002
THINK_S = 0.03
PAUSE_S = 1.0
"""Between two replies of one client, about; alone it waits a twentieth of that."""

WORKERS = "none: the workers"
DISPATCHER = "none: the dispatcher"
WAYS = (WORKERS, DISPATCHER, *DOORS)

_ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


async def measure(way: str, plan: Talk, nginx: bool = False) -> list[float]:
    """Returns the seconds to the first word of every reply. Raises `RuntimeError` where the clients fail."""
    if way == WORKERS:
        crew = Crew(ScriptedWorkers(DELTAS, PACE_S, THINK_S, plan.clients), MonotonicClock())
        return await talk([crew] * plan.clients, plan)
    async with serving(DELTAS, PACE_S, 1_024, THINK_S, plan.clients) as ports:
        if way == DISPATCHER:
            return await _at_the_dispatcher(ports, plan)
        async with front_of(ports, nginx) as front:
            return await _from_apart(way, Place(front.http, front.grpc, front.is_http2), plan)


async def _at_the_dispatcher(ports: Ports, plan: Talk) -> list[float]:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(asking(ports)) for _ in range(plan.clients)]
        return await talk(clients, plan)


async def _from_apart(door: str, place: Place, plan: Talk) -> list[float]:
    """Has a process of clients ask."""
    process = _clients(door, place, plan)
    try:
        told, _ = await asyncio.to_thread(process.communicate)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise RuntimeError(f"clients of {door} ended with {process.returncode}")
    took: list[float] = json.loads(told)
    return took


def _clients(door: str, place: Place, plan: Talk) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.door_clients", door, json.dumps([place, plan])],
        stdout=subprocess.PIPE,
        text=True,
        env=_ENV,
        close_fds=False,  # or it would be forked, at which gRPC complains
    )


def rows(
    doors: Sequence[str],
    plan: Talk,
    rounds: int,
    tell: Callable[[str], None] = lambda what: None,
    nginx: bool = False,
) -> list[Row]:
    """Measures the workers, the dispatcher and each door, in turn; what they added is counted from the workers."""
    took: dict[str, list[float]] = {}
    for number in range(rounds):
        for way in (WORKERS, DISPATCHER, *doors):
            tell(f"round {number + 1} of {rounds}: {way}, {plan.clients} at a time")
            again = plan._replace(seed=plan.seed + number * plan.clients)
            took.setdefault(way, []).extend(uvloop.run(measure(way, again, nginx)))
    base = {percent: _quantile(took[WORKERS], percent) for percent in (50, 95)}
    return [
        {
            "door": f"{way}, nginx" if nginx and way in DOORS else way,
            "clients": plan.clients,
            "replies": len(times),
            "p50 ms": _quantile(times, 50),
            "added p50": _quantile(times, 50) - base[50],
            "p95 ms": _quantile(times, 95),
            "added p95": _quantile(times, 95) - base[95],
        }
        for way, times in took.items()
    ]


def command(
    door: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    clients: Annotated[str, typer.Option(help="How many at a time, in turn.")] = "1,100",
    asks: Annotated[
        int,
        typer.Option(min=1, help="Replies for each client in a round; a single one gets ten times as many."),
    ] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="How often every way has its turn.")] = 3,
    nginx: Annotated[bool, typer.Option("--nginx", help="Through nginx, by configs/nginx.conf.")] = False,
    seed: Annotated[int, typer.Option(help="Where the pauses fall.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """The first word of a reply through each door, beside the workers themselves.

    \b
    Examples:
      chorale bench doors                              every door, one client and a hundred; some minutes
      chorale bench doors --door grpc --clients 1      one of them, quick
      chorale bench doors --nginx                      all of them behind nginx, which must be installed
    """
    if nginx:
        is_installed()
    chosen = door or list(DOORS)
    if unknown := [name for name in chosen if name not in DOORS]:
        raise typer.BadParameter(f"There is no door '{unknown[0]}'. There are: {', '.join(DOORS)}.")
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    outcome = Outcome(
        "doors", {"clients": clients, "asks": asks, "rounds": rounds, "seed": seed, "nginx": nginx}
    )
    for count in (int(one) for one in clients.split(",")):
        plan = Talk(count, asks, PAUSE_S, seed) if count > 1 else Talk(1, asks * 10, PAUSE_S / 20, seed)
        with console.status("asking") as status:
            found = rows(chosen, plan, rounds, status.update, nginx)
        console.print(table(f"First word of a reply, {count} at a time", found))
        outcome.tables[f"{count} clients"] = found
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")


def _quantile(values: list[float], percent: int) -> float:
    """In milliseconds."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1_000
