"""The configuration as the parts of the server want it: each in its own words and units."""

from collections.abc import Mapping
from pathlib import Path

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import Clock, ms, seconds
from orchestrator.flow.policies import LimitSettings
from orchestrator.flow.tenants import Quotas, TenantLimits
from orchestrator.flow.watermark import AdaptiveWatermark, FixedWatermark, Watermark, target_us
from orchestrator.recording.recorder import RecordingSettings
from orchestrator.recording.writer import Room
from orchestrator.scheduling.cost import Costs
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Tier
from orchestrator.scheduling.kinds import KINDS
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import WorkKind
from orchestrator.sessions.registry import RegistrySettings
from orchestrator.sessions.rules import DEFAULT_INSTRUCTIONS, SessionRules
from orchestrator.settings.agreement import consistency_rules
from orchestrator.settings.quotas import quotas_of
from orchestrator.settings.schema import Flow, IceServer, Server, Settings, Worker
from orchestrator.transports import call
from orchestrator.transports.errand import Errands
from orchestrator.transports.openai_door import HttpLimits, OpenAi
from orchestrator.transports.pace import Rate
from orchestrator.transports.rpc.door import GrpcOptions
from orchestrator.transports.server import ServerOptions
from orchestrator.transports.sse_link import StreamSettings
from orchestrator.wire.session import Session

MODEL = "chorale"
"""What a session's `model` is called where nobody names one."""


def registry_settings(settings: Settings) -> RegistrySettings:
    """Returns what sessions live by and how many there may be."""
    sessions = settings.sessions
    instructions = DEFAULT_INSTRUCTIONS if sessions.instructions is None else sessions.instructions
    speaks = settings.workers.speech is not None
    defaults = Session(
        id="",
        model=MODEL,
        expires_at=0,
        instructions=instructions,
        output_modalities=("audio",) if speaks else ("text",),
    )
    rules = SessionRules(
        instructions=instructions,
        window_us=ms(sessions.align.window_ms),
        text_grace_us=ms(sessions.text_grace_ms),
        grace_us=seconds(sessions.grace_s),
        abandoned_us=seconds(settings.flow.abandoned_s),
        max_session_us=seconds(sessions.max_s),
        draft_every_us=ms(sessions.draft_every_ms),
        max_utterance_s=sessions.max_utterance_s,
        buffer_s=sessions.buffer_s,
        speech_output=speaks,
        images=settings.workers.llm.images,
        item_bytes=settings.inbound.session_bytes,
        early_replies=sessions.early_replies,
        consistency=consistency_rules(settings),
    )
    return RegistrySettings(
        defaults,
        rules,
        settings.server.max_sessions,
        sessions.log_events,
        sessions.log_bytes,
        sessions.total_log_bytes,
    )


def scheduler(settings: Settings) -> Scheduler:
    """Returns the scheduler, with a mark for each kind of work."""
    return Scheduler(queue_bounds(settings), marks={kind: _mark(settings.flow) for kind in KINDS})


def queue_bounds(settings: Settings) -> QueueBounds:
    """Returns how much work may wait."""
    return QueueBounds(jobs=settings.flow.max_waiting, watermark=settings.flow.share)


def _mark(flow: Flow) -> Watermark:
    if flow.watermark == "fixed":
        return FixedWatermark(flow.max_waiting, flow.share)
    wanted_us = target_us() if flow.target_wait_ms is None else ms(flow.target_wait_ms)
    return AdaptiveWatermark(flow.max_waiting, wanted_us, share=flow.share)


def limit_settings(settings: Settings) -> Mapping[WorkKind, LimitSettings]:
    """Returns how many jobs one worker of each kind may have at one time, and by which rule."""
    return {
        role: LimitSettings(
            policy=worker.limit.policy,
            base=worker.limit.base or worker.parallel,
            most=worker.parallel,
            p95_us=ms(worker.limit.p95_ms),
            slope_us=ms(worker.limit.slope_ms),
        )
        for role, worker in settings.workers.by_role().items()
    }


def costs(settings: Settings, own: Mapping[str, Quotas]) -> Costs | None:
    """Returns what bounds the use of tenants (`tenant_limits`); None where nothing is or will be bounded."""
    limits = tenant_limits(settings, own)
    return None if limits is None else Costs(limits, settings.limits.default_output_tokens)


