"""The composition root: settings in, a running server out. The only file that knows every part."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from orchestrator.clock import US_PER_S, MonotonicClock
from orchestrator.errors import ChoraleError
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.observability.instrument import Several
from orchestrator.observability.inventory import Inventory
from orchestrator.observability.loop_lag import LoopLag
from orchestrator.recording.recorder import SessionRecorder
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.instances import Instances
from orchestrator.scheduling.serving import Serving
from orchestrator.sessions.links import SHUTTING_DOWN
from orchestrator.sessions.registry import Registry
from orchestrator.settings import Settings
from orchestrator.settings.engines import as_installed, detector, lacks_piper, worker_specs
from orchestrator.settings.parts import (
    call_settings,
    costs,
    grpc_options,
    limit_settings,
    openai,
    rate,
    recording_settings,
    registry_settings,
    scheduler,
    server_options,
    stream_settings,
    url_of,
)
from orchestrator.settings.watching import ServerParts, make_telemetry, watch_server
from orchestrator.transports.auth import Gate, KeyRing, SecretBook
from orchestrator.transports.certificates import check_certificate
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.http import make_app
from orchestrator.transports.key_file import read_key_file, read_signing_key
from orchestrator.transports.key_watch import KeyWatch, tell_in_clear
from orchestrator.transports.page import read_page
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.routes import Doors, ServiceCondition, WorkerCondition
from orchestrator.transports.rpc.door import RpcDoor
from orchestrator.transports.server import listen, make_server
from orchestrator.transports.sessions_http import EventsDoor
from orchestrator.transports.webrtc import CallDoor
from orchestrator.transports.websocket import WebSocketDoor
from orchestrator.workers.pool import Progress, WorkerPool
from orchestrator.workers.spec import PoolSettings
from orchestrator.workers.supervision import Phase
from orchestrator.workers.voice_activity import VoiceActivity

if TYPE_CHECKING:
    from orchestrator.transports.rpc.grpc_server import GrpcServer

log = logging.getLogger(__name__)

_SESSIONS_END_WITHIN_S = 2.0
_PARTS_END_WITHIN_S = 8.0
"""Links, calls and workers, side by side: a client may take 5 s for its last word, a worker 5 s for its last jobs and 2
more to go."""

_STREAMS_CLOSE_WITHIN_S = 6.0
_RECORDS_END_WITHIN_S = 6.0
"""Recordings (5 s for the disk) and telemetry, side by side."""


class CannotListen(ChoraleError):
    """The address is taken, or not this machine's."""

    code: ClassVar[str] = "cannot_listen"


class CannotRecord(ChoraleError):
    """The folder of the recordings cannot be written to."""

    code: ClassVar[str] = "cannot_record"


