"""Telemetry for a server as it is configured, and what it watches of it.

Nothing of OpenTelemetry is imported where neither metrics nor traces are wanted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from orchestrator.clock import Clock
from orchestrator.observability.inventory import Inventory
from orchestrator.recording.backlog import MOST_WAITING, MOST_WAITING_BYTES
from orchestrator.recording.recorder import SessionRecorder
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.sessions.clips import MAX_CLIP_BYTES
from orchestrator.sessions.inbox import MOST_EVENTS
from orchestrator.sessions.intake import MOST_WINDOWS
from orchestrator.sessions.pictures import MAX_PICTURE_BYTES
from orchestrator.sessions.registry import Registry
from orchestrator.settings.parts import queue_bounds
from orchestrator.settings.schema import Settings
from orchestrator.telemetry.options import LanguageModel, TelemetrySettings
from orchestrator.transports.auth import MAX_INITIAL_BYTES, SecretBook
from orchestrator.transports.call import MAX_UNREAD, MAX_UNREAD_BYTES
from orchestrator.transports.errand import MOST_ERRANDS, Errands
from orchestrator.transports.outbox import MAX_TOLD, MAX_TOLD_BYTES
from orchestrator.transports.rpc.door import RpcDoor
from orchestrator.transports.sessions_http import EventsDoor
from orchestrator.transports.webrtc import CallDoor
from orchestrator.transports.websocket import WebSocketDoor
from orchestrator.workers.pool import WorkerPool
from orchestrator.workers.supervision import Phase

if TYPE_CHECKING:
    from orchestrator.telemetry.readings import WorkerReading
    from orchestrator.telemetry.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class ServerParts:
    """What is watched."""

    registry: Registry
    dispatcher: Dispatcher
    pool: WorkerPool
    links: WebSocketDoor
    calls: CallDoor
    secrets: SecretBook
    recorder: SessionRecorder | None
    streams: RpcDoor | None = None
    events: EventsDoor | None = None
    errands: Errands | None = None


def telemetry_settings(settings: Settings) -> TelemetrySettings:
    """Returns what telemetry is to do."""
    told, llm = settings.telemetry, settings.workers.llm
    # A path is shortened to its last part: labels name models, not places on a disk. What follows a point is a version
    # as often as the kind of a file.
    model = PurePath(llm.model).name.removesuffix(".gguf") if llm.model else "default"
    provider = "openai" if llm.engine.startswith("openai") else "chorale"
    return TelemetrySettings(
        metrics=told.metrics,
        endpoint=told.otlp_endpoint,
        headers=told.otlp_headers,
        traces=told.traces,
        sends_metrics=told.otlp_metrics,
        share=told.sample,
        every_s=told.export_every_s,
        service=told.service_name,
        model=LanguageModel(provider, model),
    )


def make_telemetry(settings: Settings, clock: Clock) -> "Telemetry | None":
    """Returns telemetry; None where nobody is told anything."""
    wanted = telemetry_settings(settings)
    if not wanted.metrics and wanted.endpoint is None:
        return None
    from orchestrator.telemetry.telemetry import Telemetry

    return Telemetry(wanted, clock)


def watch_server(telemetry: "Telemetry", parts: ServerParts, settings: Settings) -> Inventory:
    """Has `telemetry` read all parts at each scrape; returns the server's buffers."""
    from orchestrator.telemetry import buffers, readings

    server, sessions = settings.server, settings.sessions
    inventory = Inventory()
    bounds = buffers.SessionBounds(
        server.max_sessions,
        sessions.log_events,
        sessions.log_bytes,
        sessions.total_log_bytes,
        MOST_EVENTS,
        MOST_WINDOWS,
        MAX_CLIP_BYTES + MAX_PICTURE_BYTES,
    )
    telemetry.prepare(buffers.register_sessions(inventory, parts.registry, bounds))
    buffers.register_jobs(inventory, parts.dispatcher, queue_bounds(settings))
    most_links = 2 * server.max_links  # WebSockets, and streams of RPC
    buffers.register_held(inventory, "links", lambda: (_links(parts), 0, _refused(parts)), most_links, 0)
    buffers.register_held(
        inventory, "told", lambda: _told(parts), most_links * MAX_TOLD, most_links * MAX_TOLD_BYTES
    )
    if (streams := parts.events) is not None:
        buffers.register_held(
            inventory, "streams", lambda: (streams.links, 0, streams.refused), server.max_links, 0
        )
        buffers.register_held(
            inventory,
            "streams_told",
            streams.told,
            server.max_links * MAX_TOLD,
            server.max_links * MAX_TOLD_BYTES,
        )
    if (errands := parts.errands) is not None:
        buffers.register_held(
            inventory, "errands", lambda: (len(errands), 0, errands.refused), MOST_ERRANDS, 0
        )
    most_calls = server.max_sessions
    buffers.register_held(
        inventory, "call_events", parts.calls.unread, most_calls * MAX_UNREAD, most_calls * MAX_UNREAD_BYTES
    )
    most_secrets = server.max_secrets
    buffers.register_held(
        inventory,
        "client_secrets",
        lambda: (len(parts.secrets), 0, parts.secrets.refused),
        most_secrets,
        most_secrets * MAX_INITIAL_BYTES,
    )
    if (recorder := parts.recorder) is not None:
        buffers.register_held(
            inventory, "recordings", lambda: _waiting(recorder), MOST_WAITING, MOST_WAITING_BYTES
        )
    buffers.register_telemetry(inventory, telemetry)
    buffers.register_logs(inventory)
    telemetry.watch(readings.process)
    telemetry.watch(readings.jobs(parts.dispatcher))
    telemetry.watch(readings.workers(lambda: list(_workers(parts.pool))))
    telemetry.watch(
        readings.sessions(
            parts.registry,
            inventory,
            {
                "websocket": lambda: parts.links.links,
                "call": lambda: parts.calls.calls,
                "events": lambda: parts.events.links if parts.events else 0,
                "rpc": lambda: parts.streams.links if parts.streams else 0,
            },
        )
    )
    return inventory


def _links(parts: ServerParts) -> int:
    return parts.links.links + (parts.streams.links if parts.streams else 0)


def _refused(parts: ServerParts) -> int:
    return parts.links.refused + (parts.streams.refused if parts.streams else 0)


def _told(parts: ServerParts) -> tuple[int, int, int]:
    """Returns the private messages that wait on links of WebSocket and RPC: how many, their bytes, and how many links
    were closed for too many."""
    told = [door.told() for door in (parts.links, parts.streams) if door is not None]
    count, size, closed = (sum(column) for column in zip(*told, strict=True))
    return count, size, closed


def _waiting(recorder: SessionRecorder) -> tuple[int, int, int]:
    told = recorder.statistics()
    return told.entries, told.bytes, told.refused


def _workers(pool: WorkerPool) -> "Iterable[WorkerReading]":
    from orchestrator.telemetry.readings import WorkerReading

    for state in pool.states():
        is_ready = state.phase is Phase.READY
        yield WorkerReading(
            state.worker_id, is_ready, state.starts, state.memory_bytes, state.cpu_s, state.memory_share
        )
