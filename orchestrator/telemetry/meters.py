"""Records and readings to OpenTelemetry's instruments.

Histograms and counters of what happened are written when it happened, some µs each, never per token or frame. What *is*
(queue lengths, sessions, memory) is read at a scrape only: `look`, on the event loop, since it walks what the loop
changes; the instruments' callbacks run on the exporters' threads and repeat what the last look saw.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence

from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter, Observation

from orchestrator.clock import US_PER_S
from orchestrator.observability import names
from orchestrator.observability.instrument import Ending, JobRecord, RequestRecord, TurnRecord
from orchestrator.observability.names import MetricKind, MetricSpec
from orchestrator.scheduling.job import Tier
from orchestrator.telemetry.options import LanguageModel

Attributes = Mapping[str, str | int]
Reading = tuple[MetricSpec, Attributes, float]
Source = Callable[[], Iterable[Reading]]
"""Reads some of what is, on the event loop; neither waits nor raises."""

OBSERVED = (
    names.HTTP_ACTIVE,
    names.MEMORY,
    names.CPU,
    names.GC,
    names.TASKS,
    names.LOOP_FAULTS,
    names.SESSIONS,
    names.LINKS,
    names.QUEUED,
    names.QUEUE_MARK,
    names.SERVICE_LEVEL,
    names.SERVICE_DEGRADED,
    names.PRESSURE,
    names.SHED,
    names.LEVELS,
    names.WEIGHT,
    names.RUNNING,
    names.LIMIT,
    names.LIMIT_IN_FLIGHT,
    names.QUOTA_USE,
    names.QUOTA_TENANTS,
    names.QUOTA_TURNED_AWAY,
    names.LATE_REPORTS,
    names.WORKER_UP,
    names.WORKER_RESTARTS,
    names.WORKER_MEMORY,
    names.WORKER_MEMORY_SHARE,
    names.WORKER_CPU,
    names.WINDOWS_DROPPED,
    names.BUFFER_ITEMS,
    names.BUFFER_SIZE,
    names.BUFFER_LIMIT,
    names.BUFFER_ITEM_LIMIT,
    names.BUFFER_DROPPED,
    names.TELEMETRY_DROPPED,
)
"""What is read at a scrape; everything else is written as it happens."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
TIERS = {tier.value: tier.name.lower() for tier in Tier}


