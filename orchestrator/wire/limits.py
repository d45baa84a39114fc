"""What types cannot say about a client's values and no state is needed for: ranges, lengths, parts that fit a role.

Every check raises `WireError` naming the path of the field.
"""

import re
from collections.abc import Sequence, Sized

from msgspec import UNSET, Raw

from orchestrator.errors import WireError
from orchestrator.wire import client, faults, items
from orchestrator.wire.session import AudioFormat, FunctionTool

MAX_EVENT_ID_CHARACTERS = 512
MAX_ID_CHARACTERS = 512
MAX_VOICE_CHARACTERS = 128
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARACTERS = 64
MAX_METADATA_VALUE_CHARACTERS = 512
MAX_OUTPUT_TOKENS = 4096
MAX_EVENT_CHARACTERS = 2**20
"""An event without sound. What it sets is shown to clients in one message, and those end at 1 MiB."""
MAX_TEXT_CHARACTERS = 262_144
"""Instructions, or the words of one item."""
MAX_IMAGE_CHARACTERS = 4 * 2**20
"""The data URI of one image: 3 MiB of PNG or JPEG."""
MAX_IMAGES = 8
"""Images of one item."""
MAX_TOOLS = 128
MAX_SLOTS = 64
"""Slots of one ``chorale.token``."""
MAX_HINT_CHARACTERS = 16_384
"""Prompt and keywords of a transcription together: they go along with every draft."""
MAX_VALUES = 16_384
MAX_EXPONENTS = 1_024
"""Values of one JSON text, and numbers with an exponent among them (which take 30 µs each to read). A megabyte of
either would hold every session up for seconds, since events are read on the event loop."""
IMAGE_PREFIXES = ("data:image/png;base64,", "data:image/jpeg;base64,")
_DETAILS = ("auto", "low", "high")
_MAX_INTEGER = 2**53
"""Beyond it JSON readers in browsers lose digits, so no honest number of milliseconds or parts is there."""


_MAX_QUOTES = 16 * MAX_VALUES
_EXPONENT = re.compile(r"[0-9][eE]")


def check_values(text: bytes | str | Raw) -> None:
    """Raises `WireError` on JSON of more values than any honest client sends. Cheap, and it comes before anything is
    decoded: commas are counted, those inside of strings (base64 has none) only where there are many."""
    plain = text if isinstance(text, str) else bytes(text).decode("latin-1")
    if plain.count(",") < MAX_EXPONENTS:
        return
    too_many = plain.count('"') > _MAX_QUOTES
    if not too_many:
        outside = plain.replace("\\\\", "").replace('\\"', "").split('"')[::2]
        too_many = (
            sum(piece.count(",") for piece in outside) > MAX_VALUES
            or sum(len(_EXPONENT.findall(piece)) for piece in outside) > MAX_EXPONENTS
        )
    if too_many:
        raise WireError("invalid_value", f"The message holds more than {MAX_VALUES} values.")


def check_size(event: client.AnyClientEvent, characters: int) -> None:
    """Raises `WireError` on a big event, if it is none of those that bring sound."""
    if characters > MAX_EVENT_CHARACTERS and not isinstance(event, client.AppendAudio | client.CreateItem):
        raise WireError(
            "invalid_value", f"An event without sound has at most {MAX_EVENT_CHARACTERS} characters."
        )


def check_item(item: items.Item, path: str) -> None:
    """Raises `WireError` if a client may not create this item: parts of the wrong side, an id or text too long."""
    if item.id is not UNSET:
        check_id(item.id, f"{path}.id")
    match item:
        case items.FunctionCall():
            check_id(item.call_id, f"{path}.call_id")
            check_id(item.name, f"{path}.name")
            _check_text(len(item.arguments), f"{path}.arguments")
            return
        case items.FunctionCallOutput():
            check_id(item.call_id, f"{path}.call_id")
            _check_text(len(item.output), f"{path}.output")
            return
    _check_text(sum(map(_length, item.content)), f"{path}.content")
    for index, part in enumerate(item.content):
        allowed = _PARTS_OF[item.role]
        if not isinstance(part, allowed):
            name = str(part.__struct_config__.tag)
            names = ", ".join(f"'{kind.__struct_config__.tag}'" for kind in allowed)
            raise faults.bad_value(
                f"{path}.content[{index}].type",
                f"'{name}' is not allowed in a message of role '{item.role}'. Supported values are: {names}.",
            )
        if isinstance(part, items.InputImage):
            _check_image(part, f"{path}.content[{index}]")
    if sum(isinstance(part, items.InputImage) for part in item.content) > MAX_IMAGES:
        raise faults.bad_value(f"{path}.content", f"at most {MAX_IMAGES} images are allowed.")


