"""One point of the study: a server with one policy, users at one rate, and what came of it as one row."""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks.load.arrivals import Plan, Seen, Turn, percentile, read_seen
from benchmarks.load.policies import RATE_SHARE, TIERS, Policy, common, real, stacked
from benchmarks.outcome import ROOT, Row
from benchmarks.sockets import allow_files

LOCUST_PYTHON = ROOT / ".venv-clients" / "load" / "bin" / "python"
"""Where `make load` installs Locust: it patches its process with gevent and is kept out of the server's."""

READY_WITHIN_S = 60.0
_USERS_NICE = "5"
"""As much as the workers: the server goes first, as it would with users on other machines."""


class CannotRun(RuntimeError):
    """A server or its users did not come up; the message has the end of what they said."""


class Server:
    """A running server of the study."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, log: Path) -> None:
        self.port = port
        self.log = log
        self._process = process

    def usage(self) -> dict[str, Any]:
        """Returns what it uses now (`benchmarks.load.server.usage`). Raises `CannotRun` where it is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write("usage\n")
            self._process.stdin.flush()
            found: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise CannotRun(f"the server is gone:\n{_tail(self.log)}") from None
        return found


@contextmanager
def serving(tree: Mapping[str, Any], folder: Path, door: Sequence[str] = ()) -> Iterator[Server]:
    """Runs a server with this configuration and the keys of `TIERS`; `door` is a door's name and rate. Raises
    `CannotRun`."""
    keys = [{"key": key_of(tier), "tenant": tier, "tier": tier} for tier in dict.fromkeys(TIERS)]
    (folder / "keys.yaml").write_text(yaml.safe_dump({"keys": keys}))
    own = {"server": {"port": 0, "key_file": "keys.yaml"}}
    (folder / "server.yaml").write_text(yaml.safe_dump(stacked(tree, own)))
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load.server", str(folder / "server.yaml"), *door],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise CannotRun(f"the server did not start:\n{_tail(log)}")
        yield Server(process, int(url.rpartition(":")[2]), log)
    finally:
        _end(process)


def key_of(tier: str) -> str:
    """Returns the API key of a tier, in this study."""
    return f"sk-load-study-{tier}"


def crowd(plan: Plan, folder: Path, python: Path, watch: Callable[[], None] = lambda: None) -> Seen:
    """Runs the users of a plan; returns what they saw. `watch` is called once they begin. Raises `CannotRun`."""
    allow_files(2 * plan.users + 256)
    plan_file, result, log = folder / "plan.json", folder / "seen.json", folder / "users.log"
    plan.write(plan_file)
    command = [str(python), "-m", "benchmarks.load.users", str(plan_file), str(result)]
    with log.open("w") as output:
        process = subprocess.Popen(
            ["nice", "-n", _USERS_NICE, *command],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True,
        )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline().strip() != "connected":
            raise CannotRun(f"the users did not connect:\n{_tail(log)}")
        process.stdin.write(f"{time.monotonic() + 0.5}\n")
        process.stdin.flush()
        watch()
        process.wait(timeout=plan.until_s + plan.drain_s + READY_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"the users did not end:\n{_tail(log)}") from None
    finally:
        _end(process)
    if not result.exists():
        raise CannotRun(f"the users left nothing:\n{_tail(log)}")
    return read_seen(result)


@dataclass(frozen=True, slots=True)
class Point:
    """What one measurement is to be: its row is found again by these."""

    policy: Policy
    load: float
    capacity: float
    plan: Plan
    real: bool = False

    @property
    def tree(self) -> Mapping[str, Any]:
        """The configuration of its server."""
        tree = stacked(real() if self.real else common(self.plan.seed), self.policy.settings(self.capacity))
        # The numbers of replies in the policies are the simulated accelerator's; a real worker begins at its own.
        return stacked(tree, {"workers": {"llm": {"limit": {"base": None}}}}) if self.real else tree

    @property
    def key(self) -> dict[str, Any]:
        """What its row is found again by. The same policy at the same load is another point where the plan, or what is
        taken for the capacity, is another."""
        plan = {name: value for name, value in asdict(self.plan).items() if name not in _NOT_OF_THE_POINT}
        return {
            "policy": self.policy.name, "load": self.load, "capacity": self.capacity, "real": self.real, **plan,
        }  # fmt: skip


_NOT_OF_THE_POINT = {"port", "host", "keys", "sound", "connect_per_s"}


