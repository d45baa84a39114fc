"""What happened, as values: the parts of the server make these records and know nothing of who counts or exports them.

Times are µs of the process's monotonic clock. Nothing here is made per token or per frame.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from orchestrator.observability.traceparent import TraceParent

NO_TURN = -1
"""The turn of a job that is done for a request: no end of a turn will follow it."""


class Ending(Enum):
    """How a job or a turn ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job that has ended. `error` is a wire code or a reason of refusal, "" for none; `sent_us` and `first_us` (the
    first report) are None where it never came so far; `waited_us` is how long it waited for a worker, from when its
    session could have had it and missed it, None where its tier promises nothing about that (drafts, what unblocks a
    session); `worked` is when the worker was really at it. Token counts are those of a language model's job, else 0.
    `repeats` counts lost workers."""

    session_id: str
    turn: int
    kind: str
    tier: int
    outcome: Ending
    submitted_us: int
    ended_us: int
    error: str = ""
    sent_us: int | None = None
    waited_us: int | None = None
    first_us: int | None = None
    worked: tuple[int, int] | None = None
    batch: int = 1
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    speculative: bool = False
    draft: bool = False
    repeats: int = 0
    work: str = ""
    """Which work of the kind, where a kind has several (``transcribe``, ``score``)."""

    remote: TraceParent | None = None
    """The client's span that its session belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn that has ended. `stages` are the parts of it that the session saw, by name: begin and end."""

    session_id: str
    conversation_id: str
    turn: int
    tier: int
    modality: str
    began_us: int
    ended_us: int
    outcome: Ending
    error: str = ""
    stages: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    remote: TraceParent | None = None


@dataclass(slots=True, kw_only=True)
class Call:
    """A call of a service: what of its request is told as a span. `system`: how it was carried (``grpc``, also for
    gRPC-Web, or ``connectrpc``). `method`: service and method, ``a.b.Service/Method``. `remote`: the client's span that
    it belongs to. `status`: the name of its gRPC status code, "" until it is known."""

    system: str
    method: str
    remote: TraceParent | None = None
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """An HTTP request that has been answered. `route` is the pattern, never the path, and "" where there is none;
    `status` is 0 where the client left before an answer. `call`: what it was, where it was a call of a service."""

    method: str
    route: str
    status: int
    duration_s: float
    scheme: str = "http"
    version: str = "1.1"
    error: str = ""
    call: Call | None = None


class Instrument(Protocol):
    """Takes records, on the event loop. Neither waits nor raises, and costs some µs each."""

    def job(self, record: JobRecord) -> None: ...

    def turn(self, record: TurnRecord) -> None: ...

    def request(self, record: RequestRecord) -> None: ...


class Requests(Protocol):
    """The part of an `Instrument` that the HTTP border tells: each request twice."""

    def began(self, method: str, scheme: str) -> None: ...

    def request(self, record: RequestRecord) -> None: ...


class Silent:
    """An `Instrument` (and `Requests`) that nobody listens to."""

    def job(self, record: JobRecord) -> None:
        pass

    def turn(self, record: TurnRecord) -> None:
        pass

    def request(self, record: RequestRecord) -> None:
        pass

    def began(self, method: str, scheme: str) -> None:
        pass


class Several:
    """Tells everything to several instruments, in order."""

    def __init__(self, *instruments: Instrument) -> None:
        self._instruments = instruments

    def job(self, record: JobRecord) -> None:
        for one in self._instruments:
            one.job(record)

    def turn(self, record: TurnRecord) -> None:
        for one in self._instruments:
            one.turn(record)

    def request(self, record: RequestRecord) -> None:
        for one in self._instruments:
            one.request(record)
