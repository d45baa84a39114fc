"""One spoken question and what became of it: events and sound go in, the stages come out. Nothing waits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modalities.text.sentences import SentenceStream

STAGES = ("end of turn", "transcript", "first token", "first sentence", "speech made", "first sound")
"""Moments of a turn in their order; each stage lasts from the moment before (the first: from the end of speech)."""

_MOMENTS = {
    "input_audio_buffer.speech_stopped": "end of turn",
    "conversation.item.input_audio_transcription.completed": "transcript",
    "response.output_audio_transcript.delta": "first token",
    "sentence": "first sentence",
    "output_audio_buffer.started": "speech made",
    "response.output_audio.delta": "speech made",
}
QUIET_S = 1.0
"""A reply whose sound has paused for so long after its end is over."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one question. `moments_ms` are from the end of its speech, by name of the stage that they end.

    `sound_ms` is None where no sound came. `early_end`: the server took the turn for ended before it was.
    """

    sound_ms: float | None
    moments_ms: Mapping[str, float]
    transcript: str
    reply: str
    early_end: bool
    failure: str = ""

    def stages_ms(self) -> dict[str, float]:
        """Returns how long each stage lasted; what came out of order (made ahead) lasted nothing."""
        lasted: dict[str, float] = {}
        before = 0.0
        for stage in STAGES:
            if stage in self.moments_ms:
                at = max(before, self.moments_ms[stage])
                lasted[stage] = at - before
                before = at
        return lasted


@dataclass(slots=True)
class TurnWatch:
    """Follows one question from its first sound on. Times are seconds of one clock.

    A reply that is taken back, and speech that goes on, make the moments begin anew.
    """

    patience_s: float = 20.0
    _ended_s: float | None = None
    _at: dict[str, float] = field(default_factory=dict)
    _sound_s: float | None = None
    _playing_until_s: float = 0.0
    _transcript: str = ""
    _reply: str = ""
    _sentences: SentenceStream = field(default_factory=SentenceStream)
    _written_s: float = 0.0
    _open: int = 0
    _done: bool = False
    _stopped_s: list[float] = field(default_factory=list)
    _failure: str = ""

    def receive(self, event: Mapping[str, Any], at_s: float) -> None:
        """Takes an event of the server in: of the Realtime protocol, or a step that a peer tells (`sentence`)."""
        kind = str(event["type"])
        match kind:
            case "input_audio_buffer.speech_started":
                self._at.clear()
                self._sound_s = None
            case "input_audio_buffer.speech_stopped":
                self._stopped_s.append(at_s)
            case "response.created":
                self._begin_reply()
                self._open += 1
            case "response.done":
                self._end_reply(event)
            case "response.output_audio_transcript.delta":
                self._write(str(event.get("delta", event.get("text", ""))), at_s)
            case "conversation.item.input_audio_transcription.completed":
                self._transcript = str(event.get("transcript", event.get("text", "")))
            case "conversation.item.input_audio_transcription.failed" | "error":
                self._failure = self._failure or f"{kind}: {event.get('error')}"
            case _:
                pass
        moment = _MOMENTS.get(kind)
        if moment is not None:
            self._at.setdefault(moment, at_s)

    def heard(self, at_s: float, duration_s: float) -> None:
        """Sound of a reply arrived that lasts so long."""
        if self._ended_s is None or at_s < self._ended_s:
            return
        if self._sound_s is None:
            self._sound_s = at_s
        self._playing_until_s = max(self._playing_until_s, at_s) + duration_s

    def speech_ended(self, at_s: float) -> None:
        """The question's last sound was sent."""
        self._ended_s = at_s

    def fail(self, why: str) -> None:
        """The connection broke."""
        self._failure = self._failure or why

    def settled(self, now_s: float) -> bool:
        """The reply is over, or nothing is to be waited for any more."""
        if self._failure:
            return True
        if self._ended_s is None:
            return False
        if self._sound_s is None:
            return now_s - self._ended_s >= self.patience_s
        over = self._done and self._open <= 0 and now_s - self._playing_until_s >= QUIET_S
        return over or now_s - self._ended_s >= 3 * self.patience_s

    def turn(self) -> Turn:
        """Sums up."""
        ended_s = self._ended_s or 0.0

        def since(at_s: float) -> float:
            return round((at_s - ended_s) * 1000, 1)

        moments = {stage: since(self._at[stage]) for stage in STAGES if stage in self._at}
        sound = None if self._sound_s is None else since(self._sound_s)
        if sound is not None:
            moments["first sound"] = sound
        early = any(at_s < ended_s for at_s in self._stopped_s)
        return Turn(sound, moments, self._transcript.strip(), self._reply.strip(), early, self._failure)

    def _begin_reply(self) -> None:
        for moment in ("first token", "first sentence", "speech made"):
            self._at.pop(moment, None)
        self._sentences = SentenceStream()
        self._reply = ""

    def _end_reply(self, event: Mapping[str, Any]) -> None:
        self._open -= 1
        response = event.get("response", {})
        status = response.get("status", "completed")
        if status == "cancelled":
            return
        self._done = True
        if self._reply and self._sentences.close():
            # A reply of one sentence: it was complete with the last text before its sound.
            self._at.setdefault("first sentence", self._written_s)
        if status == "failed":
            self._failure = self._failure or f"reply failed: {response.get('status_details')}"

    def _write(self, text: str, at_s: float) -> None:
        if "speech made" not in self._at:
            self._written_s = at_s
        self._reply += text
        if self._sentences.feed(text):
            self._at.setdefault("first sentence", at_s)


def quantile_ms(times_ms: Sequence[float | None], share: float) -> float | None:
    """Returns the time that such a share of turns kept (nearest rank); None where the turn of that rank had no answer.

    Unanswered turns count as endless: they cannot make a server look fast.
    """
    ordered = sorted(math.inf if time is None else time for time in times_ms)
    if not ordered:
        return None
    found = ordered[max(0, math.ceil(share * len(ordered)) - 1)]
    return None if math.isinf(found) else found
