"""A worker process ends with its server, whatever either is doing."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.workers.frames import Configure, FrameReader, FromWorker, Ready, frame, from_worker
from tests.workers.feeding import feed
from tests.workers.house import PATIENCE_S, engine, is_alive


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


def test_child_ends_when_its_pipe_does(tmp_path: Path) -> None:
    """Where no kernel helps, the end of the pipe is enough: the child ends though its parent lives."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "orchestrator.workers.child", str(theirs.fileno()), str(os.getpid())]
        child = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
    with ours:
        options = {"folder": str(tmp_path)}
        ours.sendall(frame(Configure("llm", engine("LanguageModel"), options, 1, 1, 0, 0.5, {})))
        reader = FrameReader()
        messages: list[FromWorker] = []
        while not any(isinstance(message, Ready) for message in messages):
            messages += [from_worker(payload) for payload in feed(reader, ours.recv(4096))]
    assert child.wait(PATIENCE_S) == 0


def test_child_started_by_nobody_ends_at_once() -> None:
    """A child whose server ended before it could ask to die with it notices that itself."""
    command = [sys.executable, "-m", "orchestrator.workers.child", "0", "1"]
    assert subprocess.run(command, timeout=PATIENCE_S, check=False).returncode == 0


def test_child_that_loses_a_thread_ends() -> None:
    """A thread that dies of what no job can answer for (out of memory) takes the process with it."""
    program = """if True:
        import threading, time
        from orchestrator.workers import child
        def out_of_memory(): raise MemoryError
        threading.excepthook = child.end_with_thread
        threading.Thread(target=out_of_memory, daemon=True).start()
        time.sleep(60)
    """
    ended = subprocess.run(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 70
    assert b"MemoryError" in ended.stderr


def test_child_importing_it_loads_no_numeric_library() -> None:
    """The number of threads must be in the environment before numpy and its like are loaded."""
    check = "import orchestrator.workers.child, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], timeout=PATIENCE_S, check=False).returncode == 0
