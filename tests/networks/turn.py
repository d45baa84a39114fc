"""A TURN server of the tests' own: coturn on the loopback address, for as long as a test runs."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

USER, PASSWORD = "caller", "correct horse"
UP_WITHIN_S = 20.0


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def turn_server(folder: Path) -> AsyncIterator[str]:
    """Yields the URL of a TURN server (UDP) that takes `USER` and `PASSWORD`; it has ended afterwards."""
    port, log = _free_port(), folder / "turn.log"
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
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    try:
        await _wait_for(port, log)
        yield f"turn:127.0.0.1:{port}?transport=udp"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _wait_for(port: int, log: Path) -> None:
    """It listens on TCP too, at about the same time."""
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
                return
    except TimeoutError:
        raise AssertionError(f"no TURN server after {UP_WITHIN_S:.0f} s; see {log}") from None
