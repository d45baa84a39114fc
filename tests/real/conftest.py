from collections.abc import Iterator

import pytest

from tests.real.serving import serving


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with its real models, one for all tests that only talk to it."""
    with serving(tmp_path_factory.mktemp("server") / "log") as url:
        yield url
