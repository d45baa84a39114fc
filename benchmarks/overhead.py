"""`chorale bench overhead`: the server's processor time for a token event and a frame of sound; telemetry's part of it.

The real server with a scripted language model, its clients in another process; what is measured is the server's
processor time, all of its threads, divided by what it did. Three modes, one after the other in each round: without
telemetry, with metrics that are scraped once a second, and with traces and metrics sent to a collector besides. A run
of its own is profiled: its figures are shares, for a profiler slows everything down.
"""

import base64
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.sockets import Sockets, send_text

MODES = ("off", "metrics", "all")
MOST_SHARE = 0.05
"""What telemetry may add to a token's or a frame's processor time."""

_ASK = json.dumps(
    {"type": "response.create", "response": {"conversation": "none", "output_modalities": ["text"]}}
)
_FRAME = base64.b64encode(b"\1\0" * 480).decode()
"""20 ms at 24 kHz: about the least that clients send at one time."""
_APPEND = json.dumps({"type": "input_audio_buffer.append", "audio": _FRAME})
_CLEAR = json.dumps({"type": "input_audio_buffer.clear"})


def command(
    events: Annotated[int, typer.Option(min=100, help="Token events in each measurement.")] = 100_000,
    frames: Annotated[int, typer.Option(min=100, help="Frames of sound in each measurement.")] = 20_000,
    sockets: Annotated[int, typer.Option(min=1, help="Sessions that share them.")] = 20,
    rounds: Annotated[int, typer.Option(min=1, help="How often; the median counts.")] = 5,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """The server's processor time per token event and per frame of sound, with telemetry and without.

    \b
    Examples:
      chorale bench overhead                                       20 sessions, five rounds, two minutes
      chorale bench overhead --events 5000 --frames 1000 --rounds 1    small and quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    seen: dict[tuple[str, str], list[float]] = {}
    profiles: dict[str, list[Row]] = {}
    with collector() as endpoint:
        for number in range(rounds):
            for mode in MODES:
                with console.status(f"round {number + 1} of {rounds}: {mode}"):
                    seen.setdefault(("token", mode), []).append(tokens_us(mode, events, sockets, endpoint))
                    seen.setdefault(("frame", mode), []).append(frames_us(mode, frames, sockets, endpoint))
        with console.status("profile"):
            profiles["tokens, profiled"] = profiled("tokens", events // 5, sockets, endpoint)
            profiles["frames, profiled"] = profiled("frames", frames // 5, sockets, endpoint)
    rows = [_row(what, mode, seen) for what in ("token", "frame") for mode in MODES]
    outcome = Outcome(
        "overhead",
        {"events": events, "frames": frames, "sockets": sockets, "rounds": rounds},
        tables={"cost": rows, **profiles},
    )
    console.print(table("Processor time of the server, µs each", rows))
    for title, functions in profiles.items():
        console.print(table(title, functions[:15]))
    for row in rows:
        if row["telemetry"] == "all":
            share = row["of off"]
            assert isinstance(share, float)
            text = f"all of telemetry adds at most {MOST_SHARE:.0%} to a {row['per']}"
            outcome.claims.append(Claim(text, share <= 1 + MOST_SHARE, share))
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def tokens_us(mode: str, events: int, count: int, endpoint: str) -> float:
    """Returns the processor time of one token event: dispatcher, heart, log, link. Raises `OSError`."""
    each = events // count
    with serving(mode, each, endpoint) as server:
        clients = Sockets(b'output_text.delta"')
        try:
            asking = [clients.connect(server.port)[0] for _ in range(count)]
            before_s = server.cpu_s()
            for one in asking:
                send_text(one, _ASK)
            clients.count(each * count, 120)
            return 1e6 * (server.cpu_s() - before_s) / (each * count)
        finally:
            clients.close()


def frames_us(mode: str, frames: int, count: int, endpoint: str) -> float:
    """Returns the processor time of one frame of 20 ms that comes by WebSocket: decoding, ring, windows, and the way to
    a detector that does nothing. Raises `OSError`."""
    each = frames // count
    with serving(mode, 1, endpoint) as server:
        clients = Sockets(b'buffer.cleared"')
        try:
            speaking = [clients.connect(server.port)[0] for _ in range(count)]
            before_s = server.cpu_s()
            _speak(speaking, each)
            clients.count(count, 120)
            return 1e6 * (server.cpu_s() - before_s) / (each * count)
        finally:
            clients.close()


def _speak(speaking: list[socket.socket], each: int) -> None:
    """Sends so many frames on each, in turn, and then what is answered once they have been taken."""
    for _ in range(each):
        for one in speaking:
            send_text(one, _APPEND)
    for one in speaking:
        send_text(one, _CLEAR)


def profiled(what: str, amount: int, count: int, endpoint: str) -> list[Row]:
    """Returns where the time goes, by function, with all of telemetry on. Raises `OSError`."""
    each = max(1, amount // count)
    with serving("all", each if what == "tokens" else 1, endpoint) as server:
        clients = Sockets(b'output_text.delta"' if what == "tokens" else b'buffer.cleared"')
        try:
            opened = [clients.connect(server.port)[0] for _ in range(count)]
            server.tell("profile")
            if what == "tokens":
                for one in opened:
                    send_text(one, _ASK)
                clients.count(each * count, 300)
            else:
                _speak(opened, each)
                clients.count(count, 300)
            rows: list[Row] = json.loads(server.ask("report"))
            return rows
        finally:
            clients.close()


class Serving:
    """A server process and its questions."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.port = int(self._line())

    def tell(self, question: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()

    def ask(self, question: str) -> str:
        self.tell(question)
        return self._line()

    def cpu_s(self) -> float:
        return float(json.loads(self.ask("usage"))["cpu_s"])

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def serving(mode: str, tokens: int, endpoint: str) -> Iterator[Serving]:
    """Runs a server for a measurement."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.overhead_server", mode, str(tokens), endpoint],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Serving(process)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def collector() -> Iterator[str]:
    """Runs a collector that takes everything and keeps nothing; yields its URL."""

    class Taking(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _row(what: str, mode: str, seen: dict[tuple[str, str], list[float]]) -> Row:
    figures = seen[(what, mode)]
    ratios = [one / off for one, off in zip(figures, seen[(what, "off")], strict=True)]
    return {
        "per": what,
        "telemetry": mode,
        "µs": statistics.median(figures),
        "least": min(figures),
        "most": max(figures),
        "of off": statistics.median(ratios),
    }
