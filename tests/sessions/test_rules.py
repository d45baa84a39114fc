"""The numbers of a session that depend on when it begins."""

import datetime

from orchestrator.recording.written_rules import read_rules, write_rules
from orchestrator.sessions.rules import SessionRules, on_day


def test_rules_know_the_day_on_which_the_session_begins() -> None:
    """By local time; nothing else changes."""
    noon = datetime.datetime(2026, 3, 6, 12, 0).astimezone().timestamp()
    rules = on_day(SessionRules(max_items=7), noon)
    assert rules.consistency.engine.today == "2026-03-06"
    assert rules.max_items == 7


def test_rules_keep_their_day_in_a_recording() -> None:
    """A session that is replayed a month later means the same by "tomorrow"."""
    noon = datetime.datetime(2026, 3, 6, 12, 0).astimezone().timestamp()
    rules = on_day(SessionRules(), noon)
    assert read_rules(write_rules(rules), SessionRules()).consistency.engine.today == "2026-03-06"
