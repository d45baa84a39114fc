"""What the log says of refusals."""

import logging
from typing import Any

import pytest

from orchestrator.clock import seconds
from orchestrator.observability.refusal_lines import MOST_REMEMBERED, RefusalLines

LOG = logging.getLogger("tests.refusals")


def written(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [one.__dict__ for one in caplog.records if one.name == LOG.name]


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, int]]:
    return [(one["tenant"], one["reason"], one["unsaid"]) for one in written(caplog)]


def test_a_refusal_is_told_with_who_what_and_why(caplog: pytest.LogCaptureFixture) -> None:
    """Session, tenant, kind, reason and when to come back, as fields of one line."""
    caplog.set_level("INFO")
    RefusalLines(LOG).note("acme", "llm", "queue_full", 0, 1.26, "sess_1")
    (line,) = written(caplog)
    assert (line["levelname"], line["message"]) == ("INFO", "refused")
    fields = {
        "session": "sess_1",
        "tenant": "acme",
        "kind": "llm",
        "reason": "queue_full",
        "retry_after_s": 1.3,
    }
    assert fields.items() <= line.items()


def test_refusals_of_a_tenant_are_told_once_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """The next line says how many there were since; other tenants and other reasons have lines of their own."""
    caplog.set_level("INFO")
    lines = RefusalLines(LOG)
    for now_s in (0, 1, 2, 9.9):
        lines.note("acme", "llm", "queue_full", seconds(now_s), 1.0)
    lines.note("lab", "llm", "queue_full", seconds(3), 1.0)
    lines.note("acme", "llm", "tenant_limit", seconds(4), 1.0)
    lines.note("acme", "llm", "queue_full", seconds(10), 1.0)
    lines.note("acme", "llm", "queue_full", seconds(30), 1.0)
    assert told(caplog) == [
        ("acme", "queue_full", 0),
        ("lab", "queue_full", 0),
        ("acme", "tenant_limit", 0),
        ("acme", "queue_full", 3),
        ("acme", "queue_full", 0),
    ]


def test_refusals_are_remembered_of_so_many_tenants_only(caplog: pytest.LogCaptureFixture) -> None:
    """Beyond that who was told of longest ago is forgotten, and told of again before its time."""
    caplog.set_level("INFO")
    lines = RefusalLines(LOG)
    for number in range(MOST_REMEMBERED + 1):
        lines.note(f"t{number}", "llm", "queue_full", number, 1.0)
    lines.note(f"t{MOST_REMEMBERED}", "llm", "queue_full", MOST_REMEMBERED, 1.0)
    assert len(written(caplog)) == MOST_REMEMBERED + 1
    lines.note("t0", "llm", "queue_full", MOST_REMEMBERED, 1.0)
    assert len(written(caplog)) == MOST_REMEMBERED + 2
    assert len(lines._told) == MOST_REMEMBERED
