"""The W3C header, as https://www.w3.org/TR/trace-context/ writes it; what is malformed is ignored, never a fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.observability.traceparent import TraceParent, parse

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.integers(0, 255))
def test_parse_reads_every_header_of_the_standard(trace_id: int, span_id: int, flags: int) -> None:
    """Identities as numbers; of the flags only the lowest bit means something."""
    header = f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"
    assert parse(header) == TraceParent(trace_id, span_id, bool(flags & 1))


@given(st.one_of(st.text(), st.text("0123456789abcdef-", max_size=80)))
def test_parse_never_fails(header: str) -> None:
    """Clients may send anything; whatever is taken has identities in range."""
    found = parse(header)
    if found is not None:
        assert 0 < found.trace_id < 2**128
        assert 0 < found.span_id < 2**64


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-0g",
        f"00_{TRACE}_{SPAN}_01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
    ],
)
def test_parse_ignores_what_is_malformed(header: str | None) -> None:
    """None, and the session's turns are traces of their own."""
    assert parse(header) is None


def test_parse_reads_what_later_versions_begin_with() -> None:
    """A later version may add fields; the first four are read as today's."""
    assert parse(f"01-{TRACE}-{SPAN}-01-more-of-it") == TraceParent(int(TRACE, 16), int(SPAN, 16), True)
    assert parse(f" 00-{TRACE}-{SPAN}-00 ") == TraceParent(int(TRACE, 16), int(SPAN, 16), False)
