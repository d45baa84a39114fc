"""Records become what conventions ask for, and the number of series does not grow with use."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from orchestrator.clock import MonotonicClock
from orchestrator.observability import names
from orchestrator.observability.instrument import Ending, RequestRecord
from orchestrator.observability.loop_lag import LoopLag
from orchestrator.telemetry.options import LanguageModel, TelemetrySettings
from orchestrator.telemetry.telemetry import Telemetry
from tests.telemetry.records import job, reply, turn
from tests.virtual_time import run

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def make() -> Telemetry:
    return Telemetry(TelemetrySettings(model=LanguageModel("chorale", "tiny")), MonotonicClock())


async def read(telemetry: Telemetry) -> Samples:
    assert telemetry.scrape is not None
    text = (await telemetry.scrape.text()).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """Sums what has these labels; 0 for none."""
    wanted = {key.replace("__", "_"): text for key, text in labels.items()}.items()
    return sum(found for (one, own), found in samples.items() if one == name and wanted <= dict(own).items())


def after(*work: object) -> Samples:
    """Returns a scrape after records were told of."""
    telemetry = make()
    for record in work:
        if isinstance(record, RequestRecord):
            telemetry.began(record.method, record.scheme)
            telemetry.request(record)
        elif hasattr(record, "submitted_us"):
            telemetry.job(record)  # type: ignore[arg-type]
        else:
            telemetry.turn(record)  # type: ignore[arg-type]
    return asyncio.run(read(telemetry))


def test_a_job_is_counted_with_its_wait_and_its_work() -> None:
    """30 ms of waiting for a worker, of 50 since it was submitted, and 300 ms of work, of a gold job."""
    samples = after(job())
    labels = {"chorale_kind": "asr", "chorale_tier": "gold"}
    assert value(samples, "chorale_jobs_total", chorale_outcome="completed", **labels) == 1
    assert value(samples, "chorale_job_wait_duration_seconds_sum", **labels) == pytest.approx(0.03)
    assert value(samples, "chorale_job_work_duration_seconds_sum") == pytest.approx(0.3)
    assert value(samples, "chorale_job_batch_size_sum", chorale_kind="asr") == 1


def test_a_draft_is_counted_and_its_wait_is_not() -> None:
    """Drafts give way to everybody: how long they wait says nothing about what tiers are promised."""
    samples = after(job(draft=True, waited_us=None))
    assert value(samples, "chorale_jobs_total", chorale_kind="asr") == 1
    assert value(samples, "chorale_job_wait_duration_seconds_count") == 0
    assert value(samples, "chorale_job_work_duration_seconds_count") == 1


def test_a_refused_job_is_counted_by_reason_and_waited_for_nothing() -> None:
    """It never came to a worker: no wait, no work, no batch."""
    never = dict.fromkeys(("sent_us", "waited_us", "first_us", "worked"))
    samples = after(job(outcome=Ending.REFUSED, error="queue_full", **never))
    assert value(samples, "chorale_jobs_total", chorale_reason="queue_full", chorale_outcome="refused") == 1
    assert value(samples, "chorale_job_wait_duration_seconds_count") == 0
    assert value(samples, "chorale_job_work_duration_seconds_count") == 0


def test_a_reply_is_measured_as_conventions_ask() -> None:
    """190 ms to the first of 41 tokens, 800 ms for the other forty; tokens by their old and new name."""
    samples = after(reply())
    about = {"gen_ai_request_model": "tiny", "gen_ai_provider_name": "chorale"}
    first = value(samples, "gen_ai_server_time_to_first_token_seconds_sum", **about)
    assert first == pytest.approx(0.19)
    each = value(samples, "gen_ai_server_time_per_output_token_seconds_sum", **about)
    assert each == pytest.approx(0.02)
    assert value(samples, "gen_ai_server_request_duration_seconds_sum") == pytest.approx(0.99)
    assert value(samples, "gen_ai_client_inference_usage_input_tokens_total") == 120
    assert value(samples, "gen_ai_client_inference_usage_output_tokens_total") == 41
    assert value(samples, "gen_ai_client_inference_usage_cache_read_input_tokens_total") == 100
    assert value(samples, "gen_ai_client_token_usage_sum", gen_ai_token_type="input") == 120
    assert value(samples, "gen_ai_client_token_usage_sum", gen_ai_token_type="output") == 41


def test_a_cancelled_reply_tells_no_first_token() -> None:
    """What was cut off is counted apart and flatters nobody's figures; its tokens were used all the same."""
    samples = after(reply(outcome=Ending.CANCELLED))
    assert value(samples, "gen_ai_server_time_to_first_token_seconds_count") == 0
    assert value(samples, "gen_ai_server_time_per_output_token_seconds_count") == 0
    assert value(samples, "gen_ai_server_request_duration_seconds_count", error_type="cancelled") == 1
    assert value(samples, "gen_ai_client_inference_usage_output_tokens_total") == 41


