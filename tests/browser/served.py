"""A real server, started as its users start it: `chorale serve` in a process of its own."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from tests.browser.places import ROOT

READY = "Chorale is ready: "
READY_WITHIN_S = 120
ENDS_WITHIN_S = 40


class Served:
    """`start`, `stop` and `kill` may alternate: the port, once chosen, stays."""

    def __init__(self, port: int, log: Path) -> None:
        self.address = f"http://127.0.0.1:{port}/"
        self._port = port
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns once the server says that it is ready. Fails with its last words otherwise."""
        start = "from orchestrator.cli.main import main; main()"
        command = [sys.executable, "-c", start, "serve", "--port", str(self._port)]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        said: deque[str] = deque(maxlen=50)
        ready = threading.Event()

        def listen(process: subprocess.Popen[str]) -> None:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                if line.startswith(READY):
                    ready.set()

        threading.Thread(target=listen, args=(self._process,), daemon=True).start()
        deadline = time.monotonic() + READY_WITHIN_S
        while not ready.wait(0.1):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the server did not come up: {''.join(said)}{self.last_words()}")

    def stop(self) -> None:
        """Asks the server to end, as a service manager does, and waits for it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Lets the server die at once, without a word to anybody."""
        self._end(signal.SIGKILL)

    def last_words(self) -> str:
        """The end of the server's log."""
        return "\n".join(self._log.read_text().splitlines()[-40:])

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
