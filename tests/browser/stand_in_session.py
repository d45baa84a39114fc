"""A scripted partner for the page: speaks enough of the protocol for the page's own rules, and understands nothing.

It hears that somebody speaks (by loudness), writes down what the script says, and answers with the script's words and a
440 Hz tone. What the real server does is tested against the real server.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from aiortc import MediaStreamTrack
from av import AudioFrame

Event = dict[str, Any]  # any JSON object: a stand-in has no types of its own for the wire

RATE_HZ = 48_000
FRAME = 960
LOUD = 600
SPEECH_FRAMES = 4
SILENCE_FRAMES = 30
WORD_S = 0.03
SECRET = "rs_open-sesame"


@dataclass
class Script:
    """What the stand-in says and how it behaves; a test may change it at any time."""

    transcript: str = "what time is it"
    answer: str = "It is a quarter past nine, and the kettle is on."
    tone_s: float = 3.0
    key: str | None = None
    """The only key that is let in; None lets everyone in."""
    refuse_status: int | None = None
    """Answers every call and socket with this HTTP status."""
    has_path: bool = True
    """False answers calls with a description that leads nowhere."""
    fail_reason: str | None = None
    """Lets responses fail with this message."""
    drops_sockets: bool = False
    """Lets no WebSocket in, as a network does that is half there."""
    has_log: bool = True
    """False answers who comes back with a gap: what was missed is gone."""
    may_end: bool = True
    """False keeps an answer open behind its last word until this is true."""
    heard: str | None = None
    """What `conversation.item.retrieve` says was heard of a cut answer."""
    seen: list[Event] = field(default_factory=list)
    """Client events, in order, for tests to look at."""


class ToneTrack(MediaStreamTrack):
    """Silence in real time, and a 440 Hz tone while somebody asked for it."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._sample = 0
        self._started: float | None = None
        self.left = 0
        self.drained: Callable[[], None] = lambda: None

    async def recv(self) -> AudioFrame:
        loop = asyncio.get_running_loop()
        if self._started is None:
            self._started = loop.time()
        await asyncio.sleep(self._started + self._sample / RATE_HZ - loop.time())
        times = np.arange(self._sample, self._sample + FRAME) / RATE_HZ
        tone = np.sin(2 * np.pi * 440 * times) * 2000 if self.left > 0 else np.zeros(FRAME)
        frame = AudioFrame.from_ndarray(tone.astype(np.int16)[np.newaxis, :], format="s16", layout="mono")
        frame.sample_rate = RATE_HZ
        frame.pts = self._sample
        frame.time_base = Fraction(1, RATE_HZ)
        self._sample += FRAME
        if self.left > 0:
            self.left -= 1
            if self.left == 0:
                self.drained()
        return frame


