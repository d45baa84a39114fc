"""Server events (protocol reference §5). `event_id` is added when they are encoded (`wire.codec`)."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from orchestrator.wire.items import Item
from orchestrator.wire.session import AudioFormat, Modality, Session


class ServerEvent(Struct, frozen=True, tag_field="type"):
    """Anything the server says."""


class SessionCreated(ServerEvent, frozen=True, tag="session.created"):
    session: Session


class SessionUpdated(ServerEvent, frozen=True, tag="session.updated"):
    session: Session


class ItemAdded(ServerEvent, frozen=True, tag="conversation.item.added"):
    item: Item
    previous_item_id: str | None


class ItemDone(ServerEvent, frozen=True, tag="conversation.item.done"):
    item: Item
    previous_item_id: str | None


class ItemRetrieved(ServerEvent, frozen=True, tag="conversation.item.retrieved"):
    item: Item


class ItemTruncated(ServerEvent, frozen=True, tag="conversation.item.truncated"):
    item_id: str
    content_index: int
    audio_end_ms: int


class ItemDeleted(ServerEvent, frozen=True, tag="conversation.item.deleted"):
    item_id: str


class TranscriptionDelta(ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.delta"):
    item_id: str
    content_index: int
    delta: str


class DurationUsage(Struct, frozen=True, tag_field="type", tag="duration"):
    """What a transcription cost: seconds of sound."""

    seconds: float


class LogProb(Struct, frozen=True):
    """How likely a word was: the natural logarithm of its probability, and its UTF-8."""

    token: str
    logprob: float
    bytes: tuple[int, ...]


class TranscriptionCompleted(
    ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.completed"
):
    item_id: str
    content_index: int
    transcript: str
    usage: DurationUsage
    logprobs: tuple[LogProb, ...] | UnsetType | None = UNSET


class ErrorBody(Struct, frozen=True):
    """Why an item or a response failed."""

    type: str
    message: str
    code: str | UnsetType = UNSET
    param: str | UnsetType = UNSET


class TranscriptionFailed(ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.failed"):
    item_id: str
    content_index: int
    error: ErrorBody


class SpeechStarted(ServerEvent, frozen=True, tag="input_audio_buffer.speech_started"):
    item_id: str
    audio_start_ms: int


class SpeechStopped(ServerEvent, frozen=True, tag="input_audio_buffer.speech_stopped"):
    item_id: str
    audio_end_ms: int


class BufferCommitted(ServerEvent, frozen=True, tag="input_audio_buffer.committed"):
    item_id: str
    previous_item_id: str | None


class BufferCleared(ServerEvent, frozen=True, tag="input_audio_buffer.cleared"):
    pass


class BufferTimedOut(ServerEvent, frozen=True, tag="input_audio_buffer.timeout_triggered"):
    item_id: str
    audio_start_ms: int
    audio_end_ms: int


class StatusDetails(Struct, frozen=True):
    """`type` repeats the response's status."""

    type: Literal["completed", "cancelled", "failed", "incomplete"]
    reason: (
        Literal["turn_detected", "client_cancelled", "max_output_tokens", "content_filter"] | UnsetType
    ) = UNSET
    error: ErrorBody | UnsetType = UNSET


class CachedDetails(Struct, frozen=True):
    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0


class InputTokenDetails(Struct, frozen=True):
    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0
    cached_tokens_details: CachedDetails = CachedDetails()


class OutputTokenDetails(Struct, frozen=True):
    text_tokens: int = 0
    audio_tokens: int = 0


