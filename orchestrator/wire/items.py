"""Conversation items and their content parts (protocol reference §3)."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

ItemStatus = Literal["in_progress", "completed", "incomplete"]
Role = Literal["system", "user", "assistant"]


class InputText(Struct, frozen=True, tag_field="type", tag="input_text"):
    """Text of a user or system message."""

    text: str


class InputAudio(Struct, frozen=True, tag_field="type", tag="input_audio"):
    """Speech of a user; `transcript` is always present, null until known. `audio` (base64) only where asked for."""

    transcript: str | None = None
    audio: str | UnsetType = UNSET


HELD_IMAGE = "chorale:image:"
"""How the address of an image begins that the server holds: what it shows in the place of a data URI."""


class InputImage(Struct, frozen=True, tag_field="type", tag="input_image"):
    """An image as a data URI; the server shows the name by which it holds it."""

    image_url: str
    detail: str | UnsetType = UNSET


class OutputText(Struct, frozen=True, tag_field="type", tag="output_text"):
    """Text of the assistant."""

    text: str


class OutputAudio(Struct, frozen=True, tag_field="type", tag="output_audio"):
    """Speech of the assistant with its words."""

    transcript: str = ""
    audio: str | UnsetType = UNSET


Part = InputText | InputAudio | InputImage | OutputText | OutputAudio


class Message(Struct, frozen=True, tag_field="type", tag="message"):
    """Something said or typed by a role."""

    role: Role
    content: tuple[Part, ...]
    id: str | UnsetType = UNSET
    object: str | UnsetType = UNSET
    status: ItemStatus | UnsetType = UNSET


class FunctionCall(Struct, frozen=True, tag_field="type", tag="function_call"):
    """A call that the model wants made; `arguments` is JSON text, "" while running."""

    name: str
    call_id: str
    arguments: str = ""
    id: str | UnsetType = UNSET
    object: str | UnsetType = UNSET
    status: ItemStatus | UnsetType = UNSET


class FunctionCallOutput(Struct, frozen=True, tag_field="type", tag="function_call_output"):
    """What a call gave."""

    call_id: str
    output: str
    id: str | UnsetType = UNSET
    object: str | UnsetType = UNSET
    status: ItemStatus | UnsetType = UNSET


Item = Message | FunctionCall | FunctionCallOutput

OBJECT = "realtime.item"
