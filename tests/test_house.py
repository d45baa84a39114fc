"""The house rules that no tool checks for us (import directions are `make imports`)."""

import ast
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("orchestrator", "modalities", "consistency")

SHELLS = (
    # Files that may wait, tell the time or draw lots. Everything else takes time and chance as arguments.
    "orchestrator/app.py",
    "orchestrator/clock.py",
    "orchestrator/ids.py",
    "orchestrator/cli/*",
    "orchestrator/clients/*",
    "orchestrator/transports/*",
    "orchestrator/workers/*",
    "orchestrator/store/*",
    "orchestrator/telemetry/*",
    "orchestrator/buffers/handover.py",
    "orchestrator/observability/loop_lag.py",
    "orchestrator/recording/backlog.py",
    "orchestrator/recording/recorder.py",
    "orchestrator/recording/scripted.py",
    "orchestrator/recording/stage.py",
    "orchestrator/recording/virtual_time.py",
    "orchestrator/recording/writer.py",
    "orchestrator/settings/studio.py",
    "orchestrator/sessions/alarm.py",
    "orchestrator/sessions/clip_reading.py",
    "orchestrator/sessions/inbox.py",
    "orchestrator/sessions/runner.py",
    "orchestrator/sessions/waking.py",
    "orchestrator/sessions/registry.py",
    "orchestrator/scheduling/delivery.py",
    "orchestrator/scheduling/dispatcher.py",
    "modalities/adapters/*",
)
HEARTS_AMONG_SHELLS = (
    "orchestrator/transports/attempts.py",
    "orchestrator/transports/auth.py",
    "orchestrator/transports/cursor.py",
    "orchestrator/transports/inlet.py",
    "orchestrator/transports/rejoining.py",
    "orchestrator/transports/outbox.py",
    "orchestrator/transports/outlet.py",
    "orchestrator/transports/pace.py",
    "orchestrator/transports/partial.py",
    "orchestrator/transports/chat_answer.py",
    "orchestrator/transports/openai_chat.py",
    "orchestrator/transports/rpc/statuses.py",
    "orchestrator/transports/rtp_order.py",
    "orchestrator/transports/rtp_placement.py",
    "orchestrator/transports/rtp_reception.py",
    "orchestrator/transports/seats.py",
    "orchestrator/transports/signed_secret.py",
    "orchestrator/transports/sse.py",
    "orchestrator/transports/subtitles.py",
    "orchestrator/transports/tracks.py",
    "orchestrator/workers/stillness.py",
    "orchestrator/workers/supervision.py",
)
WAITING = {
    "asyncio",
    "threading",
    "multiprocessing",
    "concurrent",
    "selectors",
    "socket",
    "subprocess",
    "signal",
    "sched",
}
TIME_AND_CHANCE = {"time", "random", "secrets", "uuid"}

LONG_FILES: dict[str, str] = {
    # file over 400 lines -> why it holds one noun all the same
}
MAX_LINES = 400

UNBOUNDED: dict[str, str] = {
    # "file: its line" -> what bounds it instead
    "orchestrator/recording/backlog.py: self._waiting: deque[tuple[T, int]] = deque()  # bounded by `put`": (
        "counts bytes beside entries: `put` refuses at either bound"
    ),
    "orchestrator/workers/outbox.py: self._waiting: deque[_Waiting] = deque()  # bounded by `put`, in bytes": (
        "counts bytes, not entries: `put` blocks or refuses at the bound"
    ),
    "orchestrator/sessions/response.py: self.unspoken: deque[Sentence] = deque()": (
        "sentences of one reply, whose text is held anyway: bounded by the tokens of a response"
    ),
}