class ScriptedSession:
    """One session with one link: `receive` takes client events, `hear` frames of sound, `send` carries events out."""

    def __init__(self, script: Script, send: Callable[[str], None], track: ToneTrack | None) -> None:
        self._script = script
        self._send = send
        self._track = track
        self._count = 0
        self._last_item: str | None = None
        self._loud = 0
        self._quiet = 0
        self._utterance: str | None = None
        self._answering: asyncio.Task[None] | None = None
        self._answer: tuple[str, str] | None = None
        self._said: dict[str, str] = {}
        self._speech = track is not None
        self._typed_turns = False
        self._told = 0
        self.log: list[str] = []
        self.id = f"sess_{secrets.token_hex(6)}"
        self._tag = self.id.rpartition("_")[2]
        if track is not None:
            track.drained = self._drained

    def begin(
        self,
        send: Callable[[str], None] | None = None,
        after: int | None = None,
        track: ToneTrack | None = None,
    ) -> None:
        """Greets a link, the first or one that comes back; `send` carries events to it from now on, what came behind
        number `after` first. `track` goes on with the sound that the one before has not played."""
        self._send = send or self._send
        session = {"id": self.id, "object": "realtime.session", "type": "realtime"}
        self._tell("session.created", session=session)
        if track is not None and self._track is not None:
            track.left, self._track.left = self._track.left, 0
            self._track, track.drained = track, self._drained
        if after is not None and not self._script.has_log:
            self._tell("chorale.gap", after=after, first=len(self.log) + 1)
        elif after is not None:
            for event in self.log[after:]:
                self._send(event)

    def close(self) -> None:
        if self._answering is not None:
            self._answering.cancel()

    def receive(self, text: str) -> None:
        event: Event = json.loads(text)
        self._script.seen.append(event)
        match event["type"]:
            case "session.update":
                self._update(event["session"])
            case "conversation.item.create":
                self._create(event["item"])
            case "conversation.item.retrieve":
                self._retrieve(event["item_id"])
            case "response.cancel":
                self._cut("client_cancelled")
            case "output_audio_buffer.clear":
                self._clear()

    def hear(self, samples: "np.ndarray[Any, np.dtype[np.int16]]") -> None:
        loudness = float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
        self._loud = self._loud + 1 if loudness > LOUD else 0
        self._quiet = 0 if loudness > LOUD else self._quiet + 1
        if self._utterance is None and self._loud == SPEECH_FRAMES:
            self._utterance = self._new("item")
            self._event("input_audio_buffer.speech_started", item_id=self._utterance, audio_start_ms=0)
            self._cut("turn_detected")
            self._clear()
        elif self._utterance is not None and self._quiet == SILENCE_FRAMES:
            item_id, self._utterance = self._utterance, None
            self._end_utterance(item_id)

    def _update(self, session: Event) -> None:
        self._typed_turns = session.get("chorale", {}).get("typed_turns", self._typed_turns)
        if session.get("output_modalities") == ["text"]:
            self._speech = False
        chorale = {**session.get("chorale", {}), "secret": SECRET}
        self._event("session.updated", session={"id": self.id, **session, "chorale": chorale})

    def _create(self, item: Event) -> None:
        self._item(item | {"status": "completed"})
        if self._typed_turns and item.get("role") == "user":
            self._cut("turn_detected")
            self._clear()
            self._answer_soon()

    def _retrieve(self, item_id: str) -> None:
        said = self._script.heard or self._said.get(item_id, "")
        status = (
            "in_progress" if self._answering and self._answer and self._answer[1] == item_id else "completed"
        )
        content = [{"type": "output_audio", "transcript": said}]
        item = {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}
        self._event("conversation.item.retrieved", item=item)

    def _end_utterance(self, item_id: str) -> None:
        self._event("input_audio_buffer.speech_stopped", item_id=item_id, audio_end_ms=0)
        self._event("input_audio_buffer.committed", item_id=item_id, previous_item_id=self._last_item)
        audio = [{"type": "input_audio", "transcript": None}]
        self._item(
            {"id": item_id, "type": "message", "role": "user", "status": "completed", "content": audio}
        )
        name = "conversation.item.input_audio_transcription"
        for word in self._script.transcript.split():
            self._event(f"{name}.delta", item_id=item_id, content_index=0, delta=f"{word} ")
        said = self._script.transcript
        usage = {"type": "duration", "seconds": 1.0}
        self._event(f"{name}.completed", item_id=item_id, content_index=0, transcript=said, usage=usage)
        self._answer_soon()

    def _answer_soon(self) -> None:
        self._answering = asyncio.get_running_loop().create_task(self._make_answer())

    async def _make_answer(self) -> None:
        response_id, item_id = self._new("resp"), self._new("item")
        self._answer = (response_id, item_id)
        self._event("response.created", response=_response(response_id, "in_progress"))
        if self._script.fail_reason is not None:
            why = {"type": "failed", "error": {"type": "server_error", "message": self._script.fail_reason}}
            self._answer = None
            self._event("response.done", response=_response(response_id, "failed", why))
            return
        item = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        ids = {"response_id": response_id, "output_index": 0}
        self._event("response.output_item.added", item=item, **ids)
        self._event("conversation.item.added", item=item, previous_item_id=self._last_item)
        self._last_item = item_id
        kind = "output_audio_transcript" if self._speech else "output_text"
        if self._speech and self._track is not None:
            self._event("output_audio_buffer.started", response_id=response_id)
            self._track.left = round(self._script.tone_s * RATE_HZ / FRAME)
        for word in self._script.answer.split():
            self._event(f"response.{kind}.delta", item_id=item_id, content_index=0, delta=f"{word} ", **ids)
            self._said[item_id] = f"{self._said.get(item_id, '')}{word} "
            await asyncio.sleep(WORD_S)
        while not self._script.may_end:  # noqa: ASYNC110 - a test sets it, in a thread of its own
            await asyncio.sleep(WORD_S)
        part = "output_audio" if self._speech else "output_text"
        field_name = "transcript" if self._speech else "text"
        done = item | {"status": "completed", "content": [{"type": part, field_name: self._script.answer}]}
        self._event("response.output_item.done", item=done, **ids)
        self._event("conversation.item.done", item=done, previous_item_id=None)
        self._event("response.done", response=_response(response_id, "completed"))
        self._answering = None

    def _cut(self, reason: str) -> None:
        if self._answering is None or self._answer is None:
            return
        self._answering.cancel()
        self._answering = None
        details = {"type": "cancelled", "reason": reason}
        self._event("response.done", response=_response(self._answer[0], "cancelled", details))

    def _clear(self) -> None:
        if self._track is None or self._track.left == 0 or self._answer is None:
            return
        self._track.left = 0
        response_id, item_id = self._answer
        self._event("output_audio_buffer.cleared", response_id=response_id)
        self._event("conversation.item.truncated", item_id=item_id, content_index=0, audio_end_ms=100)

    def _drained(self) -> None:
        if self._answer is not None:
            self._event("output_audio_buffer.stopped", response_id=self._answer[0])

    def _item(self, item: Event) -> None:
        self._event("conversation.item.added", item=item, previous_item_id=self._last_item)
        self._event("conversation.item.done", item=item, previous_item_id=self._last_item)
        self._last_item = item["id"]

    def _event(self, name: str, **fields: object) -> None:
        self.log.append(
            json.dumps({"type": name, "event_id": f"event_{self._tag}_{len(self.log) + 1}", **fields})
        )
        self._send(self.log[-1])

    def _tell(self, name: str, **fields: object) -> None:
        self._told += 1
        self._send(json.dumps({"type": name, "event_id": f"event_{self._tag}_p{self._told}", **fields}))

    def _new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{id(self):x}_{self._count}"


def _response(response_id: str, status: str, details: object = None) -> Event:
    return {
        "id": response_id,
        "object": "realtime.response",
        "status": status,
        "status_details": details,
        "output": [],
    }


def mono(frames: Iterable[AudioFrame]) -> "np.ndarray[Any, np.dtype[np.int16]]":
    """Returns the samples of received frames (s16, packed) as one channel."""
    parts = [frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0] for frame in frames]
    return np.concatenate(parts).astype(np.int16)
