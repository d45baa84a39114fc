"""Plays recordings to a server, several at a time, and keeps what came of each."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from benchmarks.hearing import Heard
from benchmarks.judging import Played
from benchmarks.recordings import Recording
from orchestrator.clients.recording import NotSound, Samples, read_recording

LEAST_SPEECH_S = 0.2
"""A file with less is one in which nobody speaks."""


class Journal:
    """Keeps what was played, one JSON line each, so that a run that broke off can go on."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            path.write_text("")

    def read(self) -> dict[str, Played]:
        """Returns what was played before, by name."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return {played.name: played for played in map(_restored, lines)}

    def add(self, played: Played) -> None:
        """Adds one."""
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(played)) + "\n")


class Doors(Protocol):
    """How recordings reach the server; `benchmarks.calling.Doors` is the real way."""

    async def play(self, sound: Samples) -> tuple[Heard, bool]:
        """Says 48 kHz sound in a call; returns what became of it and whether the session still answers."""
        ...

    async def push(self, raw: bytes) -> tuple[Heard, bool]:
        """Sends bytes as if they were sound."""
        ...


async def play_all(
    recordings: Iterable[Recording], doors: Doors, calls: int, done: Callable[[Played], None]
) -> None:
    """Plays every recording, `calls` at a time; `done` sees each as it ends."""
    waiting = iter(recordings)

    async def caller() -> None:
        for recording in waiting:
            done(await _play(recording, doors))

    async with asyncio.TaskGroup() as group:
        for _ in range(calls):
            group.create_task(caller())


async def _play(recording: Recording, doors: Doors) -> Played:
    refused = None
    try:
        sound = await asyncio.to_thread(read_recording, recording.path)
        if not len(sound):
            raise NotSound(f"{recording.name} holds no samples")
    except NotSound as error:
        refused = str(error)
        heard, alive = await doors.push(recording.path.read_bytes())
    else:
        heard, alive = await doors.play(sound)
    has_speech = recording.speech_s >= LEAST_SPEECH_S
    return Played(recording.name, recording.category, has_speech, heard, alive, refused)


def _restored(line: str) -> Played:
    fields = json.loads(line)
    heard = fields.pop("heard")
    return Played(heard=Heard(**{**heard, "errors": tuple(heard["errors"])}), **fields)
