"""Two JSON Schemas that hold at the same time, as one (``allOf``, what stands beside ``anyOf`` or ``$ref``)."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]  # a JSON Schema, of any shape: it comes from a client


def merged(one: Schema, other: Schema) -> Schema:
    """Both schemas at once, as far as their keywords can be joined; else the second's."""
    both = dict(one)
    for key, value in other.items():
        both[key] = _joined(key, both[key], value) if key in both else value
    return both


def _joined(key: str, one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return merged(one, other) if key != "properties" else _both_properties(one, other)
    if key == "required" and isinstance(one, list) and isinstance(other, list):
        return [*one, *(name for name in other if name not in one)]
    if key in ("enum", "type"):
        first, second = (value if isinstance(value, list) else [value] for value in (one, other))
        common = [value for value in first if value in second]
        if key == "type" and not common and {"integer", "number"} <= {*first, *second}:
            return "integer"
        return common
    if key in ("allOf", "anyOf", "oneOf") and isinstance(one, list) and isinstance(other, list):
        return one if key != "allOf" else [*one, *other]
    if isinstance(one, int | float) and isinstance(other, int | float):
        return max(one, other) if key.startswith(("min", "exclusiveMin")) else min(one, other)
    return other


def _both_properties(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict(one)
    for name, schema in other.items():
        twice = isinstance(properties.get(name), Mapping) and isinstance(schema, Mapping)
        properties[name] = merged(properties[name], schema) if twice else schema
    return properties
