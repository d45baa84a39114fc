"""A server for `chorale bench ws`: sends token events to every socket as fast as they are taken, in one of three ways.

``python -m benchmarks.ws_server chorale`` is the real server with a scripted language model: every token passes the
dispatcher, its session's inbox and heart, the log and the link. ``starlette`` is uvicorn and Starlette sending the same
texts ready-made, ``websockets`` that library's broadcast. The port is the first line of its output; each line of its
input is a question (``usage``, ``session``), answered in one line.
"""

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import uvicorn
import uvloop
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.server import ServerConnection, broadcast, serve

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import MonotonicClock
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Replied, ReplyText, WorkKind
from orchestrator.scheduling.worker_ports import WorkerEvents
from orchestrator.sessions.registry import Registry
from orchestrator.settings import Settings
from orchestrator.settings.parts import registry_settings
from orchestrator.transports.auth import Gate, SecretBook
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.http import make_app
from orchestrator.transports.routes import Doors, ServiceCondition, WorkerCondition
from orchestrator.transports.server import ServerOptions, listen, make_server
from orchestrator.transports.webrtc import CallDoor
from orchestrator.transports.websocket import WebSocketDoor
from orchestrator.wire.client import CreateResponse, ResponseParams
from orchestrator.workers.voice_activity import VoiceActivity

TOKENS_PER_REPLY = 400
"""At most. A socket that is to get more of them gets several replies."""

TOKEN = " token"
MOST_SOCKETS = 2_000
PING_S = 600
"""The clients here answer no pings."""

TICKS_BETWEEN_LOOKS = 16
UNSENT_BYTES = 65_536
"""What `websockets` may have in hand for one client; its broadcast has no back-pressure of its own."""

REPLY = CreateResponse(response=ResponseParams(conversation="none", output_modalities=("text",)))


class ScriptedModel:
    """The dispatcher's `Workers`: gives every reply that runs one token per turn of the loop (`burst` of them, where
    asked), while no client is far behind; a reply that ends is followed by the next one of its session, until it had
    `tokens`."""

    def __init__(self, tokens: int, burst: int) -> None:
        self.registry: Registry | None = None
        self.door: WebSocketDoor | None = None
        self._burst = burst
        self._tokens = tokens
        self._due: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._sessions: dict[str, str] = {}
        self._events: WorkerEvents | None = None
        self._ticking = False
        self._ticks = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        return {"llm": FreeSlots("llm", MOST_SOCKETS - len(self._left))}

    def hopeless(self, kind: WorkKind) -> bool:
        return False

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        for job in jobs:
            due = self._due.setdefault(job.session_id, self._tokens)
            self._left[job.id] = min(due, TOKENS_PER_REPLY)
            self._due[job.session_id] = due - self._left[job.id]
            self._sessions[job.id] = job.session_id
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_soon(self._tick)

    def cancel(self, worker_id: str, job_id: str) -> None:
        self._left.pop(job_id, None)

    def _tick(self) -> None:
        assert self._events is not None
        assert self.door is not None
        loop = asyncio.get_running_loop()
        if not self._left:
            self._ticking = False
            return
        self._ticks += 1
        # Looked at now and then: it is the benchmark's own work, and the log holds thousands of events.
        if self._ticks % TICKS_BETWEEN_LOOKS == 0 and any(
            link._outbox.is_far_behind() for link in self.door._links.values()
        ):
            loop.call_later(0.001, self._tick)
            return
        for job_id, left in list(self._left.items()):
            count = min(left, self._burst)
            for _ in range(count):
                self._events.reported("llm", ReplyText(job_id, TOKEN))
            self._left[job_id] = left - count
            if left == count:
                self._finish(job_id)
        loop.call_soon(self._tick)

    def _finish(self, job_id: str) -> None:
        assert self._events is not None
        assert self.registry is not None
        del self._left[job_id]
        self._events.reported("llm", Replied(job_id, "stop", 1, 0, TOKENS_PER_REPLY))
        self._events.freed()
        session_id = self._sessions.pop(job_id)
        runner = self.registry._sessions.get(session_id)
        if runner is not None and self._due[session_id]:
            task = asyncio.get_running_loop().create_task(runner.submit("", REPLY))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


class NoDetector:
    """Stands in for the voice detector: no sound comes."""

    @property
    def window(self) -> int:
        return 512

    def new_state(self) -> NDArray[np.float32]:
        return np.zeros(0, np.float32)

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.zeros(len(windows), np.float32), states


class Ready:
    """Readiness of a server without workers."""

    def service(self) -> ServiceCondition:
        return ServiceCondition()

    def conditions(self) -> Sequence[WorkerCondition]:
        return ()


