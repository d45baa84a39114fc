"""Bundles of records to spans: one trace per turn, its jobs below it, each with its wait and its work. Jobs that are
done for one request are a trace without a turn: below the client's span, or roots.

Spans are made whole, with explicit identities and times, when what they tell of has ended: nothing of tracing lies on
the way of a turn. Identities are digests of what they stand for, so that parts of one trace that are told of apart
find each other; a client's `traceparent` takes the place of the trace's own identity.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from orchestrator.observability.instrument import NO_TURN, Ending, JobRecord, TurnRecord
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling.job import Tier
from orchestrator.telemetry.gathering import Bundle, Called
from orchestrator.telemetry.options import LanguageModel

NS_PER_US = 1_000
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_TIERS = {tier.value: tier.name.lower() for tier in Tier}
_WORKS = {"asr": "transcribe", "understand": "understand", "speech": "speak"}

_FAULTS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""What a call ends with that is the server's fault by OpenTelemetry's conventions; all else is its client's."""

Values = dict[str, str | int | bool]


class SpanMaker:
    """Makes spans for one process. `origin_ns` tells the Unix time of the monotonic clock's origin: it is asked for
    each bundle, since the wall clock may be set while the server runs, and spans are found by the clock of today."""

    def __init__(
        self,
        resource: Resource,
        scope: InstrumentationScope,
        model: LanguageModel,
        origin_ns: Callable[[], int],
        share: float,
    ) -> None:
        """`share` of the turns without a client's trace are told of; a client's flag decides about its own."""
        self._resource = resource
        self._scope = scope
        self._model = model
        self._origin_ns = origin_ns
        self._offset_ns = 0
        self._wanted_below = int(share * 2**64)

    def spans(self, told: Bundle | Called) -> list[ReadableSpan]:
        """Returns the spans of a bundle, the root first, or that of a call; none where the trace is not wanted."""
        return self._call(told) if isinstance(told, Called) else self._bundle(told)

    def _call(self, called: Called) -> list[ReadableSpan]:
        """Returns the span of a call. The turns of the session that it opens are its siblings: they may outlive it."""
        call, remote = called.call, called.call.remote
        trace_id = remote.trace_id if remote is not None else secrets.randbits(128) or 1
        if not self._is_wanted(trace_id, remote):
            return []
        self._offset_ns = self._origin_ns()
        is_grpc = call.system == "grpc"
        about: Values = {
            "rpc.system.name": call.system,
            "rpc.method": call.method,
            "rpc.response.status_code": call.status if is_grpc else call.status.lower(),
        }
        status = Status(StatusCode.ERROR if call.status in _FAULTS else StatusCode.UNSET)
        if call.status in _FAULTS:
            about["error.type"] = call.status
        own = self._context(trace_id, secrets.randbits(64) or 1)
        interval = (called.began_us, called.ended_us)
        return [self._span(call.method, own, _client_of(remote), interval, about, SpanKind.SERVER, status)]

    def _is_wanted(self, trace_id: int, remote: TraceParent | None) -> bool:
        return remote.sampled if remote is not None else trace_id % 2**64 < self._wanted_below

    def _bundle(self, bundle: Bundle) -> list[ReadableSpan]:
        trace_id = _trace_id(bundle)
        if not self._is_wanted(trace_id, bundle.remote):
            return []
        self._offset_ns = self._origin_ns()
        return list(self._made(bundle, trace_id))

    def _made(self, bundle: Bundle, trace_id: int) -> Iterator[ReadableSpan]:
        root = self._context(trace_id, _span_id(bundle.session_id, bundle.number, "turn"))
        client = _client_of(bundle.remote)
        if bundle.turn is not None:
            yield from self._turn(bundle.turn, root, client)
        parent = client if bundle.number == NO_TURN else root
        for position, job in enumerate(bundle.jobs):
            yield from self._job(job, trace_id, parent, position)

    def _turn(
        self, turn: TurnRecord, root: SpanContext, client: SpanContext | None
    ) -> Iterator[ReadableSpan]:
        about: Values = {
            "session.id": turn.session_id,
            "gen_ai.conversation.id": turn.conversation_id,
            "chorale.tier": _TIERS.get(turn.tier, "unknown"),
            "chorale.turn": turn.turn,
            "chorale.modality": turn.modality,
            "chorale.outcome": turn.outcome.value,
        }
        interval = (turn.began_us, turn.ended_us)
        yield self._span(
            "turn", root, client, interval, about, SpanKind.SERVER, _status(turn.outcome, turn.error, about)
        )
        for stage, times in turn.stages.items():
            own = self._context(root.trace_id, _span_id(turn.session_id, turn.turn, "stage", stage))
            yield self._span(stage, own, root, times, {"session.id": turn.session_id})

    def _job(
        self, job: JobRecord, trace_id: int, parent: SpanContext | None, position: int
    ) -> Iterator[ReadableSpan]:
        key = (job.session_id, job.turn, job.kind, job.work, job.submitted_us, job.ended_us, position)
        own = self._context(trace_id, _span_id(*key))
        is_reply = job.kind == "llm"
        name = job.work or _WORKS.get(job.kind, job.kind)
        about: Values = {
            "session.id": job.session_id,
            "chorale.kind": job.kind,
            "chorale.tier": _TIERS.get(job.tier, "unknown"),
            "chorale.outcome": job.outcome.value,
            "chorale.batch": job.batch,
        }
        if job.draft or job.speculative:
            about["chorale.guess"] = True
        if job.repeats:
            about["chorale.repeats"] = job.repeats
        if is_reply:
            name = f"chat {self._model.model}"
            about |= self._model.attributes()
            about |= {
                "gen_ai.usage.input_tokens": job.input_tokens,
                "gen_ai.usage.output_tokens": job.output_tokens,
            }
            if job.cached_tokens:
                about["gen_ai.usage.cache_read.input_tokens"] = job.cached_tokens
        if job.outcome is Ending.COMPLETED and job.first_us is not None and job.sent_us is not None:
            # Of a job that was cut off this would be a figure that nobody saw: how soon it *might* have answered.
            about["chorale.first_report_ms"] = (job.first_us - job.sent_us) // 1_000
        kind = SpanKind.CLIENT if is_reply else SpanKind.INTERNAL
        status = _status(job.outcome, job.error, about)
        yield self._span(name, own, parent, (job.submitted_us, job.ended_us), about, kind, status)
        if job.sent_us is not None:
            wait = self._context(trace_id, _span_id(*key, "queue"))
            yield self._span("queue", wait, own, (job.submitted_us, job.sent_us), {})
        if job.worked is not None:
            work = self._context(trace_id, _span_id(*key, "work"))
            yield self._span("work", work, own, job.worked, {})

    def _context(self, trace_id: int, span_id: int) -> SpanContext:
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)

    def _span(
        self,
        name: str,
        own: SpanContext,
        parent: SpanContext | None,
        interval_us: tuple[int, int],
        about: Mapping[str, str | int | bool],
        kind: SpanKind = SpanKind.INTERNAL,
        status: Status | None = None,
    ) -> ReadableSpan:
        began_us, ended_us = interval_us
        return ReadableSpan(
            name,
            own,
            parent,
            self._resource,
            about,
            kind=kind,
            status=status or Status(StatusCode.UNSET),
            start_time=self._offset_ns + began_us * NS_PER_US,
            end_time=self._offset_ns + max(began_us, ended_us) * NS_PER_US,
            instrumentation_scope=self._scope,
        )


def _status(outcome: Ending, error: str, about: Values) -> Status:
    """Returns a span's status and notes the error. Cancelled is no fault: somebody did not want it any more."""
    if outcome in (Ending.COMPLETED, Ending.CANCELLED):
        return Status(StatusCode.UNSET)
    about["error.type"] = error or outcome.value
    return Status(StatusCode.ERROR if outcome is Ending.FAILED else StatusCode.UNSET)


def _client_of(remote: TraceParent | None) -> SpanContext | None:
    if remote is None:
        return None
    return SpanContext(remote.trace_id, remote.span_id, is_remote=True, trace_flags=_SAMPLED)


def _trace_id(bundle: Bundle) -> int:
    if bundle.remote is not None:
        return bundle.remote.trace_id
    return _digest(16, bundle.session_id, bundle.number)


def _span_id(*parts: object) -> int:
    return _digest(8, *parts)


def _digest(size: int, *parts: object) -> int:
    """Returns a number of `size` bytes; never 0, which the standard keeps for "none"."""
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(text, digest_size=size).digest()) or 1
