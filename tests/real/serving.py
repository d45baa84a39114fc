"""A real server in a process of its own, with its real models, as `make run` starts it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent.parent
READY_WITHIN_S = 120
GONE_WITHIN_S = 60


def free_port() -> int:
    """Returns a port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    pid: int

    def workers(self) -> dict[str, int]:
        """Returns the process of every worker that has read its configuration, by the name that the system shows."""
        found = {}
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
            except OSError:  # it has just ended
                continue
            name = fields["Name"].strip()
            if int(fields["PPid"]) == self.pid and name.startswith("chorale-") and "Z" not in fields["State"]:
                found[name] = int(fields["Pid"])
        return found


@contextmanager
def serving(log: Path, environment: Mapping[str, str] = {}) -> Iterator[str]:
    """Yields the URL of a server that is ready; it has ended in good order afterwards. `log` gets what it prints."""
    with served(log, environment) as server:
        yield server.url


@contextmanager
def served(
    log: Path, environment: Mapping[str, str] = {}, ends: int = 0, command: Sequence[str] = ()
) -> Iterator[Served]:
    """As `serving`, and tells the server's process too. `ends` is the code with which the server is to end; `command`
    starts another one than `make run` does."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    chorale = str(Path(sys.executable).with_name("chorale"))
    command = command or [chorale, "serve", "--config", "configs/default.yaml"]
    settings = {**os.environ, "CHORALE_SERVER__PORT": str(port), **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=settings, stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait_until_ready(process, url, log)
            yield Served(url, process.pid)
            process.terminate()
            code = process.wait(GONE_WITHIN_S)
            assert code == ends, f"the server ended with {code}:\n{_tail(log)}"
        finally:
            process.kill()
            process.wait()


def _wait_until_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline_s:
        try:
            if httpx.get(f"{url}/readyz", trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        try:
            code = process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"the server ended with {code} before it was ready:\n{_tail(log)}")
    raise AssertionError(f"the server was not ready within {READY_WITHIN_S} s:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-40:])
