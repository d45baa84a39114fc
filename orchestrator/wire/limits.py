"""What types cannot say about a client's values and no state is needed for: ranges, lengths, parts that fit a role.

Every check raises `WireError` naming the path of the field.
"""

from msgspec import UNSET

from orchestrator.wire import client, faults, items
from orchestrator.wire.session import AudioFormat

MAX_EVENT_ID_CHARACTERS = 512
MAX_ID_CHARACTERS = 512
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARACTERS = 64
MAX_METADATA_VALUE_CHARACTERS = 512
MAX_OUTPUT_TOKENS = 4096
_MAX_INTEGER = 2**53
"""Beyond it JSON readers in browsers lose digits, so no honest number of milliseconds or parts is there."""


def check_item(item: items.Item, path: str) -> None:
    """Raises `WireError` if a client may not create this item: parts of the wrong side, an id too long."""
    if item.id is not UNSET:
        check_id(item.id, f"{path}.id")
    if not isinstance(item, items.Message):
        return
    for index, part in enumerate(item.content):
        allowed = _PARTS_OF[item.role]
        if not isinstance(part, allowed):
            name = str(part.__struct_config__.tag)
            names = ", ".join(f"'{kind.__struct_config__.tag}'" for kind in allowed)
            raise faults.bad_value(
                f"{path}.content[{index}].type",
                f"'{name}' is not allowed in a message of role '{item.role}'. Supported values are: {names}.",
            )


_PARTS_OF: dict[items.Role, tuple[type[items.Part], ...]] = {
    "system": (items.InputText,),
    "user": (items.InputText, items.InputAudio, items.InputImage),
    "assistant": (items.OutputText, items.OutputAudio),
}


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


def check_params(params: client.ResponseParams) -> None:
    """Raises `WireError` on parameters that no response can have."""
    if params.output_modalities is not None:
        check_modalities(params.output_modalities, "response.output_modalities")
    if params.max_output_tokens is not None:
        check_output_tokens(params.max_output_tokens, "response.max_output_tokens")
    if (
        params.audio is not None
        and params.audio.output is not None
        and params.audio.output.format is not None
    ):
        check_format(params.audio.output.format, "response.audio.output.format")
    _check_metadata(params.metadata or {})
    for index, entry in enumerate(params.input or ()):
        path = f"response.input[{index}]"
        if isinstance(entry, client.ItemReference):
            check_id(entry.id, f"{path}.id")
        else:
            check_item(entry, path)


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