def tenant_limits(settings: Settings, own: Mapping[str, Quotas]) -> TenantLimits | None:
    """Returns the accounts of what tenants use: by tier, and for those that the key file names by their `own` quotas.
    None where nothing is bounded for anybody, and no key file may come to bound it."""
    limits = settings.limits
    by_tier: dict[int, Quotas] = {
        Tier.PLATINUM: quotas_of(limits.platinum),
        Tier.GOLD: quotas_of(limits.gold),
        Tier.SILVER: quotas_of(limits.silver),
    }
    if settings.server.key_file is None and not any(by_tier.values()) and not any(own.values()):
        return None
    return TenantLimits(by_tier, own, limits.max_tenants)


def openai(settings: Settings, dispatcher: Dispatcher, clock: Clock) -> OpenAi:
    """Returns what the OpenAI HTTP API answers with: the models by the names that the configuration gives them."""
    best = settings.server.batch_tier
    workers = settings.workers.by_role()
    places: dict[WorkKind, int] = {role: worker.count * worker.parallel for role, worker in workers.items()}
    errands = Errands(dispatcher, clock, None if best is None else Tier[best.upper()], places)
    models: dict[WorkKind, str] = {role: _model_name(worker) for role, worker in workers.items()}
    limits = HttpLimits(settings.http.max_upload_bytes, settings.http.max_audio_s)
    return OpenAi(errands, models, limits, images=settings.workers.llm.images)


def _model_name(worker: Worker) -> str:
    """Returns what a model is called: a file or folder by its own name, without the place where it lies."""
    named = worker.model or worker.options.get("model")
    if not isinstance(named, str) or not named:
        return worker.engine
    return Path(named).name if Path(named).is_absolute() or named.startswith(".") else named


def call_settings(settings: Settings) -> call.CallSettings:
    """Returns how calls are made."""
    calls = settings.calls
    return call.CallSettings(
        ice_servers=tuple(_ice_server(one) for one in calls.ice_servers),
        ice_timeout_s=calls.ice_timeout_s,
        public_addresses=calls.public_addresses,
        rate=rate(settings),
        max_connecting=calls.max_connecting,
    )


def _ice_server(one: IceServer) -> call.IceServer:
    urls = (one.urls,) if isinstance(one.urls, str) else one.urls
    return call.IceServer(urls, one.username, one.credential)


def server_options(server: Server) -> ServerOptions:
    """Returns how connections are kept."""
    return ServerOptions(
        ping_s=server.ping_s,
        compression=server.compression,
        certificate=server.tls.cert if server.tls else None,
        certificate_key=server.tls.key if server.tls else None,
    )


def grpc_options(server: Server) -> GrpcOptions | None:
    """Returns where and how gRPC is spoken; None where it is not. The certificate is that of the HTTP port."""
    if server.grpc is None:
        return None
    return GrpcOptions(
        host=server.grpc.host,
        port=server.grpc.port,
        ping_s=server.ping_s,
        certificate=server.tls.cert if server.tls else None,
        certificate_key=server.tls.key if server.tls else None,
    )


def stream_settings(settings: Settings) -> StreamSettings:
    """Returns how server-sent events are kept."""
    return StreamSettings(settings.http.heartbeat_s, settings.http.retry_ms)


def rate(settings: Settings) -> Rate:
    """Returns what one link may send."""
    inbound = settings.inbound
    return Rate(inbound.events_per_s, inbound.bytes_per_s, inbound.burst_bytes, inbound.excess_s)


def recording_settings(settings: Settings) -> RecordingSettings | None:
    """Returns how sessions are written down; None where none is."""
    recording = settings.recording
    if recording.dir is None:
        return None
    room = Room(recording.max_bytes, recording.max_total_bytes, recording.retention_days)
    return RecordingSettings(recording.dir, recording.enabled, room, recording.redact)


def url_of(server: Server, port: int) -> str:
    """Returns where a person finds the page: the address itself, or this machine's for "everywhere"."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if server.tls else 'http'}://{shown}:{port}"
