"""Says in one line each what is wrong with a configuration: the key, what was expected, what was there instead."""

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_SHOWN_CHARACTERS = 60
_MEMBERS = ("str", "int", "constrained-int")
_PRIVATE = ("key", "secret", "token", "password", "credential", "headers", "ice_servers", "options")
"""What may hold what nobody is to see, or stand in the place of it: not even a value of the wrong type is shown."""

_PLAIN = ("key_poll_s", "max_secrets", "llm_tokens", "default_output_tokens")
"""Named like something private, but no more than a number."""


def report(found: Sequence[str], where: str) -> str:
    """Returns the text of the one error: a count, then a line per fault."""
    count = "1 fault" if len(found) == 1 else f"{len(found)} faults"
    return "\n".join([f"{count} in the configuration ({where}):", *(f"  {fault}" for fault in found)])


def describe(error: ValidationError, schema: type[BaseModel], sources: Mapping[str, str]) -> list[str]:
    """Returns one line per faulty key. `sources` names the variable or option behind each dotted key, where one is."""
    by_key: dict[str, list[ErrorDetails]] = {}
    for fault in error.errors(include_url=False):
        by_key.setdefault(".".join(_steps(fault["loc"])), []).append(fault)
    return [_describe(key, faults, schema, sources) for key, faults in by_key.items()]


def _describe(
    key: str, faults: list[ErrorDetails], schema: type[BaseModel], sources: Mapping[str, str]
) -> str:
    """`faults` are several where a key may hold one of several types and holds none of them."""
    steps = key.split(".")
    source = next((name for path, name in sources.items() if _one_inside_the_other(path, key)), None)
    shown = f"{key} ({source})" if source else key
    if faults[0]["type"] == "extra_forbidden":
        return f"{shown}: there is no such key{_meant(steps, schema)}"
    if faults[0]["type"] == "missing":
        return f"{shown}: missing"
    expected = " or ".join(dict.fromkeys(_expected(fault["msg"]) for fault in faults))
    return f"{shown}: expected {expected}{_got(steps, faults[0]['input'])}"


def _one_inside_the_other(path: str, key: str) -> bool:
    return f"{path}.".startswith(f"{key}.") or f"{key}.".startswith(f"{path}.")


def _steps(loc: tuple[int | str, ...]) -> list[str]:
    """Returns the path as written in the file: without the names that pydantic gives to members of a union."""
    return [str(step) for step in loc if str(step) not in _MEMBERS and "[" not in str(step)]


def _expected(message: str) -> str:
    """Returns what pydantic wanted, without its opening words and without how it failed."""
    text = message.removeprefix("Value error, ").removeprefix("Input should be ").split(", unable to")[0]
    if text.startswith("a valid dictionary"):
        return "a mapping"
    if text == "a valid tuple":
        return "a list, like [one, another]"
    return f"{text[:1].lower()}{text[1:]}"


def _got(steps: list[str], value: object) -> str:
    if any(word in step.lower() for step in steps if step not in _PLAIN for word in _PRIVATE):
        return ""
    if isinstance(value, str) and "@" in value:  # an address may name its user
        return ""
    if value is None:
        return ", got nothing"
    if isinstance(value, Mapping):
        return ", got a mapping"
    text = repr(value)
    return f", got {text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + '…'}"


def _meant(steps: list[str], schema: type[BaseModel]) -> str:
    """Returns a suggestion: a key of that section that is written alike, else the place where such a key exists."""
    *path, name = steps
    known = _section(path, schema)
    if known is not None:
        close = difflib.get_close_matches(name, known.model_fields, n=1, cutoff=0.6)
        if close:
            return f"; did you mean {close[0]}?"
    elsewhere = [key for key in _keys(schema) if key.rsplit(".", 1)[-1] == name]
    if elsewhere:
        return f"; did you mean {' or '.join(elsewhere)}?"
    if known is not None and known.model_fields:
        return f"; known here: {', '.join(known.model_fields)}"
    return ""


def _section(path: list[str], schema: type[BaseModel]) -> type[BaseModel] | None:
    section: type[BaseModel] | None = schema
    for step in path:
        if step.isdigit():
            continue
        field = section.model_fields.get(step) if section else None
        section = _model_of(field.annotation) if field else None
    return section


def _keys(schema: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in schema.model_fields.items():
        yield path + name
        below = _model_of(field.annotation)
        if below is not None:
            yield from _keys(below, f"{path}{name}.")


def _model_of(annotation: object) -> type[BaseModel] | None:
    """Returns the section that a field holds, also inside ``Section | None`` and ``tuple[Section, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple):
        return next((found for part in get_args(annotation) if (found := _model_of(part))), None)
    return None