def measure(point: Point, python: Path = LOCUST_PYTHON) -> Row:
    """Runs one point on a server of its own; returns its row. Raises `CannotRun`."""
    with tempfile.TemporaryDirectory(prefix="chorale-load-") as place:
        folder = Path(place)
        door = [point.policy.door, str(RATE_SHARE * point.capacity)] if point.policy.door else []
        with serving(point.tree, folder, door) as server:
            plan = replace(point.plan, port=server.port, keys=tuple(map(key_of, TIERS)))
            if plan.speaking:
                plan = replace(plan, sound=str(utterance(folder)))
            marks: list[dict[str, Any]] = []
            seen = crowd(plan, folder, python, lambda: marks.append(server.usage()))
            marks.append(server.usage())
            return row(point, plan, seen, marks) | {"behind ms": behind_ms(server.log.read_text())}


def row(point: Point, plan: Plan, seen: Seen, marks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the figures of a point: of written turns, but for the columns that say spoken. Latencies count from the
    intended time. A turn that has not ended counts with the time that it has waited; refused turns have no latency,
    but a share."""
    inside = [turn for turn in seen.turns if plan.warm_s <= turn.intended_s < plan.until_s]
    counted = [turn for turn in inside if not turn.spoken]
    spoken = [turn for turn in inside if turn.spoken]
    done = [turn for turn in counted if turn.outcome == "completed"]
    outcomes = Counter(turn.outcome for turn in counted)
    refused = outcomes["rate_limit_exceeded"]
    first = latencies(counted, seen.ended_s)
    within = [turn for turn in done if turn.done_s is not None and turn.done_s < plan.until_s]
    turns = max(1, len(seen.turns))
    figures: dict[str, Any] = {
        "policy": point.policy.name,
        "load": point.load,
        "offered/s": len(counted) / plan.duration_s,
        "turns/s": len(done) / plan.duration_s,
        "turns/s in time": len(within) / plan.duration_s,
        "p50 ms": percentile(first, 0.5),
        "p95 ms": percentile(first, 0.95),
        "p99 ms": percentile(first, 0.99),
        "p95 done ms": percentile(
            [1_000 * (one.done_s - one.intended_s) for one in done if one.done_s], 0.95
        ),
        "refused": refused / max(1, len(counted)),
        "unfinished": outcomes["unfinished"],
        "other": len(counted) - len(done) - refused - outcomes["unfinished"],
        "spoken": len(spoken),
        "spoken done": sum(turn.outcome == "completed" for turn in spoken),
        "spoken p95 ms": percentile(latencies(spoken, seen.ended_s), 0.95),
        "sessions": seen.connected,
        "faults": len(seen.faults),
        "late ms": seen.late_ms,
        "server ms/turn": 1_000 * (marks[-1]["cpu_s"] - marks[0]["cpu_s"]) / turns,
        "users ms/turn": 1_000 * seen.cpu_s / turns,
        "workers ms/turn": 1_000 * (marks[-1]["workers_cpu_s"] - marks[0]["workers_cpu_s"]) / turns,
        "lag p99 ms": marks[-1]["lag_p99_ms"],
    }
    for tier in dict.fromkeys(TIERS):
        of = [turn for turn in counted if plan.keys and plan.key_of(turn.group) == key_of(tier)]
        figures[f"{tier} p95 ms"] = percentile(latencies(of, seen.ended_s), 0.95)
        figures[f"{tier} done"] = sum(turn.outcome == "completed" for turn in of) / max(1, len(of))
    return figures


def behind_ms(log: str) -> float:
    """Returns how far the simulated accelerator was behind its time-table at worst, by what it said in the server's log
    (it says so from a quarter of a second on): then the machine was too small, and the figures are not the model's."""
    return float(max(map(int, re.findall(r"is (\d+) ms behind its time-table", log)), default=0))


def utterance(folder: Path) -> Path:
    """Writes what speaking users say, a sample of this project's, as 24 kHz int16; returns where."""
    import soundfile
    import soxr

    sound, rate_hz = soundfile.read(ROOT / "samples" / "sessions" / "book-a-table.flac", dtype="int16")
    path = folder / "utterance.pcm"
    path.write_bytes(soxr.resample(sound, rate_hz, 24_000).astype("<i2").tobytes())
    return path


def latencies(turns: Sequence[Turn], ended_s: float) -> list[float]:
    """Returns milliseconds from the intended time to the first text; for a turn that still waits, to the end of the
    run. Turns that failed have none."""
    found = []
    for turn in turns:
        if turn.first_s is not None:
            found.append(1_000 * (turn.first_s - turn.intended_s))
        elif turn.outcome == "unfinished":
            found.append(1_000 * (ended_s - turn.intended_s))
    return found


def _end(process: "subprocess.Popen[str]") -> None:
    """Lets it end by the end of its input; then makes it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
