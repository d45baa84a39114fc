"""The whole server with a collector beside it: what a turn leaves behind there."""

import asyncio
import subprocess
import sys

from opentelemetry.proto.trace.v1.trace_pb2 import Span
from websockets.asyncio.client import connect

from orchestrator.app import Application
from tests.configs.scraped import ask
from tests.telemetry.collector import LONG_S, Collector, collecting
from tests.test_app import readiness, running

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


async def told(collector: Collector, name: str, count: int = 1) -> list[Span]:
    """Returns the spans of a name, once there are so many."""
    async with asyncio.timeout(LONG_S):
        while len(collector.named(name)) < count:  # noqa: ASYNC110 - it is another thread's doing
            await asyncio.sleep(0.01)
    return collector.named(name)


def sending(collector: Collector) -> dict[str, str]:
    return {
        "CHORALE_TELEMETRY__OTLP_ENDPOINT": collector.endpoint,
        "CHORALE_TELEMETRY__EXPORT_EVERY_S": "0.05",
    }


def attributes(span: Span) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


def test_a_turn_is_one_trace_below_its_clients_span() -> None:
    """Root, job, wait and work, within each other in time, of the client's trace; the next turn is too."""
    with collecting() as collector:

        async def test(_: Application, port: int) -> None:
            await readiness(port, lambda answer: answer.status_code == 200)
            header = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            async with connect(f"ws://127.0.0.1:{port}/v1/realtime", additional_headers=header) as link:
                for words in ("hello", "again"):
                    assert (await ask(link, words))["status"] == "completed"
                await told(collector, "turn", 2)
                await told(collector, "work", 2)

        running(test, sending(collector))
        spans = {span.span_id: span for span in collector.spans}
        assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
        roots = collector.named("turn")
        assert [span.parent_span_id.hex() for span in roots] == [SPAN, SPAN]
        assert attributes(roots[0])["chorale.outcome"] == "completed"
        assert attributes(roots[0])["session.id"].startswith("sess_")
        replies = [span for span in spans.values() if span.name.startswith("chat ")]
        assert {reply.parent_span_id for reply in replies} == {root.span_id for root in roots}
        for work in collector.named("work"):
            job = spans[work.parent_span_id]
            assert job.start_time_unix_nano <= work.start_time_unix_nano
            assert work.start_time_unix_nano <= work.end_time_unix_nano <= job.end_time_unix_nano


def test_a_server_whose_collector_hangs_answers_and_stops() -> None:
    """Turns are answered, scrapes too, and the server ends while the collector still owes its first answer."""
    with collecting() as collector:
        collector.gate.clear()

        async def test(_: Application, port: int) -> None:
            await readiness(port, lambda answer: answer.status_code == 200)
            async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
                assert (await ask(link, "hello"))["status"] == "completed"
                async with asyncio.timeout(LONG_S):
                    while collector.requests == 0:  # noqa: ASYNC110 - it is another thread's doing
                        await asyncio.sleep(0.01)
                assert (await ask(link, "still there?"))["status"] == "completed"

        running(test, sending(collector))
        assert not collector.gate.is_set()


def test_nothing_of_telemetry_is_imported_where_it_is_off() -> None:
    """Neither the libraries nor what builds on them."""
    code = (
        "import sys\n"
        "from orchestrator.app import Application\n"
        "from orchestrator.settings import load\n"
        "from tests.test_app import SCRIPTED\n"
        "off = {**SCRIPTED, 'CHORALE_TELEMETRY__METRICS': 'false'}\n"
        "Application(load(None, off, {}))\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'prometheus_client', "
        "'opentelemetry.exporter', 'google.protobuf'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
