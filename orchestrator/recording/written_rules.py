"""A session's rules as plain values and back. Code among them (those who judge) is today's. Pure."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from enum import IntEnum
from typing import Any

from orchestrator.sessions.rules import SessionRules

_CODE = frozenset({"judge", "graph", "corrections", "read", "misheard", "fingerprint"})
"""Rules that are code, or None; whatever else is no plain value is taken for code, too."""

_VALUES = (bool, int, float, str, tuple, list, dict, type(None))

Plain = dict[str, Any]

_NOT_YET: Plain = {
    "abandoned_us": 0,
    "gives_way": False,
    "item_bytes": 0,
    "idles": False,
    "returns": False,
    "heeds": False,
}


def write_rules(rules: object) -> Plain:
    """Returns the numbers, texts and switches of rules, nested as they are."""
    assert is_dataclass(rules)
    return {name: _plain(value) for name, value in _values_of(rules).items()}


def read_rules(written: Plain, today: SessionRules | None = None) -> SessionRules:
    """Returns rules with what was written, and the rest as `today`: rules that did not exist then, and code."""
    rules = _over(today or SessionRules(), written)
    assert isinstance(rules, SessionRules)
    return rules


def recorded_rules(written: Plain, today: SessionRules | None = None) -> SessionRules:
    """As `read_rules`, for what a recording says. Of rules that it does not know, those that change what hearts do are
    off: a session that was recorded before they were there went on without them."""
    return read_rules({**_NOT_YET, **written}, today)


def faults_of(written: Plain, rules: object, above: str = "") -> Iterator[str]:
    """Yields what is wrong with rules that a person wrote: names that are none, and values of another kind."""
    assert is_dataclass(rules)
    known = _values_of(rules)
    for name, value in written.items():
        path = f"{above}{name}"
        if name not in known:
            near = get_close_matches(name, known, 1)
            yield f"{path}: there is no such rule" + (f"; do you mean {near[0]}?" if near else "")
        elif is_dataclass(known[name]) and isinstance(value, dict):
            yield from faults_of(value, known[name], f"{path}.")
        elif not _fits(known[name], value):
            yield f"{path}: expected as {_plain(known[name])!r}, got {value!r}"


def _fits(before: object, value: object) -> bool:
    if before is None or isinstance(value, type(before)):
        return isinstance(value, bool) == isinstance(before, bool) or before is None
    if isinstance(before, IntEnum):
        return value in [int(one) for one in type(before)]
    if isinstance(before, tuple):
        return isinstance(value, list)
    return value is None or (isinstance(before, float) and type(value) is int)


def _values_of(rules: Any) -> Plain:
    """Returns the rules that are values, by name."""
    named = {field.name: getattr(rules, field.name) for field in fields(rules) if field.name not in _CODE}
    return {name: value for name, value in named.items() if is_dataclass(value) or isinstance(value, _VALUES)}


def _plain(value: object) -> Any:
    if is_dataclass(value):
        return write_rules(value)
    if isinstance(value, IntEnum):
        return int(value)
    return list(value) if isinstance(value, tuple) else value


def _over(rules: Any, written: Plain) -> Any:
    known = _values_of(rules)
    changes = {name: _as(known[name], value) for name, value in written.items() if name in known}
    return replace(rules, **changes)


def _as(before: Any, value: Any) -> Any:
    """Returns a written value in the form that the rule has."""
    if is_dataclass(before) and isinstance(value, dict):
        return _over(before, value)
    if isinstance(before, IntEnum):
        return type(before)(value)
    return tuple(value) if isinstance(before, tuple) and isinstance(value, list) else value