def test_a_turn_is_counted_and_only_a_completed_one_is_measured() -> None:
    """A turn that was cut off has no duration that means anything."""
    samples = after(
        turn(), turn(turn=2, outcome=Ending.CANCELLED), turn(turn=3, outcome=Ending.FAILED, error="oops")
    )
    for outcome in ("completed", "cancelled", "failed"):
        assert value(samples, "chorale_turns_total", chorale_outcome=outcome) == 1
    assert value(samples, "chorale_turns_total", error_type="oops") == 1
    assert value(samples, "chorale_turn_duration_seconds_count") == 1
    assert value(samples, "chorale_turn_duration_seconds_sum") == pytest.approx(2.5)
    assert value(samples, "chorale_turn_stage_duration_seconds_sum", chorale_stage="listen") == 0.5


def test_overload_between_two_scrapes_is_counted() -> None:
    """200 ms in which the loop stood still and work was refused, over before anybody looked: both are in the next
    scrape, the lag in a bucket of its own."""
    telemetry = make()

    class Late(LoopLag):
        """Its third sample finds the loop 200 ms late."""

        def _wake(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
            super()._wake(loop, due_s - 0.2 if self._samples == 2 else due_s)

    async def fifteen_seconds() -> None:
        lag = Late(tell=telemetry.loop_lag)
        lag.start()
        await asyncio.sleep(5)
        for _ in range(7):
            telemetry.job(job(outcome=Ending.REFUSED, error="queue_full", sent_us=None, worked=None))
        await asyncio.sleep(10.01)
        lag.close()

    before = asyncio.run(read(telemetry))
    run(fifteen_seconds())
    then = asyncio.run(read(telemetry))
    assert value(then, "chorale_jobs_total", chorale_outcome="refused") == 7
    assert value(before, "chorale_event_loop_lag_seconds_count") == 0
    assert value(then, "chorale_event_loop_lag_seconds_count") == 300
    assert value(then, "chorale_event_loop_lag_seconds_bucket", le="0.1") == 299
    assert value(then, "chorale_event_loop_lag_seconds_bucket", le="0.5") == 300


def test_requests_that_are_being_answered_are_counted_until_they_are() -> None:
    """The active ones go up and down; a word that is no method of HTTP's is one series, however it is spelt."""
    telemetry = make()
    telemetry.began("GET", "http")
    telemetry.began("BREW-1", "http")
    telemetry.began("BREW-2", "http")
    during = asyncio.run(read(telemetry))
    assert value(during, "http_server_active_requests", http_request_method="GET") == 1
    assert value(during, "http_server_active_requests", http_request_method="_OTHER") == 2
    for method in ("GET", "BREW-1", "BREW-2"):
        telemetry.request(RequestRecord(method=method, route="/x", status=200, duration_s=0.1))
    done = asyncio.run(read(telemetry))
    assert value(done, "http_server_active_requests") == 0
    assert value(done, "http_server_request_duration_seconds_count", http_request_method="_OTHER") == 2


def test_series_do_not_grow_with_sessions() -> None:
    """A thousand sessions leave as many series as one: nothing is told apart by who it was."""

    def series(sessions: int) -> int:
        telemetry = make()
        for number in range(sessions):
            name = f"sess_{number}"
            telemetry.job(job(session_id=name, turn=number))
            telemetry.job(reply(session_id=name, turn=number))
            telemetry.turn(turn(session_id=name, conversation_id=f"conv_{number}", turn=number))
        return len(asyncio.run(read(telemetry)))

    assert series(1) == series(1_000)


def test_a_histogram_has_the_buckets_of_its_spec() -> None:
    """Conventions name them, and the tiers' bounds are among those of the waits."""
    samples = after(reply(), job())
    for spec in (names.FIRST_TOKEN, names.JOB_WAIT):
        bounds = {dict(own)["le"] for (name, own) in samples if name == spec.family + "_bucket"}
        assert {float(bound) for bound in bounds} == {*map(float, spec.buckets), float("inf")}


def test_scrapes_at_one_time_share_one_answer() -> None:
    """Ten scrapers cost one look."""
    telemetry = make()
    looks = 0

    def count() -> list[object]:
        nonlocal looks
        looks += 1
        return []

    telemetry.watch(count)  # type: ignore[arg-type]
    assert telemetry.scrape is not None
    scrape = telemetry.scrape

    async def ten() -> list[bytes]:
        return await asyncio.gather(*(scrape.text() for _ in range(10)))

    answers = asyncio.run(ten())
    assert looks == 1
    assert len(set(answers)) == 1
    asyncio.run(ten())
    assert looks == 2
