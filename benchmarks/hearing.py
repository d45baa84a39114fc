"""What a conversation made of one clip: server events go in, the words and the reply come out. Nothing here waits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TRANSCRIPTION = "conversation.item.input_audio_transcription."
_FINE = ("completed", "cancelled", "incomplete")
"""Ends of a response that are no failures: a bound on its length makes it incomplete."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one clip. Times are seconds from the end of the clip; None where the thing never came.

    `transcript` joins the final transcripts of all its utterances in their order; `outcome` says in a word what the
    server told the client: reply, words, no words, nothing, or what failed.
    """

    transcript: str
    utterances: int
    reply: str
    outcome: str
    errors: tuple[str, ...]
    transcript_after_s: float | None
    reply_after_s: float | None


@dataclass(slots=True)
class Hearing:
    """Follows the events of one session from the first sound of a clip on."""

    quiet_s: float = 1.5
    patience_s: float = 30.0
    _ended_s: float | None = None
    _speaking: bool = False
    _spoke: bool = False
    _finals: dict[str, str | None] = field(default_factory=dict)
    _failures: list[str] = field(default_factory=list)
    _errors: list[str] = field(default_factory=list)
    _open_responses: set[str] = field(default_factory=set)
    _replies: list[tuple[str, str]] = field(default_factory=list)
    _last_event_s: float = 0.0
    _transcript_s: float | None = None
    _sounding_s: float | None = None

    def receive(self, event: Mapping[str, Any], now_s: float) -> None:
        """Takes one server event in."""
        kind = str(event["type"])
        match kind:
            case "input_audio_buffer.speech_started":
                self._speaking = self._spoke = True
                self._finals.setdefault(event["item_id"], None)
            case "input_audio_buffer.speech_stopped":
                self._speaking = False
            case "input_audio_buffer.committed":
                self._speaking = False
                self._finals.setdefault(event["item_id"], None)
            case "response.created":
                self._open_responses.add(event["response"]["id"])
                self._sounding_s = None
            case "response.output_text.delta" | "output_audio_buffer.started" | "response.output_audio.delta":
                self._sounding_s = now_s if self._sounding_s is None else self._sounding_s
            case "response.done":
                self._end(event["response"])
            case "error":
                self._errors.append(f"{event['error'].get('code')}: {event['error'].get('message')}")
            case _ if kind == _TRANSCRIPTION + "completed":
                self._finals[event["item_id"]] = event["transcript"]
                self._transcript_s = now_s
            case _ if kind == _TRANSCRIPTION + "failed":
                self._finals[event["item_id"]] = ""
                self._failures.append(f"transcription failed: {event['error'].get('code')}")
            case _:
                return
        self._last_event_s = now_s

    def fail(self, why: str) -> None:
        """The connection could not be made, or broke."""
        self._failures.append(why)

    def clip_ended(self, now_s: float) -> None:
        """The clip's last sample was sent; silence follows."""
        self._ended_s = now_s

    def settled(self, now_s: float) -> bool:
        """Nothing more is to be expected: nobody speaks, every utterance has its final transcript, words have their
        reply, and all that for `quiet_s`; or `patience_s` have passed since the clip's end."""
        if self._ended_s is None:
            return False
        pending = (
            self._speaking or self._open_responses or any(text is None for text in self._finals.values())
        )
        unanswered = any(self._finals.values()) and not self._failures and not self._answered
        quiet = now_s - max(self._ended_s, self._last_event_s) >= self.quiet_s
        return (quiet and not pending and not unanswered) or now_s - self._ended_s >= self.patience_s

    @property
    def _answered(self) -> bool:
        return any(status != "cancelled" for status, _ in self._replies)

    def heard(self) -> Heard:
        """Sums up."""
        ended_s = self._ended_s or 0.0
        words = [text.strip() for text in self._finals.values() if text and text.strip()]
        unanswered = sum(text is None for text in self._finals.values())
        failures = (
            self._failures
            + ["transcript missing"] * unanswered
            + ["reply unfinished"] * len(self._open_responses)
        )
        replies = [text for status, text in self._replies if status in ("completed", "incomplete") and text]
        unfit = {status for status, _ in self._replies if status not in _FINE}
        failures += [f"reply {status}" for status in sorted(unfit)]

        def after(moment_s: float | None) -> float | None:
            return None if moment_s is None else round(moment_s - ended_s, 3)

        return Heard(
            transcript=" ".join(words),
            utterances=len(self._finals),
            reply=replies[-1] if replies else "",
            outcome=self._outcome(failures, bool(words), bool(replies)),
            errors=tuple(self._errors),
            transcript_after_s=after(self._transcript_s),
            reply_after_s=after(self._sounding_s) if replies else None,
        )

    def _outcome(self, failures: list[str], words: bool, reply: bool) -> str:
        if self._errors:
            return f"error {self._errors[0].partition(':')[0]}"
        if failures:
            return failures[0]
        if reply:
            return "reply"
        if words:
            return "words"
        return "no words" if self._spoke or self._finals else "nothing"

    def _end(self, response: Mapping[str, Any]) -> None:
        self._open_responses.discard(response["id"])
        parts = [part for item in response["output"] for part in item.get("content", ())]
        text = "".join(part.get("transcript") or part.get("text") or "" for part in parts)
        self._replies.append((response["status"], text.strip()))
