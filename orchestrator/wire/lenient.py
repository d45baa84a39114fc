"""What real clients send and strict types refuse, put into the form that the types expect.

Nulls where nothing is meant, whole numbers written as decimals, the part types of the beta protocol, voices as objects.
"""

from collections.abc import Mapping

_PART_PREFIX = {"system": "input_", "user": "input_", "assistant": "output_"}
_BETA_PARTS = ("text", "audio")
_VERBATIM = frozenset({"parameters", "metadata", "variables"})
"""Objects that are the client's own: their whole numbers stay as written."""

KeepNull = frozenset[tuple[str, ...]]


def tidy(value: object, keep: KeepNull = frozenset(), path: tuple[str, ...] = ()) -> object:
    """Returns JSON without null members and with whole decimals as integers.

    Nulls stay in arrays, inside tool parameters and tracing, and at the paths in `keep`.
    """
    if isinstance(value, dict):
        return {
            name: member if name in _VERBATIM else tidy(member, keep, (*path, name))
            for name, member in value.items()
            if member is not None or (*path, name) in keep
        }
    if isinstance(value, list):
        return [tidy(member, keep, path) for member in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def client_event(event: Mapping[str, object]) -> dict[str, object]:
    """Returns a client event with its items and response parameters put right; `session` is left as it is."""
    plain: dict[str, object] = {}
    for name, member in event.items():
        if name == "session":
            plain[name] = member
        elif member is not None:
            plain[name] = tidy(member)
    if "item" in plain:
        plain["item"] = _item(plain["item"])
    response = plain.get("response")
    if isinstance(response, dict):
        _response(response)
    return plain


def _response(response: dict[str, object]) -> None:
    """Puts the parameters of one response right, in place."""
    if isinstance(items := response.get("input"), list):
        response["input"] = [_item(item) for item in items]
    if isinstance(metadata := response.get("metadata"), dict):
        response["metadata"] = {key: value for key, value in metadata.items() if value is not None}
    if isinstance(audio := response.get("audio"), dict):
        named_voice(audio.get("output"))


def named_voice(output: object) -> None:
    """Replaces a voice given as ``{"id": …}`` by its id, in place: events always show voices as strings."""
    if not isinstance(output, dict):
        return
    voice = output.get("voice")
    if isinstance(voice, dict) and isinstance(voice.get("id"), str):
        output["voice"] = voice["id"]


def _item(item: object) -> object:
    """Names the parts of a message as the present protocol does."""
    if not isinstance(item, dict) or not isinstance(item.get("content"), list):
        return item
    role = item.get("role")
    prefix = _PART_PREFIX.get(role) if isinstance(role, str) else None
    if prefix is None:
        return item
    return {**item, "content": [_part(part, prefix) for part in item["content"]]}


def _part(part: object, prefix: str) -> object:
    if isinstance(part, dict) and part.get("type") in _BETA_PARTS:
        return {**part, "type": prefix + part["type"]}
    return part
