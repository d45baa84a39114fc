"""Spans cover the work, cancelled is marked apart, and a client's trace is the parent."""

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, StatusCode

from orchestrator.observability.instrument import NO_TURN, Call, Ending, JobRecord, TurnRecord
from orchestrator.observability.traceparent import TraceParent
from orchestrator.telemetry.gathering import Bundle, Called
from orchestrator.telemetry.options import LanguageModel
from orchestrator.telemetry.spans import SpanMaker
from tests.telemetry.records import JOB, REPLY, TURN, job, reply, turn

OFFSET_NS = 1_000_000_000_000
MS = 1_000_000


def maker(share: float = 1.0) -> SpanMaker:
    scope = InstrumentationScope("test")
    return SpanMaker(Resource.get_empty(), scope, LanguageModel("chorale", "tiny"), lambda: OFFSET_NS, share)


def made(*jobs: JobRecord, ended: TurnRecord | None = TURN) -> dict[str, ReadableSpan]:
    remote = ended.remote if ended is not None else None
    spans = maker().spans(Bundle("sess_1", 1, ended, jobs, remote))
    return {span.name: span for span in spans}


def lasted_ms(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / MS


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def about(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_spans_of_a_recognition_cover_the_work() -> None:
    """300 ms of work are a span of 300 ms, below a job that begins where it was submitted, with its wait beside it."""
    spans = made(JOB)
    assert lasted_ms(spans["work"]) == 300
    assert lasted_ms(spans["queue"]) == 50
    assert lasted_ms(spans["transcribe"]) == 360
    assert spans["transcribe"].start_time == OFFSET_NS + 1_000 * MS
    parents = {name: span.parent.span_id if span.parent is not None else None for name, span in spans.items()}
    assert parents["work"] == parents["queue"] == span_id(spans["transcribe"])
    assert parents["transcribe"] == parents["listen"] == span_id(spans["turn"])
    assert parents["turn"] is None


def called(status: str = "OK", system: str = "grpc", remote: TraceParent | None = None) -> list[ReadableSpan]:
    call = Call(system=system, method="chorale.v1.Sessions/Watch", remote=remote, status=status)
    return maker().spans(Called(call, 1_000_000, 1_250_000))


def test_call_is_a_span_below_its_clients() -> None:
    """As long as the call was, named and told apart by the conventions' names, and nothing else is in it."""
    (span,) = called(remote=TraceParent(7, 8, True))
    assert (span.name, span.kind, lasted_ms(span)) == ("chorale.v1.Sessions/Watch", SpanKind.SERVER, 250)
    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id) == (7, 8)
    assert about(span) == {
        "rpc.system.name": "grpc",
        "rpc.method": "chorale.v1.Sessions/Watch",
        "rpc.response.status_code": "OK",
    }
    assert called(remote=TraceParent(7, 8, False)) == []
    (alone,), (another,) = called(), called()
    assert alone.context is not None
    assert another.context is not None
    assert alone.parent is None
    assert alone.context.trace_id != another.context.trace_id


def test_call_that_failed_by_the_servers_fault_is_an_error() -> None:
    """What its client did wrong is none; Connect has its own spelling of codes."""
    (fault,), (wrong,) = called("INTERNAL"), called("NOT_FOUND", "connectrpc")
    assert (fault.status.status_code, about(fault)["error.type"]) == (StatusCode.ERROR, "INTERNAL")
    assert wrong.status.status_code is StatusCode.UNSET
    assert about(wrong)["rpc.response.status_code"] == "not_found"


def test_spans_of_one_turn_are_one_trace() -> None:
    """All with the same trace, each with an identity of its own, also where two jobs look alike."""
    spans = maker().spans(Bundle("sess_1", 1, TURN, (JOB, JOB, REPLY), None))
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    assert len({span_id(span) for span in spans}) == len(spans) == 11


def test_spans_told_of_apart_find_each_other() -> None:
    """A job that ends after its turn is a child of the root that was sent before it."""
    late = made(JOB, ended=None)["transcribe"]
    root = made()["turn"]
    assert late.parent is not None
    assert late.context is not None
    assert root.context is not None
    assert late.parent.span_id == span_id(root)
    assert late.context.trace_id == root.context.trace_id


def test_spans_of_a_reply_say_what_conventions_ask() -> None:
    """The name, the kind, model, provider and tokens; and how soon the first one came."""
    span = made(REPLY)["chat tiny"]
    assert span.kind is SpanKind.CLIENT
    said = about(span)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.provider.name"] == "chorale"
    assert said["gen_ai.usage.output_tokens"] == 41
    assert said["gen_ai.usage.cache_read.input_tokens"] == 100
    assert said["chorale.first_report_ms"] == 190


def test_spans_of_what_was_cancelled_are_marked_apart() -> None:
    """No error, no figure of a first token that would look fine, and an outcome of its own."""
    cut = reply(outcome=Ending.CANCELLED)
    spans = made(cut, ended=turn(outcome=Ending.CANCELLED))
    for name in ("turn", "chat tiny"):
        assert about(spans[name])["chorale.outcome"] == "cancelled"
        assert spans[name].status.status_code is StatusCode.UNSET
        assert "error.type" not in about(spans[name])
    assert "chorale.first_report_ms" not in about(spans["chat tiny"])


def test_spans_of_what_failed_name_the_error() -> None:
    """Failing is an error; being refused is told of, and is none of the work's."""
    failed = made(job(outcome=Ending.FAILED, error="deadline_exceeded"))["transcribe"]
    assert failed.status.status_code is StatusCode.ERROR
    assert about(failed)["error.type"] == "deadline_exceeded"
    refused = made(job(outcome=Ending.REFUSED, error="queue_full", sent_us=None, first_us=None, worked=None))
    assert about(refused["transcribe"])["error.type"] == "queue_full"
    assert refused["transcribe"].status.status_code is StatusCode.UNSET
    assert "queue" not in refused
    assert "work" not in refused


def test_spans_of_a_client_that_traces_are_its_children() -> None:
    """Its trace, its span as the root's parent, its flag over our share."""
    remote = TraceParent(0xABC, 0xDEF, sampled=True)
    root = maker(share=0).spans(Bundle("sess_1", 1, turn(remote=remote), (), remote))[0]
    assert root.context is not None
    assert root.parent is not None
    assert root.context.trace_id == 0xABC
    assert root.parent.span_id == 0xDEF
    assert root.parent.is_remote
    unwanted = TraceParent(0xABC, 0xDEF, sampled=False)
    assert maker(share=1).spans(Bundle("sess_1", 1, turn(remote=unwanted), (JOB,), unwanted)) == []


def test_spans_of_a_request_hang_below_its_clients_span_or_nowhere() -> None:
    """No turn is ever told of that could be their parent; jobs of one request are one trace."""
    asked = job(session_id="http_1", turn=NO_TURN)
    spans = {span.name: span for span in maker().spans(Bundle("http_1", NO_TURN, None, (asked,), None))}
    assert spans["transcribe"].parent is None
    remote = TraceParent(7, 8, True)
    below = {span.name: span for span in maker().spans(Bundle("http_1", NO_TURN, None, (asked,), remote))}
    parent, own = below["transcribe"].parent, below["transcribe"].context
    assert parent is not None
    assert own is not None
    assert (own.trace_id, parent.trace_id, parent.span_id, parent.is_remote) == (7, 7, 8, True)
    work, queue = below["work"].parent, below["queue"].parent
    assert work is not None
    assert queue is not None
    assert work.span_id == queue.span_id == own.span_id


def test_spans_are_made_of_the_share_that_is_wanted() -> None:
    """About so many turns, whole traces each; all of them for 1, none for 0."""
    bundles = [Bundle("sess_1", number, turn(turn=number), (JOB,), None) for number in range(1_000)]
    wanted = [len(maker(share=0.25).spans(bundle)) for bundle in bundles]
    assert set(wanted) == {0, 5}
    assert 150 < sum(1 for count in wanted if count) < 350
    assert all(maker().spans(bundle) for bundle in bundles)
    assert not any(maker(share=0).spans(bundle) for bundle in bundles)


def test_spans_follow_a_wall_clock_that_was_set() -> None:
    """A machine whose clock is put right an hour after the start tells what comes then by the right time."""
    origins = iter([OFFSET_NS, OFFSET_NS + 3_600_000 * MS])
    made = SpanMaker(
        Resource.get_empty(), InstrumentationScope("test"), LanguageModel(), lambda: next(origins), 1.0
    )
    bundle = Bundle("sess_1", 1, TURN, (), None)
    first, second = (made.spans(bundle)[0].start_time for _ in range(2))
    assert first is not None
    assert second is not None
    assert second - first == 3_600_000 * MS
