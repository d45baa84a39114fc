"""A real server with worker processes: killed while it writes, its recordings are read and replay."""

import base64
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from websockets.sync.client import connect

from orchestrator.recording.journal import load
from orchestrator.recording.replay import replay
from orchestrator.settings import load as load_settings
from orchestrator.settings.parts import registry_settings

ROLES = ("ASR", "UNDERSTAND", "LLM", "SPEECH")
SCRIPTED = {f"CHORALE_WORKERS__{role}__ENGINE": "scripted" for role in ROLES}
CHORALE = str(Path(sys.executable).with_name("chorale"))


@contextmanager
def serving(
    folder: Path, before: Callable[[], None] | None = None
) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """Yields a server that records everyone, and where it listens; it is killed at the end if it still runs."""
    with (folder.parent / "log").open("w") as log:
        process = subprocess.Popen(
            [CHORALE, "serve", "--port", "0", "--record", str(folder)],
            env={**os.environ, **SCRIPTED, "CHORALE_LOGGING__FORMAT": "json"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=before,
        )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert "ready" in ready, (folder.parent / "log").read_text()
        yield process, ready.split()[-1].replace("http://", "ws://") + "/v1/realtime?model=chorale"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def ask(socket: Any, text: str) -> None:
    """Types a message and waits for its answer."""
    part = {"type": "input_text", "text": text}
    item = {"type": "message", "role": "user", "content": [part]}
    socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
    socket.send(json.dumps({"type": "response.create"}))
    while json.loads(socket.recv(timeout=60))["type"] != "response.done":
        pass


def speak(socket: Any) -> None:
    """Sends a second of sound."""
    sound = np.random.default_rng(1).integers(-9_000, 9_000, 24_000).astype("<i2")
    for start in range(0, 24_000, 2_400):
        audio = base64.b64encode(sound[start : start + 2_400].tobytes()).decode()
        socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))


def rules() -> Any:
    return registry_settings(load_settings(None, SCRIPTED)).rules


def test_a_server_that_is_killed_leaves_recordings_that_replay(tmp_path: Path) -> None:
    """SIGKILL in the middle of an answer: everything that the client was answered before is in the recording, at most
    its last line is torn, and what is there replays equal; the verb says so, too."""
    folder = tmp_path / "recordings"
    with serving(folder) as (process, url), connect(url) as socket:
        socket.send(
            json.dumps(
                {"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}}
            )
        )
        for number in range(5):
            ask(socket, f"Question {number}")
        speak(socket)
        ask(socket, "One more")
        socket.send(json.dumps({"type": "response.create"}))
        process.send_signal(signal.SIGKILL)
        process.wait()
    (path,) = folder.glob("*.jsonl")
    journal = load(path)
    replayed = replay(journal, rules())
    assert replayed.is_equal, replayed.differences
    assert journal.end is None
    assert b"Question 4" in path.read_bytes()
    verb = subprocess.run(
        [CHORALE, "replay", str(folder), "--json"],
        env={**os.environ, **SCRIPTED},
        capture_output=True,
        text=True,
        check=False,
    )
    assert verb.returncode == 0, verb.stdout + verb.stderr
    assert json.loads(verb.stdout)["equal"] is True
    assert json.loads(verb.stdout)["note"].startswith("cut off")


def test_a_disk_without_room_stops_the_recording_and_not_the_session(tmp_path: Path) -> None:
    """The system refuses to let the file grow: the server warns, the client is answered as before, and what was
    written until then replays."""
    folder = tmp_path / "recordings"
    most = 40_000

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    with serving(folder, limit) as (process, url), connect(url) as socket:
        socket.send(
            json.dumps(
                {"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}}
            )
        )
        for number in range(20):
            ask(socket, f"Question {number}")
        socket.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert "recording stopped, the session goes on" in (tmp_path / "log").read_text()
    (path,) = folder.glob("*.jsonl")
    assert path.stat().st_size <= most
    journal = load(path)
    replayed = replay(journal, rules())
    assert replayed.is_equal
    assert replayed.steps > 20
    assert not journal.torn
