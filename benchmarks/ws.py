"""`chorale bench ws`: token events per second to many WebSockets, beside bare servers that send ready-made texts.

Ours is the real server with a scripted language model: each token passes the dispatcher, its session's inbox and heart,
the encoder, the log and the link. *own*: every socket has a session, which speaks for itself. *shared*: all sockets
follow one session. The yardstick is uvicorn with Starlette sending texts of the same size that exist already; a bare
`websockets` broadcast stands beside it. Clients read raw bytes in another process.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.sockets import Sockets, allow_files, send_text

WAYS = ("chorale, own", "chorale, shared", "starlette", "websockets")
YARDSTICK = "starlette"
GOAL = 0.7

_ASK = json.dumps(
    {"type": "response.create", "response": {"conversation": "none", "output_modalities": ["text"]}}
)


def command(
    sockets: Annotated[str, typer.Option(help="How many, comma-separated.")] = "1,100,1000",
    events: Annotated[
        int, typer.Option(min=100, help="Sent in each measurement, to all sockets together.")
    ] = 200_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often; the median counts.")] = 3,
    burst: Annotated[int, typer.Option(min=1, help="Tokens of a reply that arrive together.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Token events per second to many WebSockets, beside bare servers.

    \b
    Examples:
      chorale bench ws                                  1, 100 and 1,000 sockets
      chorale bench ws --sockets 1,10 --events 5000      small and quick
      chorale bench ws --burst 8                        eight tokens of each reply arrive together
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    counts = [int(count) for count in sockets.split(",")]
    allow_files(2 * max(counts) + 256)
    seen: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for number in range(rounds):
        for count in counts:
            for way in WAYS:
                with console.status(f"round {number + 1} of {rounds}: {count} sockets, {way}"):
                    seen.setdefault((count, way), []).append(measure(way, count, events, burst))
    rows = [_row(count, way, seen) for count in counts for way in WAYS]
    console.print(table("Token events per second", rows))
    outcome = Outcome(
        "ws",
        {"sockets": sockets, "events": events, "rounds": rounds, "burst": burst},
        tables={"events": rows},
    )
    for row in rows:
        if str(row["way"]).startswith("chorale"):
            ratio = row["of starlette"]
            assert isinstance(ratio, float)
            text = f"{row['way']}, {row['sockets']} sockets: at least {GOAL} of Starlette's ready-made texts"
            outcome.claims.append(Claim(text, ratio >= GOAL, ratio))
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def measure(way: str, count: int, events: int, burst: int = 1, within_s: float = 60) -> tuple[float, float]:
    """Sends so many events to `count` sockets together; returns events per second of the wall clock, and of the
    server's processor time. Raises `OSError`."""
    tokens = events // count
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "benchmarks.ws_server",
            way.partition(",")[0],
            *map(str, (tokens, count, burst)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    clients = Sockets(b'output_text.delta"')
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        first, _ = clients.connect(port)
        query = _ask(server, "session") if way == "chorale, shared" else ""
        asking = [first]
        for _ in range(count - 1):
            one, _ = clients.connect(port, query)
            asking += [] if query else [one]
        before, began_s = json.loads(_ask(server, "usage")), time.monotonic()
        for one in asking:
            send_text(one, _ASK)
        clients.count(tokens * count, within_s)
        took_s = time.monotonic() - began_s
        cpu_s = json.loads(_ask(server, "usage"))["cpu_s"] - before["cpu_s"]
        return tokens * count / took_s, tokens * count / cpu_s
    finally:
        clients.close()
        server.terminate()
        server.communicate()


def _row(count: int, way: str, seen: dict[tuple[int, str], list[tuple[float, float]]]) -> Row:
    def middle(of: str, which: int) -> float:
        return statistics.median(one[which] for one in seen[(count, of)])

    rates = [one[0] for one in seen[(count, way)]]
    return {
        "sockets": count,
        "way": way,
        "events/s": round(middle(way, 0)),
        "least": round(min(rates)),
        "most": round(max(rates)),
        "of starlette": middle(way, 0) / middle(YARDSTICK, 0),
        "per CPU second": round(middle(way, 1)),
        "of starlette (CPU)": middle(way, 1) / middle(YARDSTICK, 1),
    }


def _ask(server: "subprocess.Popen[str]", question: str) -> str:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(question + "\n")
    server.stdin.flush()
    return server.stdout.readline().strip()