class Usage(Struct, frozen=True):
    """Tokens of one response; zeros where unknown."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    input_token_details: InputTokenDetails = InputTokenDetails()
    output_token_details: OutputTokenDetails = OutputTokenDetails()


class ResponseVoice(Struct, frozen=True):
    format: AudioFormat
    voice: str


class ResponseAudio(Struct, frozen=True):
    output: ResponseVoice


class Response(Struct, frozen=True):
    """One reply of the server, as shown to clients."""

    id: str
    status: Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]
    output_modalities: tuple[Modality, ...]
    max_output_tokens: int | Literal["inf"]
    audio: ResponseAudio
    conversation_id: str | None
    output: tuple[Item, ...] = ()
    status_details: StatusDetails | None = None
    metadata: dict[str, str] | None = None
    usage: Usage | None = None
    object: str = "realtime.response"


class ResponseCreated(ServerEvent, frozen=True, tag="response.created"):
    response: Response


class ResponseDone(ServerEvent, frozen=True, tag="response.done"):
    response: Response


class OutputItemAdded(ServerEvent, frozen=True, tag="response.output_item.added"):
    response_id: str
    output_index: int
    item: Item


class OutputItemDone(ServerEvent, frozen=True, tag="response.output_item.done"):
    response_id: str
    output_index: int
    item: Item


class ShownPart(Struct, frozen=True):
    """A part as content_part events show it: type ``text`` with `text`, or ``audio`` with `transcript`."""

    type: Literal["text", "audio"]
    text: str | UnsetType = UNSET
    transcript: str | UnsetType = UNSET


class InResponse(ServerEvent, frozen=True):
    """Ids that place an event inside a response."""

    response_id: str
    item_id: str
    output_index: int


class InPart(InResponse, frozen=True):
    """Ids that place an event inside a content part."""

    content_index: int


class ContentPartAdded(InPart, frozen=True, tag="response.content_part.added"):
    part: ShownPart


class ContentPartDone(InPart, frozen=True, tag="response.content_part.done"):
    part: ShownPart


class TextDelta(InPart, frozen=True, tag="response.output_text.delta", gc=False):
    delta: str


class TextDone(InPart, frozen=True, tag="response.output_text.done"):
    text: str


class AudioTranscriptDelta(InPart, frozen=True, tag="response.output_audio_transcript.delta", gc=False):
    delta: str


class AudioTranscriptDone(InPart, frozen=True, tag="response.output_audio_transcript.done"):
    transcript: str


class AudioDelta(InPart, frozen=True, tag="response.output_audio.delta"):
    """`delta` is base64 sound in the link's format; made per link, from the log's PCM."""

    delta: str


class AudioDone(InPart, frozen=True, tag="response.output_audio.done"):
    pass


class ArgumentsDelta(InResponse, frozen=True, tag="response.function_call_arguments.delta"):
    call_id: str
    delta: str


class ArgumentsDone(InResponse, frozen=True, tag="response.function_call_arguments.done"):
    call_id: str
    name: str
    arguments: str


class PlayoutStarted(ServerEvent, frozen=True, tag="output_audio_buffer.started"):
    response_id: str


class PlayoutStopped(ServerEvent, frozen=True, tag="output_audio_buffer.stopped"):
    response_id: str


class PlayoutCleared(ServerEvent, frozen=True, tag="output_audio_buffer.cleared"):
    response_id: str


class ErrorDetails(Struct, frozen=True):
    """`event_id` is the offending client event's."""

    type: Literal["invalid_request_error", "server_error", "rate_limit_error", "authentication_error"]
    message: str
    code: str | None = None
    param: str | None = None
    event_id: str | None = None


class Error(ServerEvent, frozen=True, tag="error"):
    error: ErrorDetails


class Slot(Struct, frozen=True):
    """A named value that was understood."""

    name: str
    value: str
    confidence: float


class TokenUnderstood(ServerEvent, frozen=True, tag="chorale.token"):
    """What was understood of a user's item; only for sessions that asked for it (`Extension.events`)."""

    item_id: str
    intent: str | None
    confidence: float
    slots: tuple[Slot, ...]


class Reason(Struct, frozen=True):
    """What a verdict rests on: what was measured, how much, and of what."""

    name: str
    value: float
    about: str


VerdictName = Literal["accept", "suspect", "freeze", "ask", "roll_back"]


class VerdictReached(ServerEvent, frozen=True, tag="chorale.verdict"):
    """What stands about a turn (`unit`); sent again when that changes. `snapshot`: the last unit whose state holds."""

    unit: int
    verdict: VerdictName
    verified: bool
    item_ids: tuple[str, ...]
    snapshot: int
    evidence: tuple[Reason, ...]


class Frozen(ServerEvent, frozen=True, tag="chorale.frozen"):
    """What was said in this turn contradicts itself: nothing of it counts until that is settled."""

    unit: int
    item_ids: tuple[str, ...]
    evidence: tuple[Reason, ...]


class Realigned(ServerEvent, frozen=True, tag="chorale.realigned"):
    """Another text stands for an item than the one that was told."""

    unit: int
    item_id: str
    transcript: str
    previous: str


class Overload(ServerEvent, frozen=True, tag="chorale.overload"):
    """Something of this session was left out because there is too much to do; only for sessions that asked for it.
    `reason` and `kind` as in `scheduling.work.Failed.reason` and `Job.kind`."""

    reason: str
    kind: str
    retry_after_s: float
    response_id: str | None = None
    item_id: str | None = None


class Gap(ServerEvent, frozen=True, tag="chorale.gap"):
    """Private: what was numbered above `after` and below `first` is no longer held and will not be sent."""

    after: int
    first: int


class RateLimit(Struct, frozen=True):
    """What may still be used of one limit, and when all of it may be used again."""

    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_seconds: float


class RateLimitsUpdated(ServerEvent, frozen=True, tag="rate_limits.updated"):
    rate_limits: tuple[RateLimit, ...]


class RolledBack(ServerEvent, frozen=True, tag="chorale.rolled_back"):
    """The tokens of this turn have left, and the state is the one behind turn `to` again. Its texts stay."""

    unit: int
    to: int
    item_ids: tuple[str, ...]
    evidence: tuple[Reason, ...]
