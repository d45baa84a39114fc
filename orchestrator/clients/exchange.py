"""What a client knows of a conversation from the server's events: who speaks, what was said, whether a reply is due."""

from dataclasses import dataclass

from orchestrator.clients.address import Event

SOUND_WITHIN_S = 5.0
"""A spoken reply whose sound has not begun this long after its end is taken for text only."""

SIGN_WITHIN_S = 15.0
"""A recording after which the server gives no sign for so long was not understood as speech."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """What the server has understood of an utterance so far."""

    text: str


@dataclass(frozen=True, slots=True)
class Understood:
    """The transcript of an utterance."""

    text: str


@dataclass(frozen=True, slots=True)
class Answering:
    """More of a reply's words; `first`: the reply begins."""

    text: str
    first: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply is over; `note` says how, unless it was simply complete."""

    note: str | None


@dataclass(frozen=True, slots=True)
class Noticed:
    """Anything else worth a line."""

    text: str


News = Hearing | Understood | Answering | Answered | Noticed

_TEXT = ("response.output_text.delta", "response.output_audio_transcript.delta")
_PLAYED = ("output_audio_buffer.stopped", "output_audio_buffer.cleared")


class Exchange:
    """Follows the events of one connection. `plays`: it is a call, whose replies end when their sound has been played.

    `failure` is set by the first error: it is always an answer to something that this client sent.
    """

    def __init__(self, plays: bool) -> None:
        self._plays = plays
        self._speaking = False
        self._owed = False
        self._active: set[str] = set()
        self._sounding: dict[str, float | None] = {}
        self._playing: set[str] = set()
        self._partial: dict[str, str] = {}
        self._begun: set[str] = set()
        self._any_sign = False
        self.replies = 0
        self.failure: str | None = None

    def expect_reply(self) -> None:
        """Something was said that is to be answered."""
        self._owed = True

    def is_settled(self, now_s: float) -> bool:
        """Tells whether everything said so far was answered, and the answer is over."""
        for response_id, done_s in self._sounding.items():
            if response_id not in self._playing and (done_s is None or now_s - done_s < SOUND_WITHIN_S):
                return False
        return not (self._speaking or self._owed or self._active or self._playing)

    def is_deaf(self, sent_s: float, now_s: float) -> bool:
        """Tells whether the server gave no sign of having heard what was sent until `sent_s`."""
        return not self._any_sign and now_s - sent_s > SIGN_WITHIN_S

    def receive(self, event: Event, now_s: float) -> list[News]:
        """Takes an event in; returns what is new in it for a person."""
        kind = event.get("type", "")
        if kind in _TEXT:
            return [self._answering(event)]
        if kind in _PLAYED:
            self._playing.discard(event["response_id"])
            self._sounding.pop(event["response_id"], None)
            return [Noticed("interrupted")] if kind == "output_audio_buffer.cleared" else []
        match kind:
            case "input_audio_buffer.speech_started":
                self._speaking = self._any_sign = True
            case "input_audio_buffer.speech_stopped":
                self._speaking = False
            case "input_audio_buffer.committed":
                self._speaking, self._owed, self._any_sign = False, True, True
            case "conversation.item.input_audio_transcription.delta":
                text = self._partial.get(event["item_id"], "") + event["delta"]
                self._partial[event["item_id"]] = text
                return [Hearing(text.strip())]
            case "conversation.item.input_audio_transcription.completed":
                self._partial.pop(event["item_id"], None)
                return [Understood(event["transcript"].strip())]
            case "conversation.item.input_audio_transcription.failed":
                return [Noticed(f"not understood: {event['error'].get('message', '')}")]
            case "response.created":
                self._active.add(event["response"]["id"])
                self._owed, self._any_sign = False, True
            case "response.content_part.added" if self._plays and event["part"]["type"] == "audio":
                self._sounding[event["response_id"]] = None
            case "output_audio_buffer.started":
                self._playing.add(event["response_id"])
            case "response.done":
                return self._done(event["response"], now_s)
            case "error":
                self.failure = self.failure or event["error"]["message"]
            case _:
                pass
        return []

    def _answering(self, event: Event) -> News:
        first = event["response_id"] not in self._begun
        self._begun.add(event["response_id"])
        return Answering(event["delta"], first)

    def _done(self, response: Event, now_s: float) -> list[News]:
        response_id, status = response["id"], response["status"]
        self._active.discard(response_id)
        if response_id in self._sounding:
            self._sounding[response_id] = now_s
        details = response.get("status_details") or {}
        if status == "completed":
            self.replies += 1
            return [Answered(None)]
        if status == "cancelled":
            self._sounding.pop(response_id, None)
            self._owed = self._owed or details.get("reason") == "turn_detected"
            return [Answered("taken back")]
        if status == "failed":
            error = details.get("error") or {}
            self.failure = self.failure or f"the reply failed: {error.get('message') or error.get('code')}"
            return [Answered("failed")]
        self.replies += 1
        return [Answered(f"cut short: {details.get('reason', status)}")]
