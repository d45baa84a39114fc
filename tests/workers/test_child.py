"""A worker process ends with its server, whatever either is doing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workers.house import PATIENCE_S, is_alive


@pytest.mark.parametrize("verb", ["forever", "hold"])
def test_child_whose_server_is_killed_does_not_live_on(tmp_path: Path, verb: str) -> None:
    """After kill -9 of the server no orphan is left, neither a busy one nor one whose interpreter is stalled."""
    command = [sys.executable, "-m", "tests.workers.orphanage", str(tmp_path), verb]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        worker = int(server.stdout.readline())
        assert is_alive(worker)
        os.kill(server.pid, signal.SIGKILL)
    given_up = time.monotonic() + PATIENCE_S
    while is_alive(worker):
        assert time.monotonic() < given_up
        time.sleep(0.01)


def test_child_started_by_nobody_ends_at_once() -> None:
    """A child whose server ended before it could ask to die with it notices that itself."""
    command = [sys.executable, "-m", "orchestrator.workers.child", "0", "1"]
    assert subprocess.run(command, timeout=PATIENCE_S, check=False).returncode == 0


def test_child_importing_it_loads_no_numeric_library() -> None:
    """The number of threads must be in the environment before numpy and its like are loaded."""
    check = "import orchestrator.workers.child, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], timeout=PATIENCE_S, check=False).returncode == 0