_PARTS_OF: dict[items.Role, tuple[type[items.Part], ...]] = {
    "system": (items.InputText,),
    "user": (items.InputText, items.InputAudio, items.InputImage),
    "assistant": (items.OutputText, items.OutputAudio),
}


def _length(part: items.Part) -> int:
    """Returns what is kept of a part in a conversation, in characters: all but the sound of a user."""
    match part:
        case items.InputText() | items.OutputText():
            return len(part.text)
        case items.InputAudio():
            return len(part.transcript or "")
        case items.OutputAudio():
            return len(part.transcript) + (0 if part.audio is UNSET else len(part.audio))
        case items.InputImage():
            return 0


def size_of(item: items.Item) -> int:
    """Returns what is kept of an item in a conversation, in characters."""
    match item:
        case items.Message():
            return sum(map(_length, item.content))
        case items.FunctionCall():
            return len(item.arguments)
        case items.FunctionCallOutput():
            return len(item.output)


def _check_image(part: items.InputImage, path: str) -> None:
    """Raises `WireError` on an image that is none, or too big. Nothing is ever fetched for a client."""
    if not part.image_url.startswith(IMAGE_PREFIXES):
        names = " or ".join(f"'{prefix}…'" for prefix in IMAGE_PREFIXES)
        raise faults.bad_value(f"{path}.image_url", f"expected a data URI, {names}.")
    if len(part.image_url) > MAX_IMAGE_CHARACTERS:
        raise faults.bad_value(
            f"{path}.image_url", f"at most {MAX_IMAGE_CHARACTERS} characters are allowed for an image."
        )
    if part.detail is not UNSET and part.detail not in _DETAILS:
        raise faults.bad_value(f"{path}.detail", "supported values are: 'auto', 'low', 'high'.")


def check_text(text: str, path: str) -> None:
    """Raises `WireError` on a text that says nothing, or too much."""
    if not text.strip():
        raise faults.bad_value(path, "expected some words.")
    _check_text(len(text), path)


def check_tokens(event: client.GiveTokens) -> None:
    """Raises `WireError` on tokens that say nothing, or too much."""
    if not event.slots and not event.intent:
        raise faults.bad_value("slots", "expected an intent or a slot.")
    if len(event.slots) > MAX_SLOTS:
        raise faults.bad_value("slots", f"at most {MAX_SLOTS} slots are allowed.")
    if event.intent is not None:
        check_id(event.intent, "intent")
    for index, slot in enumerate(event.slots):
        check_id(slot.name, f"slots[{index}].name")
        check_id(slot.value, f"slots[{index}].value")


def _check_text(characters: int, path: str) -> None:
    if characters > MAX_TEXT_CHARACTERS:
        raise faults.bad_value(path, f"at most {MAX_TEXT_CHARACTERS} characters are allowed.")


def check_format(audio_format: AudioFormat, path: str) -> None:
    """Raises `WireError` on a sample rate that the format does not have."""
    wanted = 24_000 if audio_format.type == "audio/pcm" else 8_000
    if audio_format.rate is not UNSET and audio_format.rate != wanted:
        raise faults.bad_value(f"{path}.rate", f"'{audio_format.type}' has a rate of {wanted}.")


def check_modalities(modalities: tuple[str, ...], path: str) -> None:
    """Raises `WireError` unless exactly one modality is asked for (audio brings its transcript by itself)."""
    if len(modalities) != 1:
        raise faults.bad_value(path, 'expected either ["audio"] or ["text"].')


def check_output_tokens(limit: int | str, path: str) -> None:
    """Raises `WireError` unless the limit is 1 to 4096 or ``inf``."""
    if isinstance(limit, int) and not 1 <= limit <= MAX_OUTPUT_TOKENS:
        raise faults.bad_value(path, f"expected an integer from 1 to {MAX_OUTPUT_TOKENS} or 'inf'.")