class Chorale:
    """The server as it is put together in `orchestrator.app`, with the scripted model in place of workers."""

    def __init__(self, tokens: int, burst: int) -> None:
        settings, clock = Settings(), MonotonicClock()
        directory = replace(registry_settings(settings), max_sessions=MOST_SOCKETS)
        self._model = ScriptedModel(tokens, burst)
        dispatcher = Dispatcher(self._model, clock, Scheduler(QueueBounds(jobs=2 * MOST_SOCKETS)))
        self.registry = Registry(directory, clock, dispatcher, VoiceActivity(NoDetector()))
        entrance = Entrance(Gate(None, SecretBook(8)), ("loopback",), (), clock)
        door = WebSocketDoor(self.registry, entrance, MOST_SOCKETS)
        self._model.registry, self._model.door = self.registry, door
        calls = CallDoor(self.registry, clock=clock)
        doors = Doors(entrance, door, calls, Ready(), directory.defaults, 3_600, clock)
        self._app = make_app(doors, {})
        self._dispatcher = dispatcher

    async def run(self) -> None:
        self._dispatcher.start()
        await make_server(self._app, ServerOptions(ping_s=PING_S)).serve(sockets())

    def newest(self) -> str:
        """Returns the query by which another socket joins the session opened last."""
        runner = list(self.registry._sessions.values())[-1]
        return f"?session_id={runner.id}&secret={runner.secret}"


def ready_made(tokens: int) -> list[str]:
    """The texts of all tokens, as our server would send them."""
    return [
        json.dumps(
            {
                "event_id": f"event_Wq3xT6nB1kZa_{number}",
                "type": "response.output_text.delta",
                "response_id": "resp_Wq3xT6nB1kZa_7",
                "item_id": "item_Wq3xT6nB1kZa_8",
                "output_index": 0,
                "content_index": 0,
                "delta": TOKEN,
            },
            separators=(",", ":"),
        )
        for number in range(1, tokens + 1)
    ]


async def run_starlette(tokens: int, burst: int) -> None:
    """Each socket's own task sends, a `burst` in each of its turns."""
    texts = ready_made(tokens)

    async def stream(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text(json.dumps({"type": "session.created"}))
        await websocket.receive_text()
        for at in range(0, len(texts), burst):
            for text in texts[at : at + burst]:
                await websocket.send_text(text)
            await asyncio.sleep(0)
        await websocket.receive()

    app = Starlette(routes=[WebSocketRoute("/v1/realtime", stream)])
    config = uvicorn.Config(
        app, ws="websockets-sansio", lifespan="off", log_config=None, access_log=False, ws_ping_interval=None
    )
    await uvicorn.Server(config).serve(sockets())


async def run_websockets(tokens: int, sockets: int, burst: int) -> None:
    """One task broadcasts, once all have asked."""
    texts, asked = ready_made(tokens), set[ServerConnection]()
    complete = asyncio.Event()

    async def take(connection: ServerConnection) -> None:
        await connection.send(json.dumps({"type": "session.created"}))
        await connection.recv()
        asked.add(connection)
        if len(asked) == sockets:
            complete.set()
        await connection.wait_closed()

    async with serve(take, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        say(str(next(iter(server.sockets)).getsockname()[1]))
        await complete.wait()
        for at in range(0, len(texts), burst):
            while any(  # noqa: ASYNC110 - a broadcast is told by nobody that it may go on
                one.transport.get_write_buffer_size() > UNSENT_BYTES for one in asked
            ):
                await asyncio.sleep(0.001)
            for text in texts[at : at + burst]:
                broadcast(asked, text)
            await asyncio.sleep(0)
        await asyncio.Event().wait()


def sockets() -> list[socket.socket]:
    """Returns what to serve on; clients may connect as soon as the port is told."""
    bound = listen("127.0.0.1", 0)
    bound[0].listen(MOST_SOCKETS)
    say(str(bound[0].getsockname()[1]))
    return bound


def say(line: str) -> None:
    """Tells the benchmark one line."""
    print(line, flush=True)


def answer_questions(server: Chorale | None) -> None:
    """In a thread: what the benchmark asks on our input."""
    for line in sys.stdin:
        if line.strip() == "usage":
            say(json.dumps({"cpu_s": time.process_time(), "wall_s": time.monotonic()}))
        elif server is not None:
            say(server.newest())


def main(way: str, tokens: int, sockets: int, burst: int) -> None:
    """Serves until it is killed: `tokens` for each of so many sockets."""

    chorale = Chorale(tokens, burst) if way == "chorale" else None
    threading.Thread(target=answer_questions, args=(chorale,), daemon=True).start()
    if chorale is not None:
        uvloop.run(chorale.run())
    elif way == "starlette":
        uvloop.run(run_starlette(tokens, burst))
    else:
        uvloop.run(run_websockets(tokens, sockets, burst))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
