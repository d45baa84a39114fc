"""What reaches a collector, and what a collector that is bad costs: nothing but what does not fit."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orchestrator.clock import MonotonicClock
from orchestrator.observability.faults import FAULTS
from orchestrator.observability.instrument import Call, RequestRecord
from orchestrator.observability.names import every_metric
from orchestrator.telemetry.gathering import Bundle
from orchestrator.telemetry.meters import Reading
from orchestrator.telemetry.options import TelemetrySettings
from orchestrator.telemetry.shipper import MOST_SPANS
from orchestrator.telemetry.telemetry import BATCH_SPANS, Telemetry
from tests.telemetry.collector import LONG_S, Collector, collecting
from tests.telemetry.records import job, reply, turn


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG_S):
        while not condition():  # noqa: ASYNC110 - it is another thread's doing
            await asyncio.sleep(0.005)


def sending(endpoint: str, test: Callable[[Telemetry], Awaitable[None]], **options: Any) -> Telemetry:
    """Runs `test` with telemetry that sends to `endpoint`, and stops it."""
    options = {"every_s": 0.02, **options}
    telemetry = Telemetry(TelemetrySettings(endpoint=endpoint, **options), MonotonicClock())

    async def main() -> None:
        telemetry.start()
        try:
            await test(telemetry)
        finally:
            await telemetry.stop(0.2)

    asyncio.run(main())
    return telemetry


def test_telemetry_sends_turns_and_metrics() -> None:
    """One trace per turn, with resource and headers, and the metrics by their names."""
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            telemetry.job(job())
            telemetry.job(reply())
            telemetry.turn(turn())
            telemetry.loop_lag(0.001)
            await until(lambda: len(collector.spans) == 8)
            await until(lambda: "chorale.event_loop.lag" in collector.metrics)

        sending(collector.endpoint, test, headers={"x-team": "speech"}, service="box")
        assert collector.resource["service.name"] == "box"
        assert collector.headers["x-team"] == "speech"
        (root,) = collector.named("turn")
        (work, _) = collector.named("work")
        assert work.end_time_unix_nano - work.start_time_unix_nano == 300_000_000
        assert {span.trace_id for span in collector.spans} == {root.trace_id}
        assert collector.metrics <= {spec.name for spec in every_metric()}


def test_telemetry_sends_calls() -> None:
    """A request that was a call of a service is a span as long as it took; others, and calls whose end nobody knows,
    are counted only."""
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            for call in (
                None,
                Call(system="grpc", method="a.B/C"),
                Call(system="grpc", method="a.B/D", status="OK"),
            ):
                telemetry.began("POST", "http")
                telemetry.request(
                    RequestRecord(method="POST", route="/x", status=200, duration_s=0.25, call=call)
                )
            await until(lambda: bool(collector.spans))
            await until(lambda: "http.server.request.duration" in collector.metrics)

        sending(collector.endpoint, test)
        (span,) = collector.spans
        assert span.name == "a.B/D"
        assert span.end_time_unix_nano - span.start_time_unix_nano == 250_000_000


def test_telemetry_times_are_unix_times() -> None:
    """A span that ends now, ends now by the collector's clock as well."""
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            now_us = MonotonicClock().now_us()
            telemetry.turn(turn(began_us=now_us - 1_000, ended_us=now_us))
            await until(lambda: bool(collector.spans))

        before_ns = time.time_ns()
        sending(collector.endpoint, test)
        (root,) = collector.named("turn")
        assert before_ns - 10**9 < root.end_time_unix_nano < time.time_ns() + 10**9


