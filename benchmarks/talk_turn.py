"""One turn of `talk`: asked over a socket, timed by its events; and the memory that it leaves the server with."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.outcome import Row
from orchestrator.clients.text_socket import RealtimeSocket

_WORKER = "chorale-"
_OPENINGS = ("response.output_audio_transcript.delta", "response.output_text.delta")


@dataclass(frozen=True, slots=True)
class Answer:
    """Times in ms from the question's end; the times of what never came are that of the response's end."""

    status: str
    first_text_ms: float
    first_sound_ms: float
    done_ms: float
    input_tokens: int
    cached_tokens: int
    output_tokens: int

    @property
    def new_tokens(self) -> int:
        return self.input_tokens - self.cached_tokens


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn, when it was asked, what the server's processes hold behind it, and the server's own processor time for it
    (models apart)."""

    number: int
    at_s: float
    answer: Answer
    memory_mib: Mapping[str, float]
    server_cpu_ms: float

    def row(self) -> Row:
        answer = self.answer
        return {
            "turn": self.number,
            "at_s": round(self.at_s, 1),
            "status": answer.status,
            "first_text_ms": round(answer.first_text_ms),
            "first_sound_ms": round(answer.first_sound_ms),
            "done_ms": round(answer.done_ms),
            "input_tokens": answer.input_tokens,
            "cached_tokens": answer.cached_tokens,
            "output_tokens": answer.output_tokens,
            "server_cpu_ms": round(self.server_cpu_ms),
            **{f"{name}_mib": round(mib, 1) for name, mib in self.memory_mib.items()},
        }


class Talker:
    """A push-to-talk client of one session."""

    def __init__(self, socket: RealtimeSocket, spoken: bool) -> None:
        self._socket = socket
        self._spoken = spoken

    async def begin(self) -> None:
        """Waits for the session and sets it up."""
        audio = {"input": {"transcription": {"model": "default"}, "turn_detection": None}}
        await self._socket.send({"type": "session.update", "session": {"type": "realtime", "audio": audio}})
        while (await self._socket.receive())["type"] != "session.updated":
            pass

    async def ask(self, question: str) -> Answer:
        """Asks, and waits until the response has ended. Raises `CallFailed` if the connection ends."""
        if self._spoken:
            await self._socket.send({"type": "input_audio_buffer.append", "audio": question})
            await self._socket.send({"type": "input_audio_buffer.commit"})
        else:
            content = [{"type": "input_text", "text": question}]
            item = {"type": "message", "role": "user", "content": content}
            await self._socket.send({"type": "conversation.item.create", "item": item})
        await self._socket.send({"type": "response.create"})
        began_s = time.monotonic()
        first: dict[str, float] = {}
        while (event := await self._socket.receive())["type"] != "response.done":
            first.setdefault(event["type"], (time.monotonic() - began_s) * 1_000)
        done_ms = (time.monotonic() - began_s) * 1_000
        response: dict[str, Any] = event["response"]
        usage = response["usage"] or {}
        return Answer(
            status=response["status"],
            first_text_ms=min((first[name] for name in _OPENINGS if name in first), default=done_ms),
            first_sound_ms=first.get("response.output_audio.delta", done_ms),
            done_ms=done_ms,
            input_tokens=usage.get("input_tokens", 0),
            cached_tokens=usage.get("input_token_details", {}).get("cached_tokens", 0),
            output_tokens=usage.get("output_tokens", 0),
        )


def memory_mib(server: int) -> dict[str, float]:
    """Returns the resident memory of the server and its workers by kind, from /proc; {} where there is none."""
    found: dict[str, float] = {}
    for stat in sorted(Path("/proc").glob("[0-9]*/stat")):
        try:
            before, _, after = stat.read_text().rpartition(")")
        except OSError:  # it has just ended
            continue
        fields, name = after.split(), before.partition("(")[2]
        is_server = stat.parent.name == str(server)
        if is_server or (int(fields[1]) == server and name.startswith(_WORKER)):
            kind = "server" if is_server else name.removeprefix(_WORKER)
            mib = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
            found[kind] = found.get(kind, 0.0) + mib
    return found
