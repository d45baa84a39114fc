"""One response from `response.created` to `response.done`: which events it sends, what of it was heard.

The order of events is the protocol's (reference §6). A run knows nothing of the conversation or of turns; the session
asks it for events and carries its items into the conversation. `done` comes exactly once, whatever happens.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from msgspec import UNSET, UnsetType, structs

from modalities.text.heard import Segment, heard_prefix
from modalities.text.sentences import Sentence, SentenceStream
from orchestrator.ids import IdSequence
from orchestrator.scheduling.work import LimitLeft, Replied, Reply, Speak
from orchestrator.sessions.figures import TurnTimes
from orchestrator.sessions.function_calls import FunctionCalls
from orchestrator.wire import server as wire
from orchestrator.wire.client import ResponseParams
from orchestrator.wire.items import OBJECT, FunctionCall, Item, ItemStatus, Message, OutputAudio, OutputText
from orchestrator.wire.session import AudioFormat

OUTPUT_RATE_HZ = 24_000
"""Rate of sound on its way out: the log, `response.output_audio.delta` and playout."""

_US_PER_CHARACTER = 60_000
"""How long a character sounds, about."""

DoneStatus = Literal["completed", "cancelled", "failed", "incomplete"]
DoneReason = Literal["turn_detected", "client_cancelled", "max_output_tokens"]


@dataclass(slots=True)
class Spoken:
    """A sentence on its way to sound: characters [start, stop) of the message, `samples` made so far."""

    job_id: str
    start: int
    stop: int
    samples: int = 0
    complete: bool = False


@dataclass(frozen=True, slots=True)
class ResponseShape:
    """What the client asked of this response."""

    modality: Literal["audio", "text"]
    max_output_tokens: int | Literal["inf"]
    format: AudioFormat
    voice: str
    metadata: dict[str, str] | None
    conversation_id: str | None
    parallel: bool = True
    """Whether several functions may be called."""


class ResponseRun:
    """The life of one response. Methods return the events to send, in order; none may be called after `end`."""

    def __init__(self, ids: IdSequence, shape: ResponseShape, turn_id: int, automatic: bool = False) -> None:
        self.id = ids.take("resp")
        self.shape = shape
        self.turn_id = turn_id
        self.automatic = automatic
        self.reply_job: str | None = None
        self.params = ResponseParams()
        self.asked_us = 0
        self.done = False
        self.written = False
        self.final_status: DoneStatus | None = None
        self.sent_samples = 0
        self.played_samples: int | None = None
        self.first_sound_us: int | None = None
        self.times: TurnTimes | None = None
        """Until they are noted, where it answers a spoken turn."""
        self.unspoken: deque[Sentence] = deque()
        self.spoken: list[Spoken] = []
        self.is_truncated = False
        """The client has said what of the message was heard: nothing is estimated any more."""
        self.guesses: dict[str, Reply | Speak] = {}
        """Its jobs that were begun before anybody had asked for them."""
        self.is_told = False
        """The client knows that sentences are left without sound: of one response's the first is told."""
        self.message: Message | None = None
        self.message_index = 0
        self._ids = ids
        self._sentences = SentenceStream()
        self._text: list[str] = []
        self._length = 0
        self._delivered: list[tuple[int, int]] = []
        self._items: list[Item] = []
        self._calls = FunctionCalls(ids, self.id, self._items, shape.parallel)
        self._usage = wire.Usage()
        self.limits: tuple[LimitLeft, ...] = ()
        """What may still be used, as of the end of its text."""

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def in_conversation(self) -> bool:
        return self.shape.conversation_id is not None

    @property
    def message_id(self) -> str | None:
        return str(self.message.id) if self.message is not None else None

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def produced_ms(self) -> int:
        """Sound made for its message so far, in whole milliseconds, rounded up."""
        return -(-self.sent_samples * 1_000 // OUTPUT_RATE_HZ)

    @property
    def speaking(self) -> bool:
        """Whether a sentence is still on its way to sound."""
        return bool(self.unspoken) or self.open_sentences > 0

    @property
    def open_sentences(self) -> int:
        """How many sentences are being made into sound."""
        return sum(not s.complete for s in self.spoken)

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """The calls that were announced."""
        return tuple(i for i in self._items if isinstance(i, FunctionCall) and i.status == "completed")

    @property
    def is_whole(self) -> bool:
        """Whether it ended by itself, with what the model had to say."""
        return self.done and self.final_status in ("completed", "incomplete")

    def snapshot(self, status: wire.StatusDetails | None = None) -> wire.Response:
        """Returns the response as clients see it now."""
        return wire.Response(
            id=self.id,
            status="in_progress" if status is None else status.type,
            output_modalities=(self.shape.modality,),
            max_output_tokens=self.shape.max_output_tokens,
            audio=wire.ResponseAudio(wire.ResponseVoice(self.shape.format, self.shape.voice)),
            conversation_id=self.shape.conversation_id,
            output=tuple(self._items),
            status_details=status,
            metadata=self.shape.metadata,
            usage=None if status is None else self._usage,
        )

    # -- how it grows -----------------------------------------------------------------------------------------------

    def begin(self) -> list[wire.ServerEvent]:
        return [wire.ResponseCreated(self.snapshot())]

    def open_message(self) -> Message:
        """Makes the message item; the session puts it into the conversation before its first delta is sent."""
        self.message = Message(
            role="assistant",
            content=(),
            id=self._ids.take("item"),
            object=OBJECT,
            status="in_progress",
        )
        self.message_index = len(self._items)
        self._items.append(self.message)
        return self.message

    def message_opened(self) -> list[wire.ServerEvent]:
        """Returns the part's opening, to be sent behind the item's own events."""
        part = (
            wire.ShownPart("audio", transcript="")
            if self.shape.modality == "audio"
            else wire.ShownPart("text", text="")
        )
        return [wire.ContentPartAdded(self.id, self._message_id(), self.message_index, 0, part)]

    def add_text(self, text: str, now: int) -> tuple[wire.ServerEvent, tuple[Sentence, ...]]:
        """Takes more text; returns its event and the sentences that are now complete (audio only)."""
        self._text.append(text)
        self._length += len(text)
        if self.shape.modality == "text":
            self._delivered.append((now, self._length))
            return wire.TextDelta(self.id, self._message_id(), self.message_index, 0, text), ()
        return (
            wire.AudioTranscriptDelta(self.id, self._message_id(), self.message_index, 0, text),
            self._sentences.feed(text),
        )

    def close_text(self) -> tuple[Sentence, ...]:
        """The model has written everything: returns the sentences that were still open."""
        self.written = True
        if self.message is None or self.shape.modality == "text":
            return ()
        return self._sentences.close()

    def takes_call(self, index: int) -> bool:
        """Whether it makes call `index` of the reply: without parallel calls only the first."""
        return self._calls.takes(index)

    def open_call(self, index: int, name: str) -> FunctionCall:
        """Makes the item of tool call `index`."""
        return self._calls.open(index, name)

    def has_call(self, index: int) -> bool:
        return self._calls.has(index)

    def output_index(self, item: Item) -> int:
        return next(i for i, known in enumerate(self._items) if known.id == item.id)

    def add_arguments(self, index: int, arguments: str) -> list[wire.ServerEvent]:
        return self._calls.add(index, arguments)

    def add_sound(self, job_id: str, samples: int, now: int) -> bool:
        """Books sound of a sentence; False where the sentence is not this response's."""
        for sentence in self.spoken:
            if sentence.job_id == job_id:
                sentence.samples += samples
                self.sent_samples += samples
                if self.first_sound_us is None:
                    self.first_sound_us = now
                return True
        return False

    def spoke(self, job_id: str) -> None:
        for sentence in self.spoken:
            if sentence.job_id == job_id:
                sentence.complete = True

    def stays_text(self, job_id: str) -> None:
        """No more sound of a sentence comes. One that has none counts no more for how sound and text go together."""
        self.spoke(job_id)
        self.spoken = [one for one in self.spoken if one.samples or one.job_id != job_id]

    def count(self, report: Replied) -> None:
        """Books what the model used, and what its tenant may still use."""
        self.limits = report.limits
        self._usage = wire.Usage(
            total_tokens=report.input_tokens + report.output_tokens,
            input_tokens=report.input_tokens,
            output_tokens=report.output_tokens,
            input_token_details=wire.InputTokenDetails(
                text_tokens=report.input_tokens,
                cached_tokens=report.cached_tokens,
                cached_tokens_details=wire.CachedDetails(text_tokens=report.cached_tokens),
            ),
            output_token_details=wire.OutputTokenDetails(text_tokens=report.output_tokens),
        )

    # -- how it ends ------------------------------------------------------------------------------------------------

    def close_items(self, status: ItemStatus) -> list[tuple[list[wire.ServerEvent], Item]]:
        """Closes parts and items that are open; returns for each its ``…done`` events and its final state.

        The session sends ``response.output_item.done`` and ``conversation.item.done`` behind each.
        """
        closed: list[tuple[list[wire.ServerEvent], Item]] = []
        if self.message is not None and self.message.status == "in_progress":
            events = self._close_message(status)
            closed.append((events, self.message))
        return [*closed, *self._calls.close(status)]

    def end(
        self,
        status: DoneStatus,
        reason: DoneReason | UnsetType = UNSET,
        error: wire.ErrorBody | UnsetType = UNSET,
    ) -> list[wire.ServerEvent]:
        """Returns the one ``response.done``."""
        self.done = True
        self.final_status = status
        return [wire.ResponseDone(self.snapshot(wire.StatusDetails(status, reason, error)))]

    # -- what was heard ---------------------------------------------------------------------------------------------

    def heard(self, now: int, text_grace_us: int) -> str:
        """Returns the prefix of the message that has reached the user (design §5.7).

        Sound: what the call's track played, else min(sent, elapsed). Text: what was delivered more than
        `text_grace_us` ago.
        """
        if self.shape.modality == "text":
            length = 0
            for at, upto in self._delivered:
                if now - at > text_grace_us:
                    length = upto
            return self.text[:length]
        return self.heard_until(self.heard_samples(now))

    def heard_samples(self, now: int) -> int:
        if self.played_samples is not None:
            return min(self.played_samples, self.sent_samples)
        if self.first_sound_us is None:
            return 0
        elapsed = (now - self.first_sound_us) * OUTPUT_RATE_HZ // 1_000_000
        return min(self.sent_samples, max(0, elapsed))

    def heard_by_us(self, now: int) -> int:
        """Returns when all of its sound will have been heard; on a call the track tells, and this is `now`."""
        if self.first_sound_us is None or self.played_samples is not None:
            return now
        return max(now, self.first_sound_us + self.sent_samples * 1_000_000 // OUTPUT_RATE_HZ)

    def sound_in_hand_us(self, now: int) -> int:
        """Returns for how long the user has something to hear, with what is being made of the sentences before."""
        coming_us = sum(
            max(0, (s.stop - s.start) * _US_PER_CHARACTER - s.samples * 1_000_000 // OUTPUT_RATE_HZ)
            for s in self.spoken
            if not s.complete
        )
        return (self.sent_samples - self.heard_samples(now)) * 1_000_000 // OUTPUT_RATE_HZ + coming_us

    def heard_until(self, samples: int) -> str:
        """Returns the words that `samples` of sound hold: exact by sentence, in proportion inside one.

        All of the sound holds all of the text, with what has no sound (a smiley, markup).
        """
        if self.written and not self.speaking and samples >= self.sent_samples:
            return self.text
        segments = [Segment(s.start, s.stop, s.samples, s.complete) for s in self.spoken]
        return heard_prefix(self.text, segments, samples)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _message_id(self) -> str:
        assert self.message is not None
        return str(self.message.id)

    def _close_message(self, status: ItemStatus) -> list[wire.ServerEvent]:
        assert self.message is not None
        item_id, at = self._message_id(), self.message_index
        text = self.text
        events: list[wire.ServerEvent]
        part: OutputAudio | OutputText
        if self.shape.modality == "audio":
            part = OutputAudio(transcript=text)
            events = [
                wire.AudioDone(self.id, item_id, at, 0),
                wire.AudioTranscriptDone(self.id, item_id, at, 0, text),
                wire.ContentPartDone(self.id, item_id, at, 0, wire.ShownPart("audio", transcript=text)),
            ]
        else:
            part = OutputText(text)
            events = [
                wire.TextDone(self.id, item_id, at, 0, text),
                wire.ContentPartDone(self.id, item_id, at, 0, wire.ShownPart("text", text=text)),
            ]
        self.message = structs.replace(self.message, content=(part,), status=status)
        self._items[at] = self.message
        return events
