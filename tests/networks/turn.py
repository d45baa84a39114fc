"""A TURN server of the tests' own: coturn on the loopback address, for as long as a test runs."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

USER, PASSWORD = "caller", "correct horse"
UP_WITHIN_S = 60.0


TRIES = 3


def _free_port() -> int:
    """Returns a port that is free on UDP and on TCP: the server listens on both, and hears nobody where one is not."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, socket.socket() as other:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            with contextlib.suppress(OSError):
                other.bind(("127.0.0.1", port))
                return port


@contextlib.asynccontextmanager
async def turn_server(folder: Path) -> AsyncIterator[str]:
    """Yields the URL of a TURN server (UDP) that takes `USER` and `PASSWORD`; it has ended afterwards."""
    for tries_left in reversed(range(TRIES)):
        # Between the look at a port and the server's own a connection of somebody else's may take it.
        port, log = _free_port(), folder / "turn.log"
        process = await _start(port, log, folder)
        try:
            if not await _is_up(port):
                if tries_left:
                    continue
                raise AssertionError(f"no TURN server after {TRIES} tries of {UP_WITHIN_S:.0f} s; see {log}")
            yield f"turn:127.0.0.1:{port}?transport=udp"
            return
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _start(port: int, log: Path, folder: Path) -> asyncio.subprocess.Process:
    options = {
        "listening-ip": "127.0.0.1",
        "listening-port": port,
        "relay-ip": "127.0.0.1",
        "realm": "tests",
        "user": f"{USER}:{PASSWORD}",
        "log-file": log,
        "pidfile": folder / "turn.pid",
        "userdb": folder / "turn.db",
    }
    flags = [
        "-n",
        "--lt-cred-mech",
        "--allow-loopback-peers",
        "--no-tls",
        "--no-dtls",
        "--no-cli",
        "--simple-log",
    ]
    command = ["turnserver", *flags, *(f"--{name}={value}" for name, value in options.items())]
    quiet = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)


async def _is_up(port: int) -> bool:
    """Waits for it; it listens on TCP too, at about the same time."""
    try:
        async with asyncio.timeout(UP_WITHIN_S):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                await writer.wait_closed()
                return True
    except TimeoutError:
        return False
