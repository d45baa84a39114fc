"""`chorale bench resume`: connections are cut at random points of streamed replies, and what arrives is put together.

Two clients follow one session. One has a line that is never cut; the other comes back each time, with the cursor that
our own client tools use. What both got must be the same, byte for byte: replies in writing, and spoken ones as PCM and
as G.711, whose samples hang together. Then, on a session whose log is long: how long it takes from asking to come back
to the first missed event, beside the round trip and a bare server that holds the same texts in a list.
"""

import asyncio
import itertools
import os
import random
import statistics
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer
import uvloop
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from benchmarks.door_clients import Place
from benchmarks.nginx_front import front_of, is_installed
from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.resume_calls import cut_calls
from benchmarks.resume_outcome import Compared, Received
from benchmarks.resume_returns import Latencies, Returns, returns_from_apart
from benchmarks.resume_rpc import Following
from benchmarks.resume_server import PACE_S, CuttingRelay, Ports, serving
from benchmarks.resume_transports import TRANSPORTS, way_of
from orchestrator.clients.address import CallFailed, ServerAway
from orchestrator.clients.returning import Cursor
from orchestrator.clients.text_socket import RealtimeSocket

DELTAS = 400
MOST_BYTES = 24_000
LOG_EVENTS = 8_192
MOST_BEHIND = 2_048
"""Events. A client that is cut often is slower than a reply: it is waited for while the log still has what it lacks."""

AIM_S = 0.050

_TEXTS_AT_ONCE = 64
"""The bare server gives others their turn as often as ours."""

SHAPES: tuple[dict[str, Any], ...] = (
    {"output_modalities": ["text"]},
    {"output_modalities": ["audio"], "audio": {"output": {"format": {"type": "audio/pcm", "rate": 24_000}}}},
    {"output_modalities": ["audio"], "audio": {"output": {"format": {"type": "audio/pcmu"}}}},
)
"""How replies come, in turn."""


CALL = "call"


