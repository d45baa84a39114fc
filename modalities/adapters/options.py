"""From a configuration's plain dictionary to an adapter's settings, with one error that names every fault."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from modalities.errors import UnknownAdapter

Settings = TypeVar("Settings")


def settings_from(settings: type[Settings], adapter: str, options: Mapping[str, object]) -> Settings:
    """Returns the dataclass `settings` filled from `options`; whole numbers pass for floats.

    Raises `UnknownAdapter` that names every option which does not exist or has a value of another type, and lists
    those that do exist.
    """
    known = {field.name for field in fields(settings)}  # type: ignore[arg-type]  # any dataclass
    hints = get_type_hints(settings)
    faults = [f"there is no option {name!r}" for name in options if name not in known]
    for name, value in options.items():
        if name in known and not _fits(value, hints[name]):
            faults.append(f"{name} is {value!r}, expected {_shown(hints[name])}")
    if faults:
        raise UnknownAdapter(f"{adapter}: {'; '.join(faults)}. Options: {', '.join(sorted(known))}")
    return settings(**options)


def _fits(value: object, hint: Any) -> bool:  # a type expression has no type of its own
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is object:
        return True
    return isinstance(value, origin or hint) and _members_fit(value, hint)


def _members_fit(value: object, hint: Any) -> bool:
    arguments = get_args(hint)
    if isinstance(value, Mapping) and arguments:
        return all(_fits(key, arguments[0]) and _fits(member, arguments[1]) for key, member in value.items())
    if isinstance(value, list | tuple) and arguments:
        return all(_fits(member, arguments[0]) for member in value)
    return True


def _shown(hint: Any) -> str:
    """Returns a type in words of a configuration file."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_shown(choice) for choice in get_args(hint))
    kind = origin or hint
    if kind is types.NoneType:
        return "null"
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return "a mapping"
    if isinstance(kind, type) and issubclass(kind, Sequence) and kind is not str:
        return "a list"
    return str(getattr(kind, "__name__", kind))
