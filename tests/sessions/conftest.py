"""Every scenario with a heart driven by hand is recorded, and must replay to the last byte when its test is over, also
where everything in the consistency engine is added up in another order."""

from collections.abc import Iterator

import pytest

from orchestrator.recording.replay import replay
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire.session import Session as SessionView
from tests.recording.disorder import disorder
from tests.recording.memory import MemoryTap
from tests.sessions.talk import Listener, Talk


@pytest.fixture(autouse=True)
def _replayed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Exact replay of what the test did: the same effects and standings from the recorded events alone."""
    talks: list[tuple[MemoryTap, SessionRules]] = []

    def listener(view: SessionView, rules: SessionRules) -> Listener:
        tap = MemoryTap(view, rules)
        talks.append((tap, rules))
        return tap.stepped

    monkeypatch.setattr(Talk, "listener", listener)
    yield
    with disorder(seed=len(talks)):
        for tap, rules in talks[-_KEPT:]:
            replayed = replay(tap.journal(), rules)
            assert replayed.is_equal, f"a replay differs from what was recorded: {replayed.differences[0]}"


_KEPT = 32
"""A property test makes thousands of talks: its last ones are replayed."""