async def cut(
    transport: str,
    cuts: int,
    seed: int = 0,
    deltas: int = DELTAS,
    most_bytes: int = MOST_BYTES,
    tell: Callable[[int], None] = lambda cuts: None,
    nginx: bool = False,
) -> Compared:
    """Follows a session over connections that are cut `cuts` times, between the client and nginx if it is there, and
    compares."""
    if transport == CALL:
        return await cut_calls(cuts, seed, deltas, tell)
    async with (
        serving(deltas, PACE_S, log_events=LOG_EVENTS) as ports,
        front_of(ports, nginx) as front,
        CuttingRelay(way_of(transport, _place(front))[1], random.Random(seed), most_bytes) as relay,
        RealtimeSocket.connect(f"http://127.0.0.1:{ports.http}") as observer,
    ):
        cursor = Cursor()
        cursor.given(observer.given)
        whole, got = Received(), Received()
        tasks = (
            asyncio.create_task(_watch(observer, cursor.session_id, whole), name="observer"),
            asyncio.create_task(
                _follow(way_of(transport, _place(front))[0], relay.port, cursor, got), name="client"
            ),
        )
        try:
            for number, shape in enumerate(itertools.cycle(SHAPES), start=1):
                await observer.send({"type": "session.update", "session": {"type": "realtime", **shape}})
                await observer.send({"type": "response.create"})
                await whole.wait_for(lambda number=number: whole.kinds["response.done"] >= number, tasks)  # type: ignore[misc]
                tell(relay.cuts)
                if relay.cuts >= cuts:
                    break
                await got.wait_for(lambda: whole.last - got.last < MOST_BEHIND, tasks)
            relay.is_cutting = False
            await got.wait_for(lambda: got.last >= whole.last, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return Compared.of(relay.cuts, whole, got)


def _place(front: Ports) -> Place:
    return Place(front.http, front.grpc, front.is_http2)


async def latencies(transport: str, events: int, tries: int, seed: int = 0, nginx: bool = False) -> Latencies:
    """Measures returns to random places of a log of so many events."""
    async with (
        serving(DELTAS, 0.0, log_events=2 * events) as ports,
        front_of(ports, nginx) as front,
        RealtimeSocket.connect(f"http://127.0.0.1:{ports.http}") as observer,
    ):
        cursor = Cursor()
        cursor.given(observer.given)
        whole = Received()
        watching = asyncio.create_task(_watch(observer, cursor.session_id, whole), name="observer")
        try:
            await observer.send({"type": "session.update", "session": {"type": "realtime", **SHAPES[0]}})
            while whole.last < events:
                done = whole.kinds["response.done"]
                await observer.send({"type": "response.create"})
                await whole.wait_for(lambda done=done: whole.kinds["response.done"] > done, [watching])  # type: ignore[misc]
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        texts = [whole.texts[number] for number in sorted(whole.texts)]
        async with serve(_list_server(texts), "127.0.0.1", 0, compression=None) as bare:
            bare_port = int(next(iter(bare.sockets)).getsockname()[1])
            plan = Returns(transport, bare_port, cursor.session_id, cursor.secret, events, tries, seed)
            return await returns_from_apart(_place(front), plan)


async def _watch(observer: RealtimeSocket, session_id: str, whole: Received) -> None:
    cursor = Cursor(session_id)
    while True:
        event = await observer.receive()
        whole.take(event, observer.text, cursor)


async def _follow(transport: Following, port: int, cursor: Cursor, got: Received) -> None:
    """Comes back as soon as a connection is gone."""
    while True:
        got.connections += 1
        try:
            async with aclosing(transport(port, cursor)) as events:
                async for event, text in events:
                    got.take(event, text, cursor)
        except (CallFailed, ServerAway):
            pass


def _list_server(texts: list[str]) -> Callable[[ServerConnection], Any]:
    async def send(connection: ServerConnection) -> None:
        assert connection.request is not None
        after = int(parse_qs(urlsplit(connection.request.path).query)["after"][0])
        with suppress(ConnectionClosed):  # whoever has its first text is gone
            for number, text in enumerate(texts[after:], start=1):
                await connection.send(text)
                if number % _TEXTS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            await connection.wait_closed()

    return send


def command(
    transport: Annotated[str, typer.Option(help=f"One of: {', '.join((*TRANSPORTS, CALL))}.")] = "websocket",
    cuts: Annotated[int, typer.Option(min=1, help="How often the connection is cut.")] = 200,
    events: Annotated[int, typer.Option(min=100, help="How long the log is that is come back to.")] = 10_000,
    tries: Annotated[int, typer.Option(min=2, help="How often it is come back to.")] = 200,
    nginx: Annotated[bool, typer.Option("--nginx", help="Through nginx, by configs/nginx.conf.")] = False,
    seed: Annotated[int, typer.Option(help="Where the cuts fall.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Connections cut in the middle of replies: what is lost or comes twice, and how long a return takes.

    \b
    Examples:
      chorale bench resume                            200 cuts, then 200 returns to a log of 10,000 events
      chorale bench resume --cuts 20 --events 1000 --tries 20   small and quick
      chorale bench resume --transport call           spoken replies over calls; some minutes
      chorale bench resume --transport grpc           over gRPC; also grpc-web, connect and sse
      chorale bench resume --nginx                    through nginx, which must be installed
    """
    if transport not in (*TRANSPORTS, CALL):
        raise typer.BadParameter(f"There is no transport '{transport}'.")
    if nginx and transport == CALL:
        raise typer.BadParameter("The sound of calls does not pass nginx.")
    if nginx:
        is_installed()
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    with console.status("cutting") as status:
        found = uvloop.run(
            cut(transport, cuts, seed, tell=lambda done: status.update(f"{done} of {cuts} cuts"), nginx=nginx)
        )
    compared: list[Row] = [
        {
            "transport": f"{transport}, nginx" if nginx else transport,
            "cuts": found.cuts,
            "connections": found.connections,
            "events": found.events,
            "MB": found.data_bytes / 1e6,
            "lost": found.lost,
            "changed": found.changed,
            "twice": found.doubled,
            "gaps": found.gaps,
        }
    ]
    console.print(table("Cut in the middle of replies", compared))
    outcome = Outcome(
        "resume",
        {
            "transport": transport,
            "cuts": cuts,
            "events": events,
            "tries": tries,
            "seed": seed,
            "nginx": nginx,
        },
        tables={"cuts": compared},
    )
    whole = "what was received is the unbroken run, byte for byte"
    outcome.claims.append(Claim(whole, found.is_equal, found.cuts))
    if transport != CALL:
        with console.status(f"coming back to a log of {events} events"):
            took = uvloop.run(latencies(transport, events, tries, seed, nginx))
        rows: list[Row] = [
            {"first missed event": name, "p50 ms": _quantile(values, 50), "p95 ms": _quantile(values, 95)}
            for name, values in (
                (f"chorale, {transport}", took.chorale),
                ("a list in memory, WebSocket", took.plain),
                ("round trip", took.round_trips),
            )
        ]
        console.print(table(f"Coming back to a log of {events} events", rows))
        outcome.tables["returns"] = rows
        p95 = _quantile(took.chorale, 95)
        most = AIM_S * 1_000 + _quantile(took.round_trips, 95)
        outcome.claims.append(Claim(f"first missed event, p95: at most {most:.1f} ms", p95 <= most, p95))
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _quantile(values: list[float], percent: int) -> float:
    """In milliseconds."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1_000
