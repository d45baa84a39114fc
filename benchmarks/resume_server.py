"""A server for `chorale bench resume`, and the line to it that is cut.

The server is put together as in `orchestrator.app`, with a scripted language model and a scripted voice in place of
workers: every delta and every piece of sound passes the dispatcher, its session's heart, the log and the door.
"""

import asyncio
import contextlib
import gc
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import Clock, MonotonicClock
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Replied, Reply, ReplyText, Speak, SpeechPiece, Spoke, WorkKind
from orchestrator.scheduling.worker_ports import WorkerEvents
from orchestrator.sessions.registry import Registry
from orchestrator.settings import Settings
from orchestrator.settings.parts import registry_settings
from orchestrator.transports.auth import Gate, SecretBook
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.errand import Errands
from orchestrator.transports.http import make_app
from orchestrator.transports.openai_door import OpenAi
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.routes import Doors, ServiceCondition, WorkerCondition
from orchestrator.transports.rpc.door import GrpcOptions, RpcDoor
from orchestrator.transports.rpc.grpc_server import GrpcServer
from orchestrator.transports.server import ServerOptions, listen, make_server
from orchestrator.transports.sessions_http import EventsDoor
from orchestrator.transports.webrtc import CallDoor
from orchestrator.transports.websocket import WebSocketDoor
from orchestrator.workers.voice_activity import VoiceActivity

PACE_S = 0.000_5
"""Between two words of a reply."""

SLOTS = 8
SENTENCE_DELTAS = 20
RATE_HZ = 24_000
PIECE_SAMPLES = RATE_HZ // 10
SENTENCE_PIECES = 5


class ScriptedWorkers:
    """The dispatcher's `Workers`: a reply is `deltas` words, one each `pace_s`, after `think_s`; a sentence is half a
    second of noise, in pieces that are there at once. `slots` of each run at one time."""

    def __init__(self, deltas: int, pace_s: float, think_s: float = 0.0, slots: int = SLOTS) -> None:
        self._deltas = deltas
        self._pace_s = pace_s
        self._think_s = think_s
        self._slots = slots
        self._events: WorkerEvents | None = None
        self._running: dict[str, str] = {}

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        def left(kind: WorkKind) -> FreeSlots:
            return FreeSlots(kind, self._slots - sum(one == kind for one in self._running.values()))

        return {"llm": left("llm"), "speech": left("speech")}

    def hopeless(self, kind: WorkKind) -> bool:
        return False

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        loop = asyncio.get_running_loop()
        for job in jobs:
            self._running[job.id] = worker_id
            if isinstance(job.work, Reply):
                loop.call_later(self._think_s, self._write, job.id, 0)
            elif isinstance(job.work, Speak):
                loop.call_soon(self._speak, job.id, job.work.text)

    def cancel(self, worker_id: str, job_id: str) -> None:
        self._running.pop(job_id, None)

    def _write(self, job_id: str, number: int) -> None:
        assert self._events is not None
        if job_id not in self._running:
            return
        if number == self._deltas:
            self._events.reported("llm", Replied(job_id, "stop", 1, 0, number))
            self._end(job_id)
            return
        end = "." if number % SENTENCE_DELTAS == SENTENCE_DELTAS - 1 else ""
        self._events.reported("llm", ReplyText(job_id, f" word{number}{end}"))
        asyncio.get_running_loop().call_later(self._pace_s, self._write, job_id, number + 1)

    def _speak(self, job_id: str, text: str) -> None:
        assert self._events is not None
        noise = random.Random(text)
        for index in range(SENTENCE_PIECES):
            if job_id not in self._running:
                return
            sound = noise.randbytes(2 * PIECE_SAMPLES)
            self._events.reported("speech", SpeechPiece(job_id, index, RATE_HZ, PIECE_SAMPLES, sound))
        self._events.reported("speech", Spoke(job_id, SENTENCE_PIECES))
        self._end(job_id)

    def _end(self, job_id: str) -> None:
        assert self._events is not None
        self._running.pop(job_id, None)
        self._events.freed()


