"""Rules as a person writes them into a scenario."""

import pytest

from orchestrator.recording.written_rules import faults_of, write_rules
from orchestrator.sessions.rules import SessionRules


def test_what_was_written_by_us_has_no_fault() -> None:
    """Whatever the rules are, their own plain form fits them."""
    assert list(faults_of(write_rules(SessionRules()), SessionRules())) == []
    assert list(faults_of({"tier": 1, "max_utterance_s": 5, "early_replies": False}, SessionRules())) == []


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"early_reply": False}, "early_reply: there is no such rule; do you mean early_replies?"),
        ({"early_replies": 1}, "early_replies: expected as True, got 1"),
        ({"window_us": "soon"}, "window_us: expected as 1500000, got 'soon'"),
        ({"consistency": {"nothing": 1}}, "consistency.nothing: there is no such rule"),
        ({"judge": 1}, "judge: there is no such rule"),
    ],
)
def test_a_rule_that_does_not_fit_is_named(written: dict[str, object], told: str) -> None:
    """A scenario with a slip of the pen would otherwise test the defaults, and pass."""
    assert list(faults_of(written, SessionRules())) == [told]
