"""What the Python clients have in common: the task they are given, their question in speech, and what they report.

It runs in the environments of these clients, so it needs nothing but Python itself.
"""

import array
import asyncio
import json
import logging
import sys
import time
import traceback
import wave
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

RATE_HZ = 24_000
PIECE_S = 0.02
AUDIBLE = 1_000

TEXT = "What is the capital of France?"
TOOL = "How is the weather in Paris?"
STORY = "Please tell me a story."
LISTENS_S = 2.5
"""How long the user listens before interrupting."""

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
HEARING = {"transcription": {"model": "gpt-4o-mini-transcribe", "language": "en"}}


class Stage:
    """One scenario's task. `url` is ``http://…/v1``."""

    def __init__(self, task: Mapping[str, Any], url: str) -> None:
        self.url = url
        self.ws_url = url.replace("http", "ws", 1) + "/realtime"
        with wave.open(task["question"]) as file:
            self.question = file.readframes(file.getnframes())
            """Speech, 24 kHz, 16 bit, mono; silence is not part of it."""

    def microphone(self) -> Iterator[bytes]:
        """Yields the question in pieces of 20 ms, then silence for ever. The caller keeps the time."""
        step = int(RATE_HZ * PIECE_S) * 2
        for start in range(0, len(self.question), step):
            yield self.question[start : start + step].ljust(step, b"\0")
        while True:
            yield bytes(step)

    async def speak(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Sends the microphone's sound in real time until it is cancelled."""
        began = time.monotonic()
        for sent, piece in enumerate(self.microphone(), start=1):
            await send(piece)
            await asyncio.sleep(max(0.0, began + sent * PIECE_S - time.monotonic()))


Scenario = Callable[[Stage], Awaitable[str]]


def must(claim: object, otherwise: str) -> None:
    """Raises `AssertionError` unless the claim is true; assertions may be switched off in a client's environment."""
    if not claim:
        raise AssertionError(otherwise)


def peak(pcm: bytes) -> int:
    """Returns the loudest of 16-bit samples."""
    samples = array.array("h", pcm[: len(pcm) // 2 * 2])
    return max(map(abs, samples), default=0)


async def until(condition: Callable[[], object], what: str, within_s: float = 60.0) -> None:
    """Waits for a condition that libraries' callbacks bring about. Raises `TimeoutError` naming it."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"waited {within_s:.0f} s for {what}")
        await asyncio.sleep(0.02)


class Complaints(logging.Handler):
    """What libraries log as errors: several do so with events that they cannot read, and go on."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.name}: {record.getMessage()}"[:300])


def play(
    packages: tuple[str, ...],
    scenarios: Mapping[str, Scenario],
    complaints: Complaints,
    programs: Mapping[str, str] = {},
) -> None:
    """Runs the scenarios that the task file names and writes one line of JSON about each. `programs`: versions of what
    is no package."""
    task = json.loads(Path(sys.argv[-1]).read_text())
    logging.getLogger().addHandler(complaints)
    versions = {package: version(package) for package in packages} | dict(programs)
    with Path(task["report"]).open("a") as report:
        for name, url in task["scenarios"].items():
            complaints.messages.clear()
            began = time.monotonic()
            ok, detail = asyncio.run(_one(scenarios[name], Stage(task, url), task["limit_s"]))
            if ok and complaints.messages:
                ok, detail = False, "; ".join(complaints.messages)[:600]
            seconds = round(time.monotonic() - began, 1)
            line = {"scenario": name, "ok": ok, "detail": detail, "seconds": seconds, "versions": versions}
            report.write(json.dumps(line) + "\n")
            report.flush()


async def _one(scenario: Scenario, stage: Stage, limit_s: float) -> tuple[bool, str]:
    try:
        async with asyncio.timeout(limit_s):
            return True, await scenario(stage)
    except Exception as why:  # noqa: BLE001 - a library's failure of any kind is the result
        where = traceback.extract_tb(why.__traceback__)[-1]
        return False, f"{type(why).__name__} at {Path(where.filename).name}:{where.lineno}: {why}"[:600]