class _NoDetector:
    """Stands in for the voice detector: no sound comes."""

    window = 512

    def new_state(self) -> NDArray[np.float32]:
        return np.zeros(0, np.float32)

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.zeros(len(windows), np.float32), states


class _Ready:
    """Readiness of a server without workers."""

    def service(self) -> ServiceCondition:
        return ServiceCondition()

    def conditions(self) -> Sequence[WorkerCondition]:
        return ()


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the server is: by HTTP, and by gRPC; and who has its work done. `is_http2`: HTTP/2 is spoken where gRPC is,
    as nginx does."""

    http: int
    grpc: int
    dispatcher: Dispatcher
    clock: Clock
    is_http2: bool = False


@contextlib.asynccontextmanager
async def serving(
    deltas: int, pace_s: float, log_events: int, think_s: float = 0.0, slots: int = SLOTS
) -> AsyncIterator[Ports]:
    """Serves in this loop until the block is left; gives the ports."""
    settings, clock = Settings(), MonotonicClock()
    directory = replace(registry_settings(settings), log_events=log_events)
    workers = ScriptedWorkers(deltas, pace_s, think_s, slots)
    dispatcher = Dispatcher(workers, clock, Scheduler(QueueBounds(jobs=max(64, slots))))
    detector = VoiceActivity(_NoDetector())
    registry = Registry(directory, clock, dispatcher, detector)
    entrance = Entrance(Gate(None, SecretBook(8)), ("loopback",), (), clock)
    calls = CallDoor(registry, clock=clock)
    door = WebSocketDoor(registry, entrance, 1_000)
    streams = RpcDoor(1_000)
    believed = Proxies(["127.0.0.1"])
    rpc = GrpcServer(GrpcOptions(), streams, entrance, registry, _Ready(), None, believed)
    events = EventsDoor(registry, entrance, 1_000)
    doors = Doors(
        entrance,
        door,
        calls,
        _Ready(),
        directory.defaults,
        3_600,
        clock,
        directory=registry,
        dispatcher=dispatcher,
        proxies=believed,
        rpc=streams,
        events=events,
        openai=OpenAi(Errands(dispatcher, clock), {"llm": "scripted"}),
    )
    server = make_server(make_app(doors, {}), ServerOptions())
    sockets = listen("127.0.0.1", 0)
    dispatcher.start()
    task = asyncio.create_task(server.serve(sockets), name="server")
    try:
        await server.listening.wait()
        grpc_port = await rpc.start()
        gc.collect()
        gc.freeze()  # as `chorale serve` does
        yield Ports(sockets[0].getsockname()[1], grpc_port, dispatcher, clock)
    finally:
        gc.unfreeze()
        await registry.close()
        await rpc.stop(1)
        await calls.close()
        server.should_exit = True
        await task
        dispatcher.close()
        detector.close()


class CuttingRelay:
    """Carries TCP connections to a server, and cuts each after a random number of bytes towards the client: in the
    middle of a frame, of the upgrade, or before a byte was sent; with a reset or, half of the time, with an end."""

    def __init__(self, port: int, chance: random.Random, most_bytes: int) -> None:
        self._port = port
        self._chance = chance
        self._most_bytes = most_bytes
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.cuts = 0
        self.is_cutting = True

    @property
    def port(self) -> int:
        """Where clients connect."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> "CuttingRelay":
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
            writer.transport.set_write_buffer_limits(
                0
            )  # `drain` is over when the last byte is with the kernel
            up = asyncio.create_task(_pump(reader, to_server))
            try:
                await self._down(from_server, writer)
            finally:
                up.cancel()
                await asyncio.wait([up])
                to_server.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass  # one end is gone, or the relay; so is the other end, now
        finally:
            if self._chance.random() < 0.5:
                writer.transport.abort()
            writer.close()
            self._tasks.discard(task)

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._chance.randrange(self._most_bytes)
        while data := await reader.read(4_096):
            if not self.is_cutting:
                left = self._most_bytes
            elif len(data) >= left:
                writer.write(data[:left])
                await writer.drain()
                self.cuts += 1
                return
            left -= len(data)
            writer.write(data)
            await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(4_096):
            writer.write(data)
            await writer.drain()
