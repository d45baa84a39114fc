"""All of telemetry as one thing: an `Instrument` that counts, gathers and sends, and a scrape.

The event loop counts and appends; two threads talk to the collector, one for spans and one for metrics, so that a slow
answer to one does not hold up the other. A collector that is down or slow costs what does not fit, which is counted.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult, MetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry

from orchestrator.clock import US_PER_S, Clock
from orchestrator.observability import names
from orchestrator.observability.faults import FAULTS
from orchestrator.observability.instrument import JobRecord, RequestRecord, TurnRecord
from orchestrator.telemetry.gathering import Bundle, Called, Gathering
from orchestrator.telemetry.meters import Meters, Reading, Source
from orchestrator.telemetry.options import TelemetrySettings
from orchestrator.telemetry.scrape import Scrape
from orchestrator.telemetry.shipper import Shipper, Waiting
from orchestrator.telemetry.spans import SpanMaker

SCOPE = "chorale"
SEND_WITHIN_S = 5.0
"""How long the collector may take for one batch, repeats included."""

SPANS_EVERY_S = 1.0
BATCH_SPANS = 1_024
_LOOK_WITHIN_S = 1.0

Prepare = Callable[[], Awaitable[None]]


class Telemetry:
    """Implements `observability.instrument.Instrument`. Everything but threads of its own runs on the event loop."""

    def __init__(self, settings: TelemetrySettings, clock: Clock) -> None:
        resource = Resource.create({"service.name": settings.service, "service.version": version("chorale")})
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.Future[None] | None = None
        self._clock = clock
        self._gathering = Gathering()
        self._waiting: Waiting[Bundle | Called] = Waiting()
        self._lost_exports = 0
        self._looks = FAULTS.guard("readings")
        self._shippers: list[Shipper] = []
        self._exporters: list[OTLPSpanExporter | OTLPMetricExporter] = []
        self._traces = settings.endpoint is not None and settings.traces and settings.share > 0
        readers: list[MetricReader] = []
        self.scrape: Scrape | None = None
        if settings.metrics:
            registry = CollectorRegistry(auto_describe=False)
            readers.append(PrometheusMetricReader(scope_info_enabled=False, registry=registry))
            self.scrape = Scrape(registry, self.look)
        self._prepare: list[Prepare] = []
        if settings.endpoint is not None:
            if settings.sends_metrics:
                self._reader = InMemoryMetricReader()
                readers.append(self._reader)
            self._send_to(settings.endpoint.rstrip("/"), settings, resource, clock)
        self._provider = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._meters = Meters(self._provider.get_meter(SCOPE), settings.model, [self._own])

    def _send_to(self, endpoint: str, settings: TelemetrySettings, resource: Resource, clock: Clock) -> None:
        for noisy in ("opentelemetry.exporter", "urllib3.connectionpool"):
            logging.getLogger(noisy).setLevel(
                logging.CRITICAL
            )  # a line per batch; `Shipper` tells of it once
        headers = dict(settings.headers)
        if self._traces:
            scope = InstrumentationScope(SCOPE, version("chorale"))
            self._maker = SpanMaker(
                resource,
                scope,
                settings.model,
                lambda: time.time_ns() - clock.now_us() * 1_000,
                settings.share,
            )
            self._spans = OTLPSpanExporter(
                f"{endpoint}/v1/traces", headers=headers, timeout=SEND_WITHIN_S, compression=Compression.Gzip
            )
            self._exporters.append(self._spans)
            self._shippers.append(Shipper("traces", self._send_spans, min(SPANS_EVERY_S, settings.every_s)))
        if not settings.sends_metrics:
            return
        self._metrics = OTLPMetricExporter(
            f"{endpoint}/v1/metrics", headers=headers, timeout=SEND_WITHIN_S, compression=Compression.Gzip
        )
        self._exporters.append(self._metrics)
        self._shippers.append(Shipper("metrics", self._send_metrics, settings.every_s))

    # -- life ------------------------------------------------------------------------------------------------------

    def watch(self, source: Source) -> None:
        """Reads `source` at each scrape from now on."""
        self._meters.watch(source)

    def prepare(self, before: Prepare) -> None:
        """Awaits `before` ahead of each look: it gets ready, in steps, what a source will read in one."""
        self._prepare.append(before)

    def start(self) -> None:
        """Sends from now on. Call it on the event loop that everything else runs on."""
        self._loop = asyncio.get_running_loop()
        for shipper in self._shippers:
            shipper.start()

    async def stop(self, within_s: float = 2.0) -> None:
        """Sends what is there once more, as far as that goes in time. Idempotent."""
        for bundle in self._gathering.rest():
            self._ship(bundle)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.to_thread(self._end, within_s)
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        self._loop = None

    @property
    def spans_waiting(self) -> tuple[int, int]:
        """Spans that wait for the collector, and those that were dropped."""
        return self._waiting.weight, self._waiting.dropped

    @property
    def jobs_gathered(self) -> int:
        """Jobs that wait for their turn's end."""
        return len(self._gathering)

    async def look(self) -> None:
        """Reads everything that is now, for the scrape or export that follows."""
        for before in self._prepare:
            await before()
        self._meters.look()

    # -- Instrument ------------------------------------------------------------------------------------------------

    def job(self, record: JobRecord) -> None:
        self._meters.job(record)
        if self._traces and (bundle := self._gathering.job(record)) is not None:
            self._ship(bundle)

    def turn(self, record: TurnRecord) -> None:
        self._meters.turn(record)
        if self._traces:
            self._ship(self._gathering.turn(record))

    def began(self, method: str, scheme: str) -> None:
        self._meters.began(method, scheme)

    def request(self, record: RequestRecord) -> None:
        self._meters.request(record)
        if self._traces and record.call is not None and record.call.status:
            ended_us = self._clock.now_us()
            began_us = ended_us - int(record.duration_s * US_PER_S)
            self._waiting.put(Called(record.call, began_us, ended_us))

    def loop_lag(self, lag_s: float) -> None:
        self._meters.loop_lag(lag_s)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _ship(self, bundle: Bundle) -> None:
        self._waiting.put(bundle)

    def _own(self) -> Iterator[Reading]:
        yield names.TELEMETRY_DROPPED, {"chorale.signal": "spans"}, self._waiting.dropped
        yield names.TELEMETRY_DROPPED, {"chorale.signal": "metrics"}, self._lost_exports

    def _end(self, within_s: float) -> None:
        """Ends the threads; on a thread of its own."""
        deadline_s = time.monotonic() + within_s
        for shipper in self._shippers:
            shipper.stop()
        for shipper in self._shippers:
            shipper.join(deadline_s - time.monotonic())
        for exporter in self._exporters:
            exporter.shutdown()  # cuts short what still waits for its next attempt

    # -- on the shippers' threads ----------------------------------------------------------------------------------

    def _send_spans(self) -> bool:
        """Sends what waits; gives up at the first batch that is not taken."""
        while bundles := self._waiting.take(BATCH_SPANS):
            lost, taken = sum(bundle.weight for bundle in bundles), False
            try:
                spans = [span for bundle in bundles for span in self._maker.spans(bundle)]
                lost = len(spans)
                taken = not spans or self._spans.export(spans) is SpanExportResult.SUCCESS
            finally:
                if not taken:
                    self._waiting.lose(lost)
            if not taken:
                return False
        return True

    def _send_metrics(self) -> bool:
        self._look_there()
        taken = False
        try:
            data = self._reader.get_metrics_data()
            taken = data is None or self._metrics.export(data) is MetricExportResult.SUCCESS
        finally:
            self._lost_exports += not taken
        return taken

    async def _guarded_look(self) -> None:
        with self._looks:
            await self.look()

    def _look_there(self) -> None:
        """Has the loop look, and waits a little for it: a loop that is late is told of by what it saw before."""
        done = threading.Event()

        def look() -> None:
            self._looking = asyncio.ensure_future(self._guarded_look())
            self._looking.add_done_callback(lambda _: done.set())

        loop = self._loop
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            if loop is not None:
                loop.call_soon_threadsafe(look)
                done.wait(_LOOK_WITHIN_S)
