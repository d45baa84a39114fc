"""`chorale bench doors`: how much later the first word of a reply comes through each door than from the dispatcher.

A scripted language model says its first word after 30 ms, so that it is no part of the burst that a reply begins with.
Clients ask one after the other, each with pauses of its own, in the server's process: what a client costs to run is in
the figures, of every door alike. Browsers' doors take a request for each question beside the stream of answers.
"""

import asyncio
import os
import random
import statistics
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.door_clients import DIRECT, DOORS, Client, Door
from benchmarks.nginx_front import front_of, is_installed
from benchmarks.outcome import Outcome, Row, screen, table, this_machine
from benchmarks.resume_server import serving

DELTAS = 20
PACE_S = 0.002
THINK_S = 0.03
PAUSE_S = 1.0
"""Between two replies of one client, about; alone it waits a twentieth of that."""


async def measure(
    door: Door, clients: int, asks: int, seed: int = 0, pause_s: float = PAUSE_S, nginx: bool = False
) -> list[float]:
    """Returns the seconds to the first word, of `asks` replies for each client."""
    took: list[float] = []

    async def talk(client: Client, chance: random.Random) -> None:
        for _ in range(asks):
            await asyncio.sleep(chance.uniform(0, 2 * pause_s))
            took.append(await client.ask())

    async with (
        serving(DELTAS, PACE_S, 1_024, THINK_S) as ports,
        front_of(ports, nginx) as front,
        AsyncExitStack() as stack,
    ):
        talking = [await stack.enter_async_context(door(front)) for _ in range(clients)]
        await asyncio.gather(
            *(talk(client, random.Random(seed + number)) for number, client in enumerate(talking))
        )
    return took


def rows(
    doors: Sequence[str],
    clients: int,
    asks: int,
    seed: int,
    pause_s: float,
    tell: Callable[[str], None],
    nginx: bool = False,
) -> list[Row]:
    """Measures each door, the dispatcher first."""
    found: list[Row] = []
    base_ms = (0.0, 0.0)
    for name in (DIRECT, *doors):
        tell(f"{name}, {clients} at a time")
        took = asyncio.run(measure(DOORS[name], clients, asks, seed, pause_s, nginx))
        p50, p95 = (_quantile(took, percent) for percent in (50, 95))
        if name == DIRECT:
            base_ms = (p50, p95)
        found.append(
            {
                "door": f"{name}, nginx" if nginx and name != DIRECT else name,
                "clients": clients,
                "replies": len(took),
                "p50 ms": p50,
                "p95 ms": p95,
                "added p50": p50 - base_ms[0],
                "added p95": p95 - base_ms[1],
            }
        )
    return found


def command(
    door: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    clients: Annotated[str, typer.Option(help="How many at a time, in turn.")] = "1,100",
    asks: Annotated[
        int, typer.Option(min=2, help="Replies for each client; a single one gets ten times as many.")
    ] = 20,
    nginx: Annotated[bool, typer.Option("--nginx", help="Through nginx, by configs/nginx.conf.")] = False,
    seed: Annotated[int, typer.Option(help="Where the pauses fall.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """The first word of a reply through each door, beside the dispatcher itself.

    \b
    Examples:
      chorale bench doors                              every door, one client and a hundred; some minutes
      chorale bench doors --door grpc --clients 1      one of them, quick
      chorale bench doors --nginx                      all of them behind nginx, which must be installed
    """
    if nginx:
        is_installed()
    names = [name for name in DOORS if name != DIRECT]
    chosen = door or names
    if unknown := [name for name in chosen if name not in names]:
        raise typer.BadParameter(f"There is no door '{unknown[0]}'. There are: {', '.join(names)}.")
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    outcome = Outcome("doors", {"clients": clients, "asks": asks, "seed": seed, "nginx": nginx})
    for count in (int(one) for one in clients.split(",")):
        each = asks if count > 1 else asks * 10
        pause_s = PAUSE_S if count > 1 else PAUSE_S / 20
        with console.status("asking") as status:
            found = rows(chosen, count, each, seed, pause_s, status.update, nginx)
        console.print(table(f"First word of a reply, {count} at a time", found))
        outcome.tables[f"{count} clients"] = found
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")


def _quantile(values: list[float], percent: int) -> float:
    """In milliseconds."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1_000
