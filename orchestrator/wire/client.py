"""Client events (protocol reference §4), as the hearts see them: validated, with UNSET for what was not sent."""

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from orchestrator.wire.items import Item
from orchestrator.wire.session import AudioFormat, FunctionTool, Modality, Reasoning, ToolChoice


class ClientEvent(Struct, frozen=True, tag_field="type", kw_only=True):
    """Anything a client says. `event_id` is echoed only in errors."""

    event_id: str | None = None


class UpdateSession(ClientEvent, frozen=True, tag="session.update"):
    """`session` is the raw partial object; `wire.update.merge` validates and applies it."""

    session: Raw


class AppendAudio(ClientEvent, frozen=True, tag="input_audio_buffer.append"):
    """Base64 sound. Doors decode it and write it to the session's ring: hearts never see this one."""

    audio: str


class CommitAudio(ClientEvent, frozen=True, tag="input_audio_buffer.commit"):
    pass


class ClearAudio(ClientEvent, frozen=True, tag="input_audio_buffer.clear"):
    pass


class CreateItem(ClientEvent, frozen=True, tag="conversation.item.create"):
    item: Item
    previous_item_id: str | None = None


class RetrieveItem(ClientEvent, frozen=True, tag="conversation.item.retrieve"):
    item_id: str


class TruncateItem(ClientEvent, frozen=True, tag="conversation.item.truncate"):
    item_id: str
    audio_end_ms: int
    content_index: int = 0


class DeleteItem(ClientEvent, frozen=True, tag="conversation.item.delete"):
    item_id: str


class ItemReference(Struct, frozen=True, tag_field="type", tag="item_reference"):
    """Names an item of the conversation inside `ResponseParams.input`."""

    id: str


class ParamsVoice(Struct, frozen=True):
    format: AudioFormat | None = None
    voice: str | None = None


class ParamsAudio(Struct, frozen=True):
    output: ParamsVoice | None = None


class ResponseParams(Struct, frozen=True):
    """What holds for one response only; None is "as the session says"."""

    instructions: str | None = None
    output_modalities: tuple[Modality, ...] | None = None
    tools: tuple[FunctionTool, ...] | None = None
    tool_choice: ToolChoice | None = None
    max_output_tokens: int | Literal["inf"] | None = None
    audio: ParamsAudio | None = None
    metadata: dict[str, str] | None = None
    conversation: Literal["auto", "none"] = "auto"
    input: tuple[Item | ItemReference, ...] | None = None
    parallel_tool_calls: bool | UnsetType | None = UNSET
    reasoning: Reasoning | UnsetType | None = UNSET
    prompt: Raw | UnsetType = UNSET


class CreateResponse(ClientEvent, frozen=True, tag="response.create"):
    response: ResponseParams | UnsetType = UNSET


class CancelResponse(ClientEvent, frozen=True, tag="response.cancel"):
    response_id: str | None = None


class ClearPlayout(ClientEvent, frozen=True, tag="output_audio_buffer.clear"):
    pass


class SlotGiven(Struct, frozen=True):
    """A named value that a client gives."""

    name: str
    value: str


class GiveTokens(ClientEvent, frozen=True, tag="chorale.token"):
    """Chorale's own: structured tokens of the user, from a form or a button; they become a user's item."""

    slots: tuple[SlotGiven, ...] = ()
    intent: str | None = None


class GiveCaption(ClientEvent, frozen=True, tag="chorale.caption"):
    """Chorale's own: what the client's own recogniser made of the speech of this item."""

    item_id: str
    text: str


AnyClientEvent = (
    UpdateSession
    | AppendAudio
    | CommitAudio
    | ClearAudio
    | CreateItem
    | RetrieveItem
    | TruncateItem
    | DeleteItem
    | CreateResponse
    | CancelResponse
    | ClearPlayout
    | GiveTokens
    | GiveCaption
)
