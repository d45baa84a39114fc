"""What every test may rely on: Hypothesis profiles, recorded data, and an honest list of what could not run here."""

import os
import shutil
from collections import Counter
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings
from websockets.asyncio.client import connect

# Deadlines of single examples would be timed asserts. In CI the examples are the same in every run.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Models come from installed packages: a test that would reach for a hub is to fail at once.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Clients that are told nothing else wait 5 and 10 s for a server. In a test it shares a busy machine with them, and who
# hangs is found out by the test's own bound.
CLIENT_PATIENCE_S = 60.0
for _part in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _part, CLIENT_PATIENCE_S)
(connect.__init__.__kwdefaults__ or {})["open_timeout"] = CLIENT_PATIENCE_S

SPEECH_DATA = "CHORALE_SPEECH_DATA"
CONSISTENCY_DATA = "CHORALE_CONSISTENCY_DATA"

_wanting = pytest.StashKey[Counter[str]]()


def _missing_program(*names: str) -> str | None:
    absent = [name for name in names if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def _missing_data(variable: str, file: str) -> str | None:
    folder = os.environ.get(variable)
    if not folder:
        return f"{variable} is not set"
    if not (Path(folder) / file).is_file():
        return f"{variable} has no {file}"
    return None


def _why_not(item: pytest.Item) -> str | None:
    """Returns what this machine lacks for a test, or None."""
    lacks = []
    if item.get_closest_marker("browser"):
        lacks.append(_missing_program("chromium", "chromedriver"))
    if item.get_closest_marker("corpus"):
        lacks.append(_missing_data(SPEECH_DATA, "manifest.jsonl"))
    if item.get_closest_marker("dialogues"):
        lacks.append(_missing_data(CONSISTENCY_DATA, "dialogues.jsonl"))
    lacks += [_missing_program(*marker.args) for marker in item.iter_markers("needs")]
    return next((lack for lack in lacks if lack), None)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_wanting] = Counter()


def pytest_runtest_setup(item: pytest.Item) -> None:
    reason = _why_not(item)
    if reason:
        item.config.stash[_wanting][reason] += 1
        pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    wanting = config.stash[_wanting]
    if wanting:
        terminalreporter.section("this machine lacks something")
        for reason, count in wanting.most_common():
            tests = "1 test" if count == 1 else f"{count} tests"
            terminalreporter.write_line(f"{tests} did not run: {reason}")


@pytest.fixture(scope="session")
def speech_data() -> Path:
    """The folder of recorded speech; use with `@pytest.mark.corpus`."""
    return Path(os.environ[SPEECH_DATA])


@pytest.fixture(scope="session")
def consistency_data() -> Path:
    """The folder of recorded dialogues and pairs; use with `@pytest.mark.dialogues`."""
    return Path(os.environ[CONSISTENCY_DATA])
