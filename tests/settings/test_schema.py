"""What single settings mean."""

import pytest

from orchestrator.settings import thread_budget
from orchestrator.settings.schema import LlmWorker, usable_cores


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (3, 2), (4, 2), (8, 2), (16, 4), (64, 16)])
def test_thread_budget_is_one_on_small_machines(cores: int, threads: int) -> None:
    """Two cores or fewer: one thread per worker, so that workers do not fight."""
    assert thread_budget(cores) == threads


def test_threads_of_a_worker_are_what_was_configured() -> None:
    """A number wins over `auto`."""
    assert LlmWorker(threads=6).threads_on(2) == 6
    assert LlmWorker().threads_on(2) == 1


def test_usable_cores_are_counted_where_affinity_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot tell which cores are ours is asked how many there are."""
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert usable_cores() == 1
