"""What waits to be written: bounded, and never in the way."""

import threading

from orchestrator.recording.backlog import Backlog


def test_a_full_backlog_refuses_and_counts() -> None:
    """Over either bound an entry is refused at once; one that ends something is still taken."""
    backlog: Backlog[str] = Backlog(entries=2, size=100)
    assert backlog.put("a", 60)
    assert not backlog.put("b", 60), "too many bytes"
    assert backlog.put("c", 1)
    assert not backlog.put("d", 1), "too many entries"
    assert backlog.put("end", 0, is_last=True)
    assert backlog.statistics().refused == 2
    assert backlog.take(0) == ["a", "c", "end"]
    assert backlog.put("b", 60)


def test_a_closed_backlog_hands_over_what_waits_and_then_says_so() -> None:
    """Nothing is lost at the end, and nothing comes after it."""
    backlog: Backlog[str] = Backlog()
    backlog.put("a", 1)
    backlog.close()
    assert not backlog.put("late", 1)
    assert backlog.take(None) == ["a"]
    assert backlog.take(None) is None


def test_taking_waits_for_an_entry_or_for_its_time() -> None:
    """The writer sleeps until there is something, or something else is due."""
    backlog: Backlog[str] = Backlog()
    assert backlog.take(0.001) == []
    threading.Timer(0.01, backlog.put, ("a", 1)).start()
    assert backlog.take(30) == ["a"]
