"""pytest collects ``*.session.yaml`` as tests (docs/replay.md). Switch it off with ``-p no:chorale``.

It is loaded in every run of pytest on a machine where Chorale is installed: it imports nothing of it before the first
scenario runs, and does nothing where there is none.
"""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from orchestrator.recording.rehearsal import Rehearsed
    from orchestrator.recording.scenario import Miss, Scenario

SUFFIX = ".session.yaml"
REAL = "chorale_real"

Rehearse = Callable[[Path], "Rehearsed"]

_studio = pytest.StashKey[Any]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{REAL}: a scenario that loads Chorale's models")


def pytest_unconfigure(config: pytest.Config) -> None:
    studio = config.stash.get(_studio, None)
    if studio is not None:
        studio.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    if not file_path.name.endswith(SUFFIX):
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


@pytest.fixture
def chorale_rehearse(pytestconfig: pytest.Config) -> Rehearse:
    """Runs a scenario file with the engines that it names, and returns how it went: `Rehearsed`."""
    return lambda path: _rehearse(pytestconfig, path, None)


@pytest.fixture
def chorale_scripted(pytestconfig: pytest.Config) -> Rehearse:
    """As `chorale_rehearse`, but by the scenario's script, whatever engines it names."""
    return lambda path: _rehearse(pytestconfig, path, "scripted")


@pytest.fixture
def chorale_models(pytestconfig: pytest.Config) -> Rehearse:
    """As `chorale_rehearse`, but with the default models; they are loaded once in a run."""
    return lambda path: _rehearse(pytestconfig, path, "real")


class ScenarioFile(pytest.File):
    """One scenario, one test."""

    def collect(self) -> Iterator["ScenarioItem"]:
        name = self.path.name.removesuffix(SUFFIX)
        try:
            scenario = _read(self.path)
        except ValueError as error:
            raise self.CollectError(str(error)) from None
        item = ScenarioItem.from_parent(self, name=name)
        if scenario.engines != "scripted":
            item.add_marker(REAL)
            known = {line.partition(":")[0].strip() for line in self.config.getini("markers")}
            if "real" in known:
                item.add_marker("real")
        yield item


class ScenarioItem(pytest.Item):
    """Runs a scenario; fails with the time line around what is different."""

    def runtest(self) -> None:
        rehearsed = _rehearse(self.config, self.path, None)
        if rehearsed.misses:
            raise ScenarioFailed(rehearsed)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        if type(excinfo.value).__module__.startswith("orchestrator."):  # a fault of the scenario, in words
            return f"{self.path.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"scenario {self.name}"


class ScenarioFailed(AssertionError):
    """Expectations were not met; the text has them, and what happened around."""

    def __init__(self, rehearsed: "Rehearsed") -> None:
        parts = []
        for miss in rehearsed.misses:
            parts.append(_show(miss))
            around = rehearsed.story.lines(miss.at_us)
            parts += [f"    {'> ' if _is_at(line, miss) else '  '}{line}" for line in around[:24]]
            if len(around) > 24:
                parts.append(f"      … {len(around) - 24} more")
            parts.append("")
        super().__init__("\n".join(parts).rstrip())


def _show(miss: "Miss") -> str:
    where = "" if miss.at_us is None else f" at {miss.at_us / 1e6:.3f} s"
    return f"{miss.what}{where}\n  expected: {miss.expected}\n  got:      {miss.got}"


def _is_at(line: str, miss: "Miss") -> bool:
    return miss.at_us is not None and line.startswith(f"{miss.at_us / 1e6:8.3f} s")


def _read(path: Path) -> "Scenario":
    from orchestrator.recording.scenario import ScenarioFaulty, parse

    try:
        return parse(path.read_text(encoding="utf-8"), path.name)
    except (ScenarioFaulty, OSError) as error:
        raise ValueError(str(error)) from None


def _rehearse(config: pytest.Config, path: Path, engines: str | None) -> "Rehearsed":
    studio = config.stash.get(_studio, None)
    if studio is None:
        # The configuration and the models lie above this package, which knows them by name only.
        module = importlib.import_module("orchestrator.settings.studio")
        studio = config.stash[_studio] = module.Studio()
    rehearsed: Rehearsed = studio.rehearse(_read(path), path, engines)
    return rehearsed
