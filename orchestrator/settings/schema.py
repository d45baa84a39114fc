"""Every key of the configuration with its type, bounds and default. The defaults are the embedded server;
`configs/default.yaml` writes them out with comments."""

import os
import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from orchestrator.transports.origins import check_entry
from orchestrator.workers.desk import MOST_TASKS

Role = Literal["asr", "understand", "llm", "speech"]
Positive = Annotated[float, Field(gt=0, le=1_000_000_000)]
NotNegative = Annotated[float, Field(ge=0, le=1_000_000_000)]
"""Of seconds, milliseconds or days: what has no end is no number of microseconds."""

Count = Annotated[int, Field(ge=1)]
Amount = Annotated[int, Field(ge=1, le=4_000_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Duration = Annotated[float, Field(ge=1, le=3_600_000)]
"""Milliseconds that work may take or wait: whole microseconds are counted, and nothing is divided by none."""

Parallel = Annotated[int, Field(ge=1, le=MOST_TASKS)]
"""Jobs of one worker process, which keeps no more."""

LEAST_JOBS = 16
"""Accepted at one time: a turn has several, it is understood, answered and spoken; with one place it has no answer."""

Pause = Annotated[float, Field(gt=0, le=86_400)]
"""Seconds that a thread waits; it cannot wait for ever."""


class Section(BaseModel):
    """One mapping of the configuration. Unknown keys are faults, values do not change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


def _web_address(endpoint: str) -> str:
    wanted = ValueError("an address that begins with http:// or https:// and names a host")
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError:
        raise wanted from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not endpoint.isprintable()
        or " " in endpoint
    ):
        raise wanted
    return endpoint


def _network(written: str) -> str:
    try:
        return str(ip_network(written))
    except ValueError:
        raise ValueError("an address or a network, like 10.0.0.7 or 10.0.0.0/8") from None


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[!-~\xa0-\xff]([\t -~\xa0-\xff]*[!-~\xa0-\xff])?")


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("a header's name: letters, digits and any of !#$%&'*+-.^_`|~")
    return name


def _header_value(value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError("a header's value: Latin-1, no line breaks, no spaces around it, not empty")
    return value


def _one_process(workers: int) -> int:
    if workers != 1:
        raise ValueError("1: one process holds all sessions; more machines come with the cluster store")
    return workers


class Tls(Section):
    """A certificate chain and its private key, both PEM: the server then speaks https and wss."""

    cert: Path
    key: Path


class Rpc(Section):
    """Where gRPC is spoken; gRPC-Web and Connect go by the HTTP port."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 50_051


class Server(Section):
    """Where the server listens and whom it lets in."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    workers: Annotated[int, AfterValidator(_one_process)] = 1
    key_file: Path | None = None
    origins: tuple[Annotated[str, AfterValidator(check_entry)], ...] = ("loopback",)
    hosts: tuple[str, ...] = ()
    tls: Tls | None = None
    drain_s: NotNegative = 20.0
    max_sessions: Count = 100
    max_links: Count = 400
    max_secrets: Count = 4_096
    compression: bool = True
    ping_s: Annotated[float, Field(ge=1, le=1_000_000_000)] = 20.0
    grpc: Rpc | None = None
    proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    secret_file: Path | None = None
    key_poll_s: Pause = 2.0
    revoke: Literal["close", "keep"] = "close"
    batch_tier: Literal["platinum", "gold", "silver"] | None = None


class Http(Section):
    """Server-sent events, and what requests may bring."""

    heartbeat_s: Positive = 15.0
    retry_ms: Count = 1_000
    max_upload_bytes: Amount = 26_214_400
    max_audio_s: Positive = 3_600.0


class Inbound(Section):
    """What one link may send, and what one session keeps of it. A link over its rate is read no faster, and closed once
    it has been for `excess_s`."""

    events_per_s: Positive = 200.0
    bytes_per_s: Amount = 4_194_304
    burst_bytes: Amount = 31_457_280
    excess_s: Positive = 10.0
    session_bytes: Amount = 33_554_432


class Align(Section):
    """How signs of the user are put together (design §4)."""

    window_ms: NotNegative = 1_500


class Sessions(Section):
    """How long sessions live and what they may hold."""

    instructions: str | None = None
    grace_s: NotNegative = 30.0
    max_s: Annotated[float, Field(ge=10, le=86_400)] = 3_600.0
    log_events: Annotated[int, Field(ge=64)] = 4_096
    log_bytes: Annotated[int, Field(ge=1_048_576)] = 16_777_216
    total_log_bytes: Annotated[int, Field(ge=1_048_576)] = 536_870_912
    align: Align = Align()
    text_grace_ms: NotNegative = 300
    max_utterance_s: Annotated[float, Field(ge=1, le=600)] = 60.0
    draft_every_ms: Annotated[int, Field(ge=100)] = 400
    early_replies: bool = True
    buffer_s: Annotated[float, Field(ge=10, le=1_200)] = 120.0


class Consistency(Section):
    """Whether what a user says in several ways is held against each other before it is answered, and who wins."""

    enabled: bool = True
    policy: Literal["later", "typed", "confirmed", "ask"] = "later"
    suspect: Share = 0.5
    freeze: Share = 0.85
    connectivity: Share = 0.6
    lost: Share = 0.5
    compare_ms: NotNegative = 8_000
    deadline_ms: NotNegative = 1_500


class Vad(Section):
    """Which detector tells speech from silence, inside the server process."""

    engine: str = "silero"


class Audio(Section):
    """Sound, before it reaches a worker."""

    vad: Vad = Vad()


class WorkerLimit(Section):
    """How many jobs one worker process may have at one time, at most `parallel`. `base` null is `parallel`."""

    policy: Literal["fixed", "reference", "aimd", "gradient"] = "fixed"
    base: Count | None = None
    p95_ms: Duration = 300
    slope_ms: Duration = 1_000


class Worker(Section):
    """One kind of model process. `threads: auto` is 1 on two cores or fewer (`thread_budget`)."""

    engine: Annotated[str, Field(min_length=1)]
    model: str | None = None
    options: dict[str, object] = Field(default_factory=dict)
    threads: Count | Literal["auto"] = "auto"
    count: Count = 1
    parallel: Parallel = 1
    device: Literal["auto", "cpu", "cuda"] = "auto"
    memory_mb: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    limit: WorkerLimit = WorkerLimit()

    def threads_on(self, cores: int) -> int:
        """Returns how many threads each of these processes may use on a machine with so many cores."""
        return thread_budget(cores) if self.threads == "auto" else self.threads


class AsrWorker(Worker):
    engine: Annotated[str, Field(min_length=1)] = "faster_whisper"
    parallel: Parallel = 4


class UnderstandWorker(Worker):
    """`domain` names the intents and slots that are looked for: a file, ``default`` for the one that ships in
    ``configs/domains``, null for none (only general slots are found then)."""

    domain: Path | Literal["default"] | None = "default"
    engine: Annotated[str, Field(min_length=1)] = "minilm_onnx"
    parallel: Parallel = 8


class LlmWorker(Worker):
    """`images`: the model looks at pictures in messages."""

    engine: Annotated[str, Field(min_length=1)] = "llama_cpp"
    parallel: Parallel = 4
    images: bool = False


class SpeechWorker(Worker):
    engine: Annotated[str, Field(min_length=1)] = "piper"


class Workers(Section):
    """Who does the work of each role; `speech: null` makes a server that answers in text only."""

    asr: AsrWorker = AsrWorker()
    understand: UnderstandWorker = UnderstandWorker()
    llm: LlmWorker = LlmWorker()
    speech: SpeechWorker | None = SpeechWorker()

    def by_role(self) -> dict[Role, Worker]:
        """Returns the configured roles, in the order in which they are shown."""
        roles: dict[Role, Worker] = {"asr": self.asr, "understand": self.understand, "llm": self.llm}
        if self.speech is not None:
            roles["speech"] = self.speech
        return roles


class IceServer(Section):
    """A STUN or TURN server, as browsers name it."""

    urls: str | tuple[str, ...]
    username: str | None = None
    credential: str | None = None


class Calls(Section):
    """WebRTC."""

    ice_servers: tuple[IceServer, ...] = ()
    ice_timeout_s: Positive = 30.0
    max_connecting: Count = 64
    public_addresses: tuple[str, ...] = ()


class Models(Section):
    """Where models may come from."""

    allow_download: bool = False


class Flow(Section):
    """What may wait, and what is left out when there is too much of it (design §§8–10)."""

    max_jobs: Annotated[int, Field(ge=LEAST_JOBS)] = 2_048
    max_waiting: Count = 512
    watermark: Literal["adaptive", "fixed"] = "adaptive"
    share: Annotated[float, Field(gt=0, le=1)] = 0.85
    target_wait_ms: Duration | None = None
    shedding: bool = True
    slo_error_rate: Annotated[float, Field(gt=0, le=1)] = 0.005
    abandoned_s: NotNegative = 3.0


class Quota(Section):
    """What one tenant may use in `window_s`; null is no bound. `burst` is the share of it that may be used at once."""

    llm_tokens: Amount | None = None
    audio_s: Annotated[float, Field(gt=0, le=4_000_000)] | None = None
    requests: Amount | None = None
    window_s: Annotated[float, Field(ge=1, le=2_678_400)] = 60.0
    burst: Annotated[float, Field(gt=0, le=1)] = 1.0


class Limits(Section):
    """What tenants may use: by tier, and what is assumed of a reply whose client names no bound."""

    platinum: Quota = Quota()
    gold: Quota = Quota()
    silver: Quota = Quota()
    default_output_tokens: Count = 1_024
    max_tenants: Count = 100_000


class Telemetry(Section):
    """What is told of the run to other programs (docs/telemetry.md)."""

    metrics: bool = True
    otlp_endpoint: Annotated[str, AfterValidator(_web_address)] | None = None
    otlp_headers: dict[
        Annotated[str, AfterValidator(_header_name)], Annotated[str, AfterValidator(_header_value)]
    ] = Field(default_factory=dict)
    otlp_metrics: bool = True
    traces: bool = True
    sample: Share = 1.0
    export_every_s: Pause = 10.0
    service_name: str = "chorale"


class Logging(Section):
    """What is written about the run, and how. `auto` is human on a terminal, else JSON lines."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "human"] = "auto"


class Recording(Section):
    """Whether sessions are written down, where, for how long, and how much of them (docs/replay.md)."""

    dir: Path | None = None
    enabled: bool = False
    retention_days: Positive | None = 30.0
    max_bytes: Annotated[int, Field(ge=65_536)] = 268_435_456
    max_total_bytes: Annotated[int, Field(ge=65_536)] = 10_737_418_240
    redact: tuple[Literal["text", "sound"], ...] = ()


class Settings(Section):
    """The whole configuration."""

    server: Server = Server()
    http: Http = Http()
    inbound: Inbound = Inbound()
    sessions: Sessions = Sessions()
    consistency: Consistency = Consistency()
    audio: Audio = Audio()
    workers: Workers = Workers()
    calls: Calls = Calls()
    models: Models = Models()
    recording: Recording = Recording()
    flow: Flow = Flow()
    limits: Limits = Limits()
    telemetry: Telemetry = Telemetry()
    logging: Logging = Logging()


def thread_budget(cores: int) -> int:
    """Returns the threads of one worker: 1 on two cores or fewer, a quarter of the cores (at least 2) above."""
    return 1 if cores <= 2 else max(2, cores // 4)


def usable_cores() -> int:
    """Returns the cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
