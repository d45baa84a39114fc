"""A session's rules as plain values and back. Code among them (those who judge) is today's. Pure."""

from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from typing import Any

from orchestrator.sessions.rules import SessionRules

_CODE = frozenset({"judge", "graph", "fingerprint"})

Plain = dict[str, Any]


def write_rules(rules: object) -> Plain:
    """Returns the numbers, texts and switches of rules, nested as they are."""
    assert is_dataclass(rules)
    return {
        field.name: _plain(getattr(rules, field.name)) for field in fields(rules) if field.name not in _CODE
    }


def read_rules(written: Plain, today: SessionRules | None = None) -> SessionRules:
    """Returns rules with what was written, and the rest as `today`: rules that did not exist then, and code."""
    rules = _over(today or SessionRules(), written)
    assert isinstance(rules, SessionRules)
    return rules


def _plain(value: object) -> Any:
    if is_dataclass(value):
        return write_rules(value)
    if isinstance(value, IntEnum):
        return int(value)
    return list(value) if isinstance(value, tuple) else value


def _over(rules: Any, written: Plain) -> Any:
    known = {field.name: getattr(rules, field.name) for field in fields(rules)}
    changes = {name: _as(known[name], value) for name, value in written.items() if name in known}
    return replace(rules, **changes)


def _as(before: Any, value: Any) -> Any:
    """Returns a written value in the form that the rule has."""
    if is_dataclass(before) and isinstance(value, dict):
        return _over(before, value)
    if isinstance(before, IntEnum):
        return type(before)(value)
    return tuple(value) if isinstance(before, tuple) and isinstance(value, list) else value