class Meters:
    """Every metric of `names`. Call everything but `readings` on the event loop."""

    def __init__(self, meter: Meter, model: LanguageModel, sources: Sequence[Source] = ()) -> None:
        self._model = model.attributes()
        self._sources = list(sources)
        self._seen: dict[str, list[Observation]] = {spec.name: [] for spec in OBSERVED}
        self._active: Tally[tuple[str, str]] = Tally()
        for spec in OBSERVED:
            _observe(meter, spec, self._repeat(spec.name))
        self._request = _histogram(meter, names.HTTP_DURATION)
        self._reply = _histogram(meter, names.REPLY_DURATION)
        self._first_token = _histogram(meter, names.FIRST_TOKEN)
        self._per_token = _histogram(meter, names.PER_TOKEN)
        self._usage = _histogram(meter, names.TOKEN_USAGE)
        self._input = _counter(meter, names.INPUT_TOKENS)
        self._output = _counter(meter, names.OUTPUT_TOKENS)
        self._cached = _counter(meter, names.CACHED_TOKENS)
        self._lag = _histogram(meter, names.LOOP_LAG)
        self._turns = _counter(meter, names.TURNS)
        self._turn = _histogram(meter, names.TURN_DURATION)
        self._stage = _histogram(meter, names.STAGE_DURATION)
        self._jobs = _counter(meter, names.JOBS)
        self._wait = _histogram(meter, names.JOB_WAIT)
        self._work = _histogram(meter, names.JOB_WORK)
        self._batch = _histogram(meter, names.JOB_BATCH)

    def watch(self, source: Source) -> None:
        """Reads `source` too from now on."""
        self._sources.append(source)

    def look(self) -> None:
        """Reads everything that is now, for the scrape that follows."""
        seen: dict[str, list[Observation]] = {spec.name: [] for spec in OBSERVED}
        for (method, scheme), count in self._active.items():
            attributes = {"http.request.method": method, "url.scheme": scheme}
            seen[names.HTTP_ACTIVE.name].append(Observation(count, attributes))
        for source in self._sources:
            for spec, about, value in source():
                seen[spec.name].append(Observation(value, about))
        self._seen = seen

    # -- what happened ---------------------------------------------------------------------------------------------

    def began(self, method: str, scheme: str) -> None:
        """A request is being answered; `request` follows."""
        self._active[_method(method), scheme] += 1

    def request(self, record: RequestRecord) -> None:
        self._active[_method(record.method), record.scheme] -= 1
        about: dict[str, str | int] = {
            "http.request.method": _method(record.method),
            "http.response.status_code": record.status,
            "url.scheme": record.scheme,
            "network.protocol.version": record.version,
        }
        if record.route:
            about["http.route"] = record.route
        if record.error:
            about["error.type"] = record.error
        self._request.record(record.duration_s, about)

    def loop_lag(self, lag_s: float) -> None:
        self._lag.record(lag_s)

    def turn(self, record: TurnRecord) -> None:
        tier = TIERS.get(record.tier, "unknown")
        about = {"chorale.tier": tier, "chorale.outcome": record.outcome.value}
        if record.error:
            about["error.type"] = record.error
        self._turns.add(1, about)
        if record.outcome is not Ending.COMPLETED:
            return
        took_s = (record.ended_us - record.began_us) / US_PER_S
        self._turn.record(took_s, {"chorale.tier": tier, "chorale.modality": record.modality})
        for stage, (began_us, ended_us) in record.stages.items():
            self._stage.record(
                (ended_us - began_us) / US_PER_S, {"chorale.stage": stage, "chorale.tier": tier}
            )

    def job(self, record: JobRecord) -> None:
        tier = TIERS.get(record.tier, "unknown")
        outcome = record.outcome.value
        self._jobs.add(
            1,
            {
                "chorale.kind": record.kind,
                "chorale.tier": tier,
                "chorale.outcome": outcome,
                "chorale.reason": record.error,
            },
        )
        if record.sent_us is not None:
            waited_s = (record.sent_us - record.submitted_us) / US_PER_S
            self._wait.record(waited_s, {"chorale.kind": record.kind, "chorale.tier": tier})
            self._batch.record(record.batch, {"chorale.kind": record.kind})
        if record.worked is not None:
            began_us, ended_us = record.worked
            about = {"chorale.kind": record.kind, "chorale.outcome": outcome}
            self._work.record((ended_us - began_us) / US_PER_S, about)
        if record.kind == "llm" and record.sent_us is not None:
            self._replied(record, record.sent_us)

    def _replied(self, record: JobRecord, sent_us: int) -> None:
        """What conventions ask of a language model. A reply that was cut off says nothing about how fast tokens come:
        its first one may be all there was."""
        about = self._model
        lasted_s = (record.ended_us - sent_us) / US_PER_S
        if record.outcome is Ending.COMPLETED:
            self._reply.record(lasted_s, about)
            if record.first_us is not None:
                self._first_token.record((record.first_us - sent_us) / US_PER_S, about)
                if record.output_tokens > 1:
                    writing_s = (record.ended_us - record.first_us) / US_PER_S
                    self._per_token.record(writing_s / (record.output_tokens - 1), about)
        else:
            self._reply.record(lasted_s, {**about, "error.type": record.error or record.outcome.value})
        for tokens, counter in (
            (record.input_tokens, self._input),
            (record.output_tokens, self._output),
            (record.cached_tokens, self._cached),
        ):
            if record.input_tokens:
                counter.add(tokens, {**about, "gen_ai.token.modality": "text"})
        for tokens, kind in ((record.input_tokens, "input"), (record.output_tokens, "output")):
            if tokens:
                self._usage.record(tokens, {**about, "gen_ai.token.type": kind})

    def _repeat(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: self._seen[name]


def _method(method: str) -> str:
    """Clients may send any word: what is none of HTTP's becomes one series."""
    return method if method in _METHODS else "_OTHER"


def _histogram(meter: Meter, spec: MetricSpec) -> Histogram:
    assert spec.kind is MetricKind.HISTOGRAM
    return meter.create_histogram(
        spec.name, spec.unit, spec.about, explicit_bucket_boundaries_advisory=spec.buckets
    )


def _counter(meter: Meter, spec: MetricSpec) -> Counter:
    assert spec.kind is MetricKind.COUNTER
    return meter.create_counter(spec.name, spec.unit, spec.about)


def _observe(
    meter: Meter, spec: MetricSpec, repeat: Callable[[CallbackOptions], Iterable[Observation]]
) -> None:
    match spec.kind:
        case MetricKind.COUNTER:
            meter.create_observable_counter(spec.name, [repeat], spec.unit, spec.about)
        case MetricKind.UP_DOWN:
            meter.create_observable_up_down_counter(spec.name, [repeat], spec.unit, spec.about)
        case _:
            meter.create_observable_gauge(spec.name, [repeat], spec.unit, spec.about)