def test_telemetry_tells_the_time_of_day_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock is put forward by a day after the start: spans of later turns are a day later too."""
    real, ahead_ns = time.time_ns, 24 * 3_600 * 10**9
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            monkeypatch.setattr(time, "time_ns", lambda: real() + ahead_ns)
            now_us = MonotonicClock().now_us()
            telemetry.turn(turn(began_us=now_us - 1_000, ended_us=now_us))
            await until(lambda: bool(collector.spans))

        before_ns = real()
        sending(collector.endpoint, test)
        (root,) = collector.named("turn")
        assert root.end_time_unix_nano > before_ns + ahead_ns - 10**9


def test_telemetry_sends_what_is_left_when_it_stops() -> None:
    """Jobs of a turn that never ended are told of too."""
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            telemetry.job(job())

        sending(collector.endpoint, test, every_s=LONG_S)
        assert len(collector.named("transcribe")) == 1


def test_telemetry_sends_traces_only_where_metrics_are_scraped() -> None:
    """Who scrapes has every series already: nothing of them goes to the collector, and the scrape is as ever."""
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            telemetry.turn(turn())
            await until(lambda: bool(collector.spans))
            assert telemetry.scrape is not None
            assert b"chorale_turns_total" in await telemetry.scrape.text()

        telemetry = sending(collector.endpoint, test, sends_metrics=False)
        assert not collector.metrics
        assert len(telemetry._shippers) == 1, "nobody who would send them later"


@pytest.mark.parametrize("traces", [True, False])
def test_telemetry_sends_traces_where_they_are_wanted(traces: bool) -> None:
    """Without them nothing is kept for them either."""
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            telemetry.job(job(turn=7))
            telemetry.turn(turn())
            assert telemetry.jobs_gathered == (1 if traces else 0)
            await until(lambda: bool(collector.metrics))

        sending(collector.endpoint, test, traces=traces)
        assert bool(collector.spans) is traces


def test_telemetry_with_a_slow_collector_delays_nobody_and_is_bounded() -> None:
    """While it hangs, 20,000 records are taken, few are held, the rest is counted, and scrapes are answered."""
    with collecting() as collector:
        collector.gate.clear()

        async def test(telemetry: Telemetry) -> None:
            telemetry.turn(turn())
            await until(lambda: collector.requests > 0)
            for number in range(10_000):
                telemetry.job(job(turn=number))
                telemetry.turn(turn(turn=number))
            waiting, dropped = telemetry.spans_waiting
            # The thread may have taken a batch at any moment: its first, or another once the collector's time was over.
            assert MOST_SPANS - 2 * BATCH_SPANS < waiting <= MOST_SPANS
            assert dropped >= 10_000
            assert telemetry.jobs_gathered == 0
            assert telemetry.scrape is not None
            text = (await telemetry.scrape.text()).decode()
            assert "chorale_turns_total" in text
            collector.gate.set()
            await until(lambda: telemetry.spans_waiting[0] == 0)

        sending(collector.endpoint, test, every_s=0.02)


@pytest.mark.parametrize("status", [400, 500, 503])
def test_telemetry_with_a_collector_that_refuses_counts_what_is_lost(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is raised, and what could not be delivered is in the metrics."""
    monkeypatch.setattr(
        "orchestrator.telemetry.telemetry.SEND_WITHIN_S", 1.0
    )  # 503 is tried again until then
    with collecting() as collector:
        collector.status = status

        async def test(telemetry: Telemetry) -> None:
            telemetry.turn(turn())
            await until(lambda: telemetry.spans_waiting[1] > 0 and collector.requests > 0)

        sending(collector.endpoint, test)
        assert not collector.spans


def _nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def _deaf(collector: Collector) -> str:
    collector.gate.clear()
    return collector.endpoint


@pytest.mark.parametrize("kind", ["gone", "deaf"])
def test_telemetry_stops_in_time_whatever_the_collector_does(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nobody there, or with somebody who never answers, stopping takes the time that it was given, and not the
    half minute that the exporter would go on for."""
    monkeypatch.setattr("orchestrator.telemetry.telemetry.SEND_WITHIN_S", 300.0)
    with collecting() as collector:
        endpoint = _nobody() if kind == "gone" else _deaf(collector)
        took_s: list[float] = []

        async def main() -> None:
            telemetry = Telemetry(TelemetrySettings(endpoint=endpoint, every_s=0.01), MonotonicClock())
            telemetry.start()
            telemetry.turn(turn())
            await asyncio.sleep(0.05)
            began_s = time.monotonic()
            await telemetry.stop(0.5)
            took_s.append(time.monotonic() - began_s)

        asyncio.run(main())
        assert (
            took_s[0] < 25
        )  # with the patched time the exporter goes on for minutes; a busy machine has its seconds


def test_telemetry_without_metrics_or_an_endpoint_has_no_scrape() -> None:
    """There is nothing to ask then; records cost nothing and break nothing."""
    telemetry = Telemetry(TelemetrySettings(metrics=False), MonotonicClock())
    telemetry.job(job())
    telemetry.turn(turn())
    assert telemetry.scrape is None


def test_telemetry_goes_on_after_a_turn_that_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours over one turn costs its batch, which is counted; the next turn's trace arrives, and metrics."""
    with collecting() as collector:

        async def test(telemetry: Telemetry) -> None:
            real = telemetry._maker.spans

            def spans(bundle: Bundle) -> Any:  # as `SpanMaker.spans`
                if bundle.session_id == "broken":
                    raise KeyError("nothing foreseen")
                return real(bundle)

            monkeypatch.setattr(telemetry._maker, "spans", spans)
            telemetry.turn(turn(session_id="broken"))
            await until(lambda: telemetry.spans_waiting[1] > 0)
            telemetry.turn(turn())
            await until(lambda: bool(collector.spans))
            assert telemetry.spans_waiting == (0, 2)
            monkeypatch.setattr(telemetry._reader, "get_metrics_data", lambda: 1 / 0)
            await until(lambda: telemetry._lost_exports > 2)
            monkeypatch.undo()
            lost = telemetry._lost_exports
            collector.metrics.clear()
            await until(lambda: bool(collector.metrics))
            assert telemetry._lost_exports <= lost + 1

        sending(collector.endpoint, test)


def test_telemetry_sends_metrics_though_a_source_fails() -> None:
    """What a broken source would have told is as it was; everything else is sent."""
    before = FAULTS.counts().get("readings", 0)
    with collecting() as collector:

        def broken() -> list[Reading]:
            raise KeyError("nothing foreseen")

        async def test(telemetry: Telemetry) -> None:
            telemetry.watch(broken)
            telemetry.loop_lag(0.001)
            await until(lambda: "chorale.event_loop.lag" in collector.metrics)

        sending(collector.endpoint, test)
    assert FAULTS.counts()["readings"] > before
