"""A stand-in for an OpenAI-compatible endpoint, and what a test says of its answers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from modalities.ports import ChatMessage, ReplyDelta, TextDelta, Tool

HELLO = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello"))
WEATHER = Tool(
    "get_weather", "Tells the weather.", '{"type":"object","properties":{"city":{"type":"string"}}}'
)


class StandInEndpoint(ThreadingHTTPServer):
    """Plays back prepared chunks to every request and keeps the requests.

    `refusals` are answered first, one a request: a status with headers and a message. With `endless` it repeats its
    last chunk until the caller hangs up; with `silent` it says nothing more, before its headers already where `silent`
    is ``"all"``. Either way it tells by `hung_up` that the caller has gone.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.chunks: list[dict[str, Any]] = []
        self.refusals: list[tuple[int, dict[str, str], str]] = []
        self.endless = False
        self.silent = ""
        self.drops = 0
        self.asked = threading.Event()
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Answering(BaseHTTPRequestHandler):
    server: StandInEndpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        self.server.asked.set()
        if self.server.drops:
            self.server.drops -= 1
            self.close_connection = True
            return
        if self.server.refusals:
            self._refuse(*self.server.refusals.pop(0))
            return
        if self.server.silent == "all":
            self._wait_for_the_caller()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        try:
            for chunk in self.server.chunks:
                self._say(chunk)
            while self.server.endless:
                self._say(self.server.chunks[-1])
        except (BrokenPipeError, ConnectionResetError):
            self.server.hung_up.set()
            return
        if self.server.silent:
            self._wait_for_the_caller()
        else:
            self.wfile.write(b"data: [DONE]\n\n")

    def _refuse(self, status: int, headers: dict[str, str], message: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps({"error": {"message": message}}).encode())

    def _wait_for_the_caller(self) -> None:
        try:
            gone = self.rfile.read(1) == b""
        except ConnectionResetError:
            gone = True
        if gone:
            self.server.hung_up.set()

    def _say(self, chunk: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps the test's output clean."""


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": choices}


def counted(given: int, cached: int, written: int) -> dict[str, Any]:
    usage = {
        "prompt_tokens": given,
        "completion_tokens": written,
        "total_tokens": given + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {**chunk(), "choices": [], "usage": usage}


def call_piece(arguments: str, name: str | None = None, call_id: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": 0, "function": function} | ({"id": call_id} if call_id else {})]}


class Heard(list[ReplyDelta]):
    """Keeps deltas that say something; wants no more once it has `enough` and was then asked so often in silence.

    A slow machine is asked in silence before and between deltas too: those say nothing and are not counted.
    """

    def __init__(self, enough: int = 1_000_000, silences: int = 0) -> None:
        super().__init__()
        self._enough = enough
        self._silences = silences

    def take(self, delta: ReplyDelta) -> bool:
        if delta != TextDelta(""):
            self.append(delta)
        elif len(self) >= self._enough:
            self._silences -= 1
        return len(self) < self._enough or self._silences > 0
