"""The whole server in a process of its own, with scripted engines and keys."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.serving import Served, served
from tests.test_app import SCRIPTED

KEY = "sk-fuzz-0123456789-0123456789"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
_COMMAND = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "serve"]


@contextmanager
def keyed_server(folder: Path, environment: dict[str, str] | None = None) -> Iterator[Served]:
    """A server that lets this `KEY` in, has room for all that a test opens, and gives up early what nobody comes back
    to. Its log is in `folder`."""
    keys = folder / "keys.yaml"
    keys.write_text(f"keys:\n- {{key: {KEY}, tenant: fuzz}}\n")
    keys.chmod(0o600)
    settings = {
        **SCRIPTED,
        "CHORALE_SERVER__KEY_FILE": str(keys),
        "CHORALE_SERVER__MAX_SESSIONS": "100000",
        "CHORALE_CALLS__MAX_CONNECTING": "100000",
        "CHORALE_FLOW__SHEDDING": "false",  # a slow machine is no fault of the server
        "CHORALE_FLOW__SLO_ERROR_RATE": "1",
        "CHORALE_CALLS__ICE_TIMEOUT_S": "1",
        "CHORALE_SESSIONS__GRACE_S": "1",
        **(environment or {}),
    }
    with served(folder / "server.log", settings, command=_COMMAND) as server:
        yield server
