"""Every metric that the server serves: the one list that code, documentation, rules and dashboard are held against.

Names follow OpenTelemetry's semantic conventions where there are any: HTTP (stable), process, CPython, and generative
AI (in development: both the old and the new name of token counts are served). What is the server's own begins with
``chorale.``. No attribute tells one tenant, session or file from another: the number of series does not grow with use.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class MetricKind(Enum):
    """What a value does: it only grows; goes up and down and may be summed; likewise and may not; is distributed."""

    COUNTER = "counter"
    UP_DOWN = "up-down counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric. `unit` is UCUM; `about` is a sentence for readers; `buckets` are upper bounds of a histogram."""

    name: str
    kind: MetricKind
    unit: str
    about: str
    attributes: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def family(self) -> str:
        """The name that Prometheus shows, without ``_total``, ``_bucket``, ``_sum`` and ``_count``."""
        name = self.name.replace(".", "_")
        suffix = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        return name if not suffix or name.endswith(suffix) else name + suffix

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series in Prometheus."""
        if self.kind is MetricKind.COUNTER:
            return (self.family + "_total",)
        if self.kind is MetricKind.HISTOGRAM:
            return tuple(self.family + end for end in ("_bucket", "_sum", "_count"))
        return (self.family,)


_COUNTER, _UP_DOWN, _GAUGE, _HISTOGRAM = MetricKind

_HTTP_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_REPLY_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
_TOKENS = tuple(4.0**power for power in range(11))
_WAIT_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.12, 0.3, 0.8, 2, 5, 15)
"""The bounds of the three tiers, 120, 300 and 800 ms, are bucket bounds: "within its bound" is read off exactly."""
_WORK_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_STAGE_S = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30)
_LAG_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
_BATCH = (1, 2, 4, 8, 16, 32)

_GEN_AI = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
_MODALITY = (*_GEN_AI, "gen_ai.token.modality")

HTTP_DURATION = MetricSpec(
    "http.server.request.duration",
    _HISTOGRAM,
    "s",
    "How long HTTP requests took; WebSockets are counted by chorale.links.",
    (
        "http.request.method",
        "http.route",
        "http.response.status_code",
        "url.scheme",
        "network.protocol.version",
        "error.type",
    ),
    _HTTP_S,
)
HTTP_ACTIVE = MetricSpec(
    "http.server.active_requests",
    _UP_DOWN,
    "{request}",
    "HTTP requests that are being answered.",
    ("http.request.method", "url.scheme"),
)

REPLY_DURATION = MetricSpec(
    "gen_ai.server.request.duration",
    _HISTOGRAM,
    "s",
    "From handing a reply to the language model to its last token.",
    (*_GEN_AI, "error.type"),
    _REPLY_S,
)
FIRST_TOKEN = MetricSpec(
    "gen_ai.server.time_to_first_token",
    _HISTOGRAM,
    "s",
    "From handing a reply to the language model to its first token; of replies that were finished.",
    _GEN_AI,
    _FIRST_TOKEN_S,
)
PER_TOKEN = MetricSpec(
    "gen_ai.server.time_per_output_token",
    _HISTOGRAM,
    "s",
    "Mean time of a token after the first, of replies that were finished.",
    _GEN_AI,
    _TOKEN_S,
)
INPUT_TOKENS = MetricSpec(
    "gen_ai.client.inference.usage.input_tokens",
    _COUNTER,
    "{token}",
    "Tokens of prompts, those taken from a cache among them.",
    _MODALITY,
)
OUTPUT_TOKENS = MetricSpec(
    "gen_ai.client.inference.usage.output_tokens", _COUNTER, "{token}", "Tokens of replies.", _MODALITY
)
CACHED_TOKENS = MetricSpec(
    "gen_ai.client.inference.usage.cache_read.input_tokens",
    _COUNTER,
    "{token}",
    "Tokens of prompts that were not computed again.",
    _MODALITY,
)
TOKEN_USAGE = MetricSpec(
    "gen_ai.client.token.usage",
    _HISTOGRAM,
    "{token}",
    "Tokens of one prompt or reply: the older name of the three above.",
    (*_GEN_AI, "gen_ai.token.type"),
    _TOKENS,
)

MEMORY = MetricSpec("process.memory.usage", _UP_DOWN, "By", "Resident memory of the server's process.")
CPU = MetricSpec("process.cpu.time", _COUNTER, "s", "Processor time of the server's process.", ("cpu.mode",))
GC = MetricSpec(
    "cpython.gc.collections",
    _COUNTER,
    "{collection}",
    "Runs of the garbage collector.",
    ("cpython.gc.generation",),
)
LOOP_LAG = MetricSpec(
    "chorale.event_loop.lag",
    _HISTOGRAM,
    "s",
    "How late a timer of the event loop was, twenty samples a second.",
    (),
    _LAG_S,
)
TASKS = MetricSpec("chorale.tasks", _UP_DOWN, "{task}", "Tasks of the event loop that have not ended.")
LOOP_FAULTS = MetricSpec(
    "chorale.loop.faults",
    _COUNTER,
    "{fault}",
    "Faults of ours in what runs as long as the server (timers, threads); it went on. The log has the first of each.",
    ("chorale.loop",),
)

SESSIONS = MetricSpec("chorale.sessions", _UP_DOWN, "{session}", "Sessions that live.")
LINKS = MetricSpec(
    "chorale.links", _UP_DOWN, "{link}", "Open connections of clients.", ("chorale.link.kind",)
)
TURNS = MetricSpec(
    "chorale.turns",
    _COUNTER,
    "{turn}",
    "Turns that have ended, and how.",
    ("chorale.tier", "chorale.outcome", "error.type"),
)
TURN_DURATION = MetricSpec(
    "chorale.turn.duration",
    _HISTOGRAM,
    "s",
    "From the first sign of the user to the end of the reply, of completed turns.",
    ("chorale.tier", "chorale.modality"),
    _STAGE_S,
)
STAGE_DURATION = MetricSpec(
    "chorale.turn.stage.duration",
    _HISTOGRAM,
    "s",
    "How long the parts of a turn took, of completed turns.",
    ("chorale.stage", "chorale.tier"),
    _STAGE_S,
)
JOBS = MetricSpec(
    "chorale.jobs",
    _COUNTER,
    "{job}",
    "Jobs that have ended, and how; reason is a wire code or why it was refused.",
    ("chorale.kind", "chorale.tier", "chorale.outcome", "chorale.reason"),
)
JOB_WAIT = MetricSpec(
    "chorale.job.wait.duration",
    _HISTOGRAM,
    "s",
    "From submitting a job to handing it to a worker.",
    ("chorale.kind", "chorale.tier"),
    _WAIT_S,
)
JOB_WORK = MetricSpec(
    "chorale.job.work.duration",
    _HISTOGRAM,
    "s",
    "How long a worker was at a job.",
    ("chorale.kind", "chorale.outcome"),
    _WORK_S,
)
JOB_BATCH = MetricSpec(
    "chorale.job.batch.size",
    _HISTOGRAM,
    "{job}",
    "Jobs of the batch that a job was part of.",
    ("chorale.kind",),
    _BATCH,
)
QUEUED = MetricSpec(
    "chorale.jobs.queued", _UP_DOWN, "{job}", "Jobs that wait for a worker.", ("chorale.kind",)
)
QUEUE_MARK = MetricSpec(
    "chorale.queue.mark",
    _GAUGE,
    "{job}",
    "How many jobs of a kind may wait before new ones of the lowest level are refused.",
    ("chorale.kind",),
)
SERVICE_LEVEL = MetricSpec(
    "chorale.service.level",
    _GAUGE,
    "1",
    "What is left out: 0 nothing, 1 drafts, 2 speech too, 3 turns of silver too, 4 new sessions too.",
)
SERVICE_DEGRADED = MetricSpec(
    "chorale.service.degraded", _GAUGE, "1", "1 while too many turns fail and the server goes easy on itself."
)
PRESSURE = MetricSpec(
    "chorale.service.pressure",
    _GAUGE,
    "1",
    "How full the fullest queue is, of its mark, or how late the event loop, of what is too late.",
)
SHED = MetricSpec(
    "chorale.shed",
    _COUNTER,
    "{item}",
    "What was left out: draft, speech, silver_turn, session.",
    ("chorale.shed.what",),
)
LEVELS = MetricSpec(
    "chorale.level.queued",
    _UP_DOWN,
    "{job}",
    "Jobs that wait, by level: 0 unblocks a session.",
    ("chorale.level",),
)
WEIGHT = MetricSpec(
    "chorale.scheduler.weight",
    _GAUGE,
    "1",
    "What makes work of a tier wanted: lateness (more of it while bounds are missed), freshness, affinity; together 1.",
    ("chorale.tier", "chorale.weight"),
)
RUNNING = MetricSpec("chorale.jobs.running", _UP_DOWN, "{job}", "Jobs that workers have.", ("chorale.kind",))
LIMIT = MetricSpec(
    "chorale.limit.value",
    _GAUGE,
    "{job}",
    "How many jobs a worker may have at one time, by its limit.",
    ("chorale.worker", "chorale.policy"),
)
LIMIT_IN_FLIGHT = MetricSpec(
    "chorale.limit.in_flight", _UP_DOWN, "{job}", "How many it has.", ("chorale.worker", "chorale.policy")
)
QUOTA_USE = MetricSpec(
    "chorale.quota.usage",
    _COUNTER,
    "{unit}",
    "What tenants with quotas asked for: reserved, refused, returned unused, overrun; tokens, ms of sound, requests.",
    ("chorale.tier", "chorale.resource", "chorale.outcome"),
)
QUOTA_TENANTS = MetricSpec(
    "chorale.quota.tenants",
    _UP_DOWN,
    "{tenant}",
    "Tenants with an account of what they have used of their quotas.",
)
QUOTA_TURNED_AWAY = MetricSpec(
    "chorale.quota.turned_away",
    _COUNTER,
    "{request}",
    "What was refused since the table of tenants was full of accounts in use (`limits.max_tenants`).",
)
LATE_REPORTS = MetricSpec(
    "chorale.reports.dropped", _COUNTER, "{report}", "Reports of workers that came too late for anybody."
)
WORKER_UP = MetricSpec(
    "chorale.worker.up", _GAUGE, "1", "1 where the worker is ready, else 0.", ("chorale.worker",)
)
WORKER_RESTARTS = MetricSpec(
    "chorale.worker.restarts",
    _COUNTER,
    "{restart}",
    "How often a worker was started again.",
    ("chorale.worker",),
)
WORKER_MEMORY = MetricSpec(
    "chorale.worker.memory.usage", _UP_DOWN, "By", "Resident memory of a worker.", ("chorale.worker",)
)
WORKER_MEMORY_SHARE = MetricSpec(
    "chorale.worker.memory.share",
    _GAUGE,
    "1",
    "What a worker has in use of its accelerator's memory or of its own budget, once it has told.",
    ("chorale.worker",),
)
WORKER_CPU = MetricSpec(
    "chorale.worker.cpu.time",
    _COUNTER,
    "s",
    "Processor time of a worker's process; it starts anew with the process.",
    ("chorale.worker",),
)
WINDOWS_DROPPED = MetricSpec(
    "chorale.audio.windows.dropped",
    _COUNTER,
    "{window}",
    "Windows of sound that the voice detector passed over.",
)

BUFFER_ITEMS = MetricSpec(
    "chorale.buffer.items", _UP_DOWN, "{item}", "What a kind of buffer holds.", ("chorale.buffer",)
)
BUFFER_SIZE = MetricSpec(
    "chorale.buffer.size", _UP_DOWN, "By", "Likewise in bytes, where it counts them.", ("chorale.buffer",)
)
BUFFER_LIMIT = MetricSpec(
    "chorale.buffer.limit",
    _UP_DOWN,
    "By",
    "How much it may hold; 0 where it is bounded in items.",
    ("chorale.buffer",),
)
BUFFER_ITEM_LIMIT = MetricSpec(
    "chorale.buffer.item_limit",
    _UP_DOWN,
    "{item}",
    "How many items it may hold; 0 where it is bounded in bytes.",
    ("chorale.buffer",),
)
BUFFER_DROPPED = MetricSpec(
    "chorale.buffer.dropped",
    _COUNTER,
    "{item}",
    "What it let go or refused since it was full.",
    ("chorale.buffer",),
)
TELEMETRY_DROPPED = MetricSpec(
    "chorale.telemetry.dropped",
    _COUNTER,
    "{item}",
    "Spans and exports of metrics that no collector took in time.",
    ("chorale.signal",),
)


def every_metric() -> Iterator[MetricSpec]:
    """Yields all of them, in the order in which they are documented."""
    yield from (value for value in globals().values() if isinstance(value, MetricSpec))