def check_count_of_tools(tools: Sized, path: str) -> None:
    """Raises `WireError` on too many tools."""
    if len(tools) > MAX_TOOLS:
        raise faults.bad_value(path, f"at most {MAX_TOOLS} tools are allowed.")


def check_tools(tools: Sequence[FunctionTool], path: str) -> None:
    """Raises `WireError` on a tool that cannot be named, or whose parameters are no schema."""
    for index, tool in enumerate(tools):
        check_id(tool.name, f"{path}[{index}].name")
        if tool.parameters is not UNSET and not bytes(tool.parameters).lstrip().startswith(b"{"):
            raise faults.wrong_type(f"{path}[{index}].parameters", "an object", "another type")


def check_params(params: client.ResponseParams) -> None:
    """Raises `WireError` on parameters that no response can have."""
    if params.output_modalities is not None:
        check_modalities(params.output_modalities, "response.output_modalities")
    if params.max_output_tokens is not None:
        check_output_tokens(params.max_output_tokens, "response.max_output_tokens")
    output = params.audio.output if params.audio is not None else None
    if output is not None and output.format is not None:
        check_format(output.format, "response.audio.output.format")
    if output is not None and output.voice is not None and not 1 <= len(output.voice) <= MAX_VOICE_CHARACTERS:
        raise faults.bad_value(
            "response.audio.output.voice", f"a voice has 1 to {MAX_VOICE_CHARACTERS} characters."
        )
    _check_text(len(params.instructions or ""), "response.instructions")
    check_count_of_tools(params.tools or (), "response.tools")
    check_tools(params.tools or (), "response.tools")
    _check_metadata(params.metadata or {})
    if params.prompt is not UNSET and bytes(params.prompt) != b"null":
        raise no_prompts("response.prompt")
    for index, entry in enumerate(params.input or ()):
        path = f"response.input[{index}]"
        if isinstance(entry, client.ItemReference):
            check_id(entry.id, f"{path}.id")
        else:
            check_item(entry, path)
            _check_words_only(entry, path)


def no_prompts(path: str) -> WireError:
    """Returns the error for a client that names a stored prompt."""
    return faults.bad_value(path, "this server keeps no prompts; send 'instructions' instead.")


def _check_words_only(item: items.Item, path: str) -> None:
    """Raises `WireError` on an image, or sound without its words, that is in no item of the conversation: nobody would
    read it for one response."""
    for index, part in enumerate(item.content if isinstance(item, items.Message) else ()):
        is_unread = isinstance(part, items.InputAudio) and part.audio is not UNSET and not part.transcript
        if isinstance(part, items.InputImage) or is_unread:
            what = "an image" if isinstance(part, items.InputImage) else "sound without a transcript"
            raise faults.bad_value(
                f"{path}.content[{index}].type",
                f"{what} belongs into an item of the conversation; name that by an 'item_reference'.",
            )


def _check_metadata(metadata: dict[str, str]) -> None:
    if len(metadata) > MAX_METADATA_PAIRS:
        raise faults.bad_value("response.metadata", f"at most {MAX_METADATA_PAIRS} pairs are allowed.")
    for key, value in metadata.items():
        if len(key) > MAX_METADATA_KEY_CHARACTERS:
            raise faults.bad_value(
                "response.metadata", f"keys have at most {MAX_METADATA_KEY_CHARACTERS} characters."
            )
        if len(value) > MAX_METADATA_VALUE_CHARACTERS:
            raise faults.bad_value(
                f"response.metadata.{key}", f"values have at most {MAX_METADATA_VALUE_CHARACTERS} characters."
            )


def check_id(value: str, path: str) -> None:
    """Raises `WireError` on an empty or endless id."""
    if not 1 <= len(value) <= MAX_ID_CHARACTERS:
        raise faults.bad_value(path, f"an id has 1 to {MAX_ID_CHARACTERS} characters.")


def check_count(value: int, path: str) -> None:
    """Raises `WireError` on a negative or absurd number."""
    if not 0 <= value < _MAX_INTEGER:
        raise faults.bad_value(path, "expected an integer of 0 or more.")
