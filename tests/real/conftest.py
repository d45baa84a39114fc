from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.serving import serving


@pytest.fixture(scope="session")
def server_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server of `server_url` writes, as JSON lines."""
    return tmp_path_factory.mktemp("server") / "log"


@pytest.fixture(scope="session")
def server_url(server_log: Path) -> Iterator[str]:
    """A server with its real models, one for all tests that only talk to it.

    It takes the time it needs for a verdict: on a busy machine the default's second and a half may pass first.
    """
    settings = {"CHORALE_LOGGING__FORMAT": "json", "CHORALE_CONSISTENCY__DEADLINE_MS": "60000"}
    with serving(server_log, settings) as url:
        yield url
