"""What msgspec says of values that do not fit, in words for those who wrote them. Pure."""

import re
from difflib import get_close_matches
from typing import Any

import msgspec

from orchestrator.recording.places import Step, steps_of

_WHERE = re.compile(r"(.*?)(?: - at `(.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_OTHER = re.compile(r"Expected `(.*?)`(.*), got (.*)")
_ENUM = re.compile(r"Invalid enum value (.*)")
_WORDS = {
    "object": "fields (name: value)", "array": "a list", "str": "a text", "int": "a whole number",
    "float": "a number", "bool": "true or false", "null": "nothing",
}  # fmt: skip


def explain(told: str, root: type) -> tuple[tuple[Step, ...], str]:
    """Returns where a `msgspec.ValidationError` of the struct `root` lies, and what it says, with what was expected."""
    match = _WHERE.fullmatch(told)
    assert match is not None
    told, steps = match[1], steps_of(match[2] or "")
    if found := _UNKNOWN.fullmatch(told):
        fields = _fields(root, steps)
        near = get_close_matches(found[1], fields, 1)
        hint = f"do you mean {near[0]}? " if near else ""
        return (*steps, found[1]), f"there is no such field; {hint}Expected one of {', '.join(fields)}"
    if found := _MISSING.fullmatch(told):
        return steps, f"a field is missing; expected {found[1]}"
    if found := _ENUM.fullmatch(told):
        return steps, f"expected one of {', '.join(_choices(root, steps))}, got {found[1]}"
    if found := _OTHER.fullmatch(told):
        wanted = " or ".join(_WORDS.get(one, one) for one in found[1].split(" | ") if one != "null")
        got = found[3].strip("`")
        quote = "; put it in quotes" if wanted == "a text" and got in ("int", "float", "bool") else ""
        return steps, f"expected {wanted}{found[2]}, got {_WORDS.get(got, got)}{quote}"
    return steps, told


def _fields(root: type, steps: tuple[Step, ...]) -> list[str]:
    return [
        field.encode_name
        for one in _types(root, steps)
        if isinstance(one, msgspec.inspect.StructType)
        for field in one.fields
    ]


def _choices(root: type, steps: tuple[Step, ...]) -> list[str]:
    return [
        str(value)
        for one in _types(root, steps)
        if isinstance(one, msgspec.inspect.LiteralType)
        for value in one.values
    ]


def _types(root: type, steps: tuple[Step, ...]) -> list[msgspec.inspect.Type]:
    """Returns the types that may stand where the steps lead to."""
    found: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(root)]
    for step in steps:
        found = [below for one in found for below in _below(one, step)]
    return found


def _below(kind: msgspec.inspect.Type, step: Step) -> list[msgspec.inspect.Type]:
    below: Any = None
    match kind:
        case msgspec.inspect.StructType(fields=fields):
            below = next((field.type for field in fields if field.encode_name == step), None)
        case msgspec.inspect.VarTupleType(item_type=below):
            pass
        case msgspec.inspect.DictType(value_type=below):
            pass
    if below is None:
        return []
    return list(below.types) if isinstance(below, msgspec.inspect.UnionType) else [below]