def sources(*folders: str) -> list[str]:
    """Returns the Python files that git knows or would add, as paths from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *(f"{name}/*.py" for name in folders)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    return sorted(path for path in set(listed) if (ROOT / path).is_file())


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _is_shell(path: str) -> bool:
    return path not in HEARTS_AMONG_SHELLS and any(fnmatch(path, pattern) for pattern in SHELLS)


def forbidden_in_a_heart(code: str) -> set[str]:
    """Returns the imports of `code` with which it could wait, tell the time or draw lots."""
    return {name for name in _imports(ast.parse(code)) if name.split(".")[0] in WAITING | TIME_AND_CHANCE}


_QUEUES = {"Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "JoinableQueue"}


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def unbounded_queues(code: str) -> list[str]:
    """Returns the lines of `code` that make a queue or deque without a bound."""
    lines = code.splitlines()
    found = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        passed_on = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(_name_of(value) in {"deque", *_QUEUES} for value in passed_on):  # field(default_factory=deque)
            found.append(lines[node.lineno - 1].strip())
        name = _name_of(node.func)
        keywords = {keyword.arg for keyword in node.keywords}
        if (name == "deque" and len(node.args) < 2 and "maxlen" not in keywords) or (
            name in _QUEUES and not node.args and "maxsize" not in keywords
        ):
            found.append(lines[node.lineno - 1].strip())
    return found


def test_hearts_neither_wait_nor_tell_the_time() -> None:
    """Only listed shells import asyncio, threads, clocks or chance: everything else is values in, values out."""
    faults = {
        path: names
        for path in sources(*PACKAGES)
        if not _is_shell(path) and (names := forbidden_in_a_heart((ROOT / path).read_text()))
    }
    assert not faults, "hearts take time as an argument; a new shell is listed in SHELLS"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import asyncio", {"asyncio"}),
        ("def late() -> None:\n    from time import monotonic", {"time"}),
        ("import concurrent.futures as f", {"concurrent.futures"}),
        ("from datetime import datetime\nimport math", set()),
        ("from . import time", set()),
    ],
)
def test_the_check_of_hearts_sees_every_form_of_import(code: str, expected: set[str]) -> None:
    """Late, aliased and dotted imports count; relative ones are the package's own."""
    assert forbidden_in_a_heart(code) == expected


def test_every_listed_shell_exists() -> None:
    """The list of shells names only files that are there."""
    paths = sources(*PACKAGES)
    stale = [
        pattern for pattern in (*SHELLS, *HEARTS_AMONG_SHELLS) if not any(fnmatch(p, pattern) for p in paths)
    ]
    assert not stale


def test_no_file_holds_two_nouns() -> None:
    """A file over 400 lines is split by noun or listed with a reason; a listed one is really that long."""
    lengths = {
        path: len((ROOT / path).read_text().splitlines())
        for path in sources(*PACKAGES, "tests", "benchmarks")
    }
    long = {path for path, lines in lengths.items() if lines > MAX_LINES}
    assert long == set(LONG_FILES), {path: lengths.get(path) for path in long ^ set(LONG_FILES)}


def test_every_queue_has_a_bound() -> None:
    """No queue or deque is made without a bound, but for listed ones that something else bounds."""
    faults = {
        f"{path}: {line}"
        for path in sources(*PACKAGES)
        for line in unbounded_queues((ROOT / path).read_text())
    }
    assert faults == set(UNBOUNDED)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("q = asyncio.Queue()", ["q = asyncio.Queue()"]),
        ("q: deque[int] = deque()", ["q: deque[int] = deque()"]),
        ("q = collections.deque(items)", ["q = collections.deque(items)"]),
        ("q = field(default_factory=lambda: deque())", ["q = field(default_factory=lambda: deque())"]),
        ("q = defaultdict(deque)", ["q = defaultdict(deque)"]),
        ("q = field(default_factory=asyncio.Queue)", ["q = field(default_factory=asyncio.Queue)"]),
        ("q = deque(maxlen=3), deque([], 3), asyncio.Queue(4), Queue(maxsize=n)", []),
    ],
)
def test_the_check_of_queues_sees_bounds(code: str, expected: list[str]) -> None:
    """A bound counts by position and by name."""
    assert unbounded_queues(code) == expected


def test_every_source_folder_is_a_package_and_every_test_has_a_sentence() -> None:
    """Tests mirror the source in packages; each test promises something in its docstring."""
    folders = {Path(path).parent for path in sources(*PACKAGES, "tests")}
    assert not [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file()]
    silent = [
        f"{path}:{node.lineno} {node.name}"
        for path in sources("tests")
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert not silent, "a test's docstring is its promise"


def test_the_import_contracts_cover_the_whole_server() -> None:
    """The layers contract is exhaustive: a new package or module of the server needs a floor."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    floors = next(contract for contract in contracts if contract["id"] == "floors")
    assert floors["containers"] == ["orchestrator"]
    assert floors["exhaustive"] is True