class Application:
    """A server, ready to `run`. Everything it is made of is made here and told about each other once."""

    def __init__(self, settings: Settings, progress: Progress | None = None) -> None:
        """Raises `ConfigError` and `ModelMissing`; starts nothing."""
        if lacks_piper(settings):
            log.warning("replies are text: piper-tts is not installed. For a voice: pip install piper-tts")
            settings = as_installed(settings)
        server = settings.server
        self._clock = clock = MonotonicClock()
        output_tokens = settings.limits.default_output_tokens
        ring = read_key_file(server.key_file, output_tokens) if server.key_file else None
        if server.tls is not None:
            check_certificate(server.tls.cert, server.tls.key)
        self._settings = settings
        self._telemetry = make_telemetry(settings, clock)
        self._pool = WorkerPool(PoolSettings(worker_specs(settings)), clock, progress)
        self.loop_lag = LoopLag(tell=self._telemetry.loop_lag if self._telemetry is not None else None)
        flow = settings.flow
        self._serving = Serving(flow.slo_error_rate, flow.shedding, self.loop_lag.usual_s)
        listening = (self._telemetry, self._serving) if self._telemetry is not None else (self._serving,)
        told = Several(*listening)
        self._costs = costs(settings, ring.quotas if ring else {})
        self._dispatcher = Dispatcher(
            self._pool,
            clock,
            scheduler(settings),
            Limiter(FixedLimit(flow.max_jobs)),
            instrument=told,
            costs=self._costs,
            instances=Instances(limit_settings(settings)),
            serving=self._serving,
        )
        self._voice = VoiceActivity(detector(settings))
        directory = registry_settings(settings)
        recording = recording_settings(settings)
        self._recorder = SessionRecorder(recording) if recording is not None else None
        self._registry = Registry(directory, clock, self._dispatcher, self._voice, self._recorder, told)
        self._registry.may_open = self._serving.may_open
        signing_key = read_signing_key(server.secret_file) if server.secret_file else None
        secrets = SecretBook(server.max_secrets, signing_key)
        self._entrance = Entrance(Gate(ring, secrets), server.origins, server.hosts, clock)
        self._links = WebSocketDoor(self._registry, self._entrance, server.max_links, rate(settings))
        self._streams = RpcDoor(server.max_links, rate(settings))
        self._grpc: GrpcServer | None = None
        self.grpc_port: int | None = None
        """Where gRPC is spoken, once it is."""
        self._calls = CallDoor(self._registry, call_settings(settings), clock)
        self._events = EventsDoor(
            self._registry, self._entrance, server.max_links, stream_settings(settings), rate(settings)
        )
        self._openai = openai(settings, self._dispatcher, clock)
        doors = Doors(
            self._entrance,
            self._links,
            self._calls,
            self,
            directory.defaults,
            settings.sessions.max_s,
            clock,
            self._telemetry.scrape if self._telemetry is not None else None,
            self._telemetry,
            self._registry,
            self._dispatcher,
            Proxies(server.proxies),
            self._streams,
            events=self._events,
            openai=self._openai,
            compression=server.compression,
        )
        self._server = make_server(
            make_app(doors, read_page(packs=server.compression)), server_options(server)
        )
        self.inventory = Inventory()
        """The server's buffers; empty without telemetry."""
        if self._telemetry is not None:
            parts = ServerParts(
                self._registry,
                self._dispatcher,
                self._pool,
                self._links,
                self._calls,
                secrets,
                self._recorder,
                self._streams,
                self._events,
                self._openai.errands,
            )
            self.inventory = watch_server(self._telemetry, parts, settings)
        self._keys: KeyWatch | None = None
        if server.key_file is not None and ring is not None:
            tell_in_clear(ring)
            self._keys = KeyWatch(
                server.key_file,
                self._entrance,
                server.key_poll_s,
                self._use_quotas,
                self._withdraw,
                partial(read_key_file, output_tokens=output_tokens),
            )
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    def conditions(self) -> Sequence[WorkerCondition]:
        """Says how every worker is doing (`transports.routes.Readiness`): why one is not ready, in one line. What it
        printed last, a stack trace perhaps, is for the log and not for everybody who may ask."""
        return [
            WorkerCondition(
                state.worker_id,
                state.phase.value,
                state.phase is Phase.READY,
                state.reason.partition("\n")[0] or None,
            )
            for state in self._pool.states()
        ]

    def service(self) -> ServiceCondition:
        """Says what is left out now, and since when (`transports.routes.Readiness`)."""
        told = self._serving.statistics()
        since_s = None if told.since_us is None else (self._clock.now_us() - told.since_us) / US_PER_S
        return ServiceCondition(told.service.level, told.service.degraded, since_s)

    def _use_quotas(self, ring: KeyRing) -> None:
        if self._costs is not None:
            self._costs.set_own(ring.quotas)

    def _withdraw(self, key_ids: frozenset[str]) -> None:
        """Sends away who came by keys that are worth nothing any more (`server.revoke`)."""
        if self._settings.server.revoke == "close":
            self._entrance.withdraw(key_ids)
            self._registry.withdraw(key_ids)
            self._calls.withdraw(key_ids)

    def stop(self) -> None:
        """Ends the server: the first time after what runs has finished (`server.drain_s`), the second time at once."""
        if self._stop.is_set():
            log.warning("stopping at once")
            self._hurry.set()
        self._stop.set()

    async def run(self, on_ready: Callable[[str], None] = lambda _: None) -> None:
        """Serves until `stop`; then returns with everything ended. `on_ready` gets the URL once every worker is ready.

        Raises `CannotListen`, `CannotRecord`.
        """
        server = self._settings.server
        self._start_recorder()
        try:
            sockets = listen(server.host, server.port)
        except OSError as error:
            if self._recorder is not None:
                self._recorder.close()
            raise CannotListen(
                f"cannot listen on {server.host}:{server.port}: {error.strerror}. "
                "Another server may run there; choose a port with --port or CHORALE_SERVER__PORT"
            ) from None
        try:
            await self._start_grpc()
        except CannotListen:
            for taken in sockets:
                taken.close()
            if self._recorder is not None:
                self._recorder.close()
            raise
        url = url_of(server, sockets[0].getsockname()[1])
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self.stop)
        watching = None
        if self._keys is not None:
            loop.add_signal_handler(signal.SIGHUP, self._keys.look_now)
            watching = asyncio.create_task(self._keys.run(), name="keys")
        self.loop_lag.start()
        self._dispatcher.start()
        if self._telemetry is not None:
            self._telemetry.start()
        working = asyncio.create_task(self._pool.run(), name="workers")
        serving = asyncio.create_task(self._server.serve(sockets), name="serving")
        telling = asyncio.create_task(self._tell_when_ready(url, on_ready), name="telling")
        stopping = asyncio.create_task(self._stop.wait(), name="stopping")
        try:
            await asyncio.wait({working, serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await self._drain()
        finally:
            aside = [task for task in (telling, stopping, watching) if task is not None]
            for task in aside:
                task.cancel()
            await self._end(serving, working)
            await asyncio.gather(*aside, return_exceptions=True)
        for task in (working, serving):
            if not task.cancelled():
                task.result()  # what broke by itself is not passed over

    def _start_recorder(self) -> None:
        """Raises `CannotRecord`: who wants sessions to be written down is told now that none would be."""
        if self._recorder is None:
            return
        try:
            self._recorder.start()
        except OSError as error:
            folder = self._settings.recording.dir
            raise CannotRecord(f"recording.dir: cannot write to {folder}: {error.strerror}") from None

    async def _start_grpc(self) -> None:
        """Raises `CannotListen`. gRPC is imported where it is spoken: that takes a tenth of a second."""
        options = grpc_options(self._settings.server)
        if options is None:
            return
        # What its core writes to the standard error by itself, for every odd request, is told as statuses too.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        from orchestrator.transports.rpc.grpc_server import GrpcServer

        grpc = GrpcServer(
            options,
            self._streams,
            self._entrance,
            self._registry,
            self,
            self._telemetry,
            Proxies(self._settings.server.proxies),
        )
        try:
            self.grpc_port = await grpc.start()
        except OSError as error:
            raise CannotListen(
                f"cannot speak gRPC on {options.host}:{options.port}: {error}. "
                "Another server may run there; choose a port with CHORALE_SERVER__GRPC__PORT"
            ) from None
        self._grpc = grpc

    async def _tell_when_ready(self, url: str, on_ready: Callable[[str], None]) -> None:
        await self._server.listening.wait()
        log.info("listening", extra={"url": url})
        await self._pool.settled()
        if missing := [one.name for one in self.conditions() if not one.is_ready]:
            log.warning("not ready yet", extra={"waits_for": ",".join(missing)})
        await self._pool.complete()
        on_ready(url)

    async def _drain(self) -> None:
        """Lets nobody new in and lets running turns finish."""
        self._entrance.close()
        drain_s = self._settings.server.drain_s
        log.info("draining", extra={"sessions": len(self._registry), "within_s": drain_s})
        done = asyncio.gather(self._registry.drain(drain_s), self._openai.errands.wait_empty())
        await self._unless_hurried(done, drain_s + 1)

    async def _end(self, serving: "asyncio.Task[None]", working: "asyncio.Task[None]") -> None:
        """Closes links, calls and workers, then the port, then what is written. Every step is bounded, and steps that
        wait for different parties wait side by side: docs/operations.md says for how long in all."""
        self._links.close(1001, SHUTTING_DOWN)
        self._streams.shut()
        self._events.close(1001, SHUTTING_DOWN)
        self._openai.close()
        await self._within(self._registry.close(), _SESSIONS_END_WITHIN_S)
        ending: list[Awaitable[None]] = [
            self._within(self._calls.close(), _PARTS_END_WITHIN_S),
            *(
                self._unless_hurried(door.wait_empty(), _PARTS_END_WITHIN_S)
                for door in (self._links, self._streams, self._events)
            ),
            self._unless_hurried(self._stop_workers(working), _PARTS_END_WITHIN_S),
        ]
        if self._grpc is not None:
            ending.append(self._unless_hurried(self._grpc.stop(_STREAMS_CLOSE_WITHIN_S), _PARTS_END_WITHIN_S))
        await asyncio.gather(*ending)
        self._server.should_exit = True
        await serving
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        self._dispatcher.close()
        self._voice.close()
        self.loop_lag.close()
        records: list[Awaitable[None]] = []
        if self._recorder is not None:
            records.append(self._within(asyncio.to_thread(self._recorder.close), _RECORDS_END_WITHIN_S))
        if self._telemetry is not None:
            records.append(self._unless_hurried(self._telemetry.stop(), _RECORDS_END_WITHIN_S))
        await asyncio.gather(*records)
        lag = self.loop_lag.statistics()
        log.info(
            "stopped",
            extra={"loop_lag_p99_ms": round(lag.p99_ms, 1), "worst_ms": round(lag.worst_ever_ms, 1)},
        )

    async def _stop_workers(self, working: "asyncio.Task[None]") -> None:
        """Lets running jobs end and every process go. Cancelling it leaves the rest to `working`."""
        await self._pool.stop()
        await asyncio.wait({working})

    async def _unless_hurried(self, work: Awaitable[object], within_s: float) -> None:
        """Waits for `work` as long as there is time and nobody hurries."""
        await self._within(work, within_s, self._hurry.wait())

    async def _within(self, work: Awaitable[object], within_s: float, *others: Awaitable[object]) -> None:
        """Waits for `work`, or one of the others, as long as there is time; what has not ended then is cancelled."""
        tasks = [asyncio.ensure_future(one) for one in (work, *others)]
        try:
            await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    log.error("failed while stopping", exc_info=result)
