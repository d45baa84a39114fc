"""From a JSON Schema to the language of its values that a language model may write: compact, and always ending.

Not every value that the schema allows is in it (texts, arrays and depth are bounded, optional parts may be left out),
but every value in it satisfies the schema as far as these keywords say: ``type``, ``enum``, ``const``,
``properties``, ``required``, ``additionalProperties``, ``minProperties``, ``maxProperties``, ``items``,
``prefixItems``, ``minItems``, ``maxItems``, ``uniqueItems`` (of listed values), ``minLength``, ``maxLength``,
``pattern``, ``format``, ``minimum``, ``maximum``, the exclusive bounds, ``multipleOf``, ``anyOf``, ``oneOf`` (as
``anyOf``), ``allOf`` and ``$ref`` inside the schema. Others (``not``, ``if``, ``contains``, …) have no effect.
"""

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from modalities.adapters.grammar import (
    EMPTY,
    NOTHING,
    Chars,
    Node,
    Seq,
    Text,
    alt,
    least_length,
    optional,
    seq,
)
from modalities.adapters.number_grammar import integers, multiples, numbers
from modalities.adapters.pattern_grammar import FORMATS, pattern_language
from modalities.adapters.schema_merge import Schema, merged

MOST_PARTS = 250
"""Items or members that a schema may ask for."""

MOST_OPTIONAL = 24
"""Members of one object that a model may leave out or not. Their grammar grows with the square of their number."""

MOST_CHARACTERS = 16_384
"""A schema whose shortest value is longer asks for more than a model should write: nothing satisfies it here."""

_TYPES = ("string", "number", "boolean", "null")
_OUTSIDE_TEXT = ((0x00, 0x1F), (ord('"'), ord('"')), (ord("\\"), ord("\\")), (0x7F, 0x9F), (0x2028, 0x2029))
_SIGNS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long the parts of a value may become where the schema leaves it open."""

    characters: int = 60
    items: int = 4
    depth: int = 4


FreeText = Callable[[int, int], Node]
"""Returns what may stand in a text that no keyword describes, of `low` to `high` characters, in JSON's form."""


def free_text(low: int, high: int) -> Node:
    """Returns any text without control characters, quotes and backslashes."""
    return Chars(_OUTSIDE_TEXT, low, high, negated=True) if high else EMPTY


def object_language(schema: Schema, bounds: Bounds | None = None, text: FreeText = free_text) -> Node:
    """Returns the objects that `schema` describes; an impossible schema allows the empty object."""
    language = _Writer(schema, bounds or Bounds(), text).value({**schema, "type": "object"}, 0)
    return Text("{}") if language is NOTHING else language


class _Writer:
    """Walks one schema; `root` is where its references point into."""

    def __init__(self, root: Schema, bounds: Bounds, text: FreeText) -> None:
        self._root = root
        self._bounds = bounds
        self._text = text
        self._known: dict[tuple[str, int], Node] = {}

    def value(self, schema: Any, depth: int) -> Node:
        """Returns the language of one value; equal schemas at equal depth share theirs."""
        key = (_json(schema), depth)
        if key not in self._known:
            found = self._value(schema, depth)
            self._known[key] = NOTHING if least_length(found) > MOST_CHARACTERS else found
        return self._known[key]

    def _value(self, schema: Any, depth: int) -> Node:
        if schema is False or depth > self._bounds.depth:
            return NOTHING
        if not isinstance(schema, Mapping):
            schema = {}
        schema = self._flat(schema)
        if schema is None:
            return NOTHING
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                rest = {name: inner for name, inner in schema.items() if name != key}
                return alt(*self._choices(rest, schema[key], depth))
        if "const" in schema:
            return _listed([schema["const"]], schema)
        if isinstance(schema.get("enum"), list):
            return _listed(schema["enum"], schema)
        return alt(*self._by_type(schema, depth))

    def _choices(self, rest: Schema, branches: Sequence[Any], depth: int) -> list[Node]:
        usable = [branch for branch in branches if branch is not False]
        both = (merged(rest, branch if isinstance(branch, Mapping) else {}) for branch in usable)
        found = (self.value(branch, depth + 1) for branch in both)
        return [node for node in found if node is not NOTHING]

    def _flat(self, schema: Schema) -> Schema | None:
        """Resolves references and ``allOf``; None for a reference that leads nowhere or in a circle."""
        for _ in range(16):
            if isinstance(schema.get("$ref"), str):
                target = self._target(schema["$ref"])
                if not isinstance(target, Mapping):
                    return None if target is False else {}
                schema = merged({name: inner for name, inner in schema.items() if name != "$ref"}, target)
            elif isinstance(schema.get("allOf"), list):
                parts = schema["allOf"]
                schema = {name: inner for name, inner in schema.items() if name != "allOf"}
                for part in parts:
                    schema = merged(schema, part if isinstance(part, Mapping) else {})
            else:
                return schema
        return None

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        place: Any = self._root
        for step in reference[1:].strip("/").split("/") if len(reference) > 2 else ():
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, Mapping) and step in place:
                place = place[step]
            elif isinstance(place, list) and step.isdigit() and int(step) < len(place):
                place = place[int(step)]
            else:
                return None
        return place

    def _by_type(self, schema: Schema, depth: int) -> list[Node]:
        found = (self._typed(kind, schema, depth) for kind in _types(schema))
        return [node for node in found if node is not NOTHING]

    def _typed(self, kind: str, schema: Schema, depth: int) -> Node:
        match kind:
            case "string":
                return self._string(schema)
            case "integer":
                return _integer(schema)
            case "number":
                return _number(schema)
            case "boolean":
                return alt(Text("true"), Text("false"))
            case "null":
                return Text("null")
            case "array":
                return self._array(schema, depth)
            case "object":
                return self._object(schema, depth)
            case _:
                return NOTHING

    def _string(self, schema: Schema) -> Node:
        pattern = schema.get("pattern", FORMATS.get(str(schema.get("format"))))
        language = pattern_language(pattern) if isinstance(pattern, str) else None
        if language is None:
            low = _count(schema, "minLength", 0)
            if low > MOST_CHARACTERS:
                return NOTHING
            high = _count(schema, "maxLength", max(low, self._bounds.characters))
            language = (
                self._text(low, min(high, max(low, self._bounds.characters))) if low <= high else NOTHING
            )
        return seq(Text('"'), language, Text('"'))

    def _array(self, schema: Schema, depth: int) -> Node:
        first = schema.get("prefixItems")
        low = _count(schema, "minItems", 0)
        if low > MOST_PARTS:
            return NOTHING
        heads = (
            [self.value(item, depth + 1) for item in first[:MOST_PARTS]] if isinstance(first, list) else []
        )
        high = min(_count(schema, "maxItems", max(low, self._bounds.items)), max(low, self._bounds.items))
        item = schema.get("items", True)
        if schema.get("uniqueItems"):
            values = self._values(item)
            if values is not None:
                return _subset(values, low, high)
            high = min(high, max(low, 1))
        items = [heads[n] if n < len(heads) else self.value(item, depth + 1) for n in range(high)]
        if _is_too_long(items[:low]):
            return NOTHING
        possible = next((n for n, node in enumerate(items) if node is NOTHING), high)
        return _row("[", items[:possible], low, "]") if low <= possible else NOTHING

    def _values(self, item: Any) -> list[str] | None:
        flat = self._flat(item) if isinstance(item, Mapping) else None
        listed = flat.get("enum") if flat else None
        return list(dict.fromkeys(map(_json, listed))) if isinstance(listed, list) else None

    def _object(self, schema: Schema, depth: int) -> Node:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        listed = schema.get("required")
        required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        extra = schema.get("additionalProperties", True)
        low, high = _count(schema, "minProperties", 0), _count(schema, "maxProperties", MOST_PARTS)
        if max(low, len(required)) > MOST_PARTS:
            return NOTHING
        further = (name for name in properties if name not in required)
        taken = {*required, *itertools.islice(further, max(low, MOST_OPTIONAL))}
        properties = {name: inner for name, inner in properties.items() if name in taken}
        members = {name: self._member(name, inner, depth) for name, inner in properties.items()}
        for name in required:
            members.setdefault(name, self._member(name, extra, depth))
        if any(members[name] is NOTHING for name in required) or _is_too_long(
            [members[name] for name in required]
        ):
            return NOTHING
        members = {name: node for name, node in members.items() if node is not NOTHING}
        for name in members:  # optional ones become required until there are enough
            if len(required) < low and name not in required:
                required.append(name)
        if high < len(members):  # how many optional ones are taken cannot be counted: none are
            members = {name: node for name, node in members.items() if name in required}
        if not members and (isinstance(extra, Mapping) or low > 0):
            return self._map(extra, low, depth)
        return seq(Text("{"), _members(list(members.items()), required), Text("}"))

    def _member(self, name: str, schema: Any, depth: int) -> Node:
        return seq(Text(f"{_json(name)}:"), self.value(schema, depth + 1))

    def _map(self, extra: Any, low: int, depth: int) -> Node:
        """An object with free keys. Each begins with its number's letter, so that no two are equal."""
        letters = ((ord("a"), ord("z")),)
        value = self.value(extra, depth + 1)
        if value is NOTHING:
            return Text("{}") if low == 0 else NOTHING
        if _is_too_long([value] * low):
            return NOTHING
        count = max(low, self._bounds.items)
        if low <= 1:
            entries = [seq(Text('"'), Chars(letters, 1, 12), Text('":'), value)]
        else:
            entries = [
                seq(Text(f'"{n}'), Chars(letters, 1, 12), Text('":'), value) for n in range(1, count + 1)
            ]
        return _row("{", entries, low, "}")


def _is_too_long(nodes: Sequence[Node]) -> bool:
    """Says so before the nodes are put in a row, which copies them."""
    return least_length(Seq(tuple(nodes))) > MOST_CHARACTERS


def _members(members: list[tuple[str, Node]], required: Sequence[str]) -> Node:
    """The members in their order, those that are not required or not, with commas between."""
    with_comma: Node = EMPTY  # what follows where something stands before
    without: Node = EMPTY  # what follows where nothing does yet
    for name, node in reversed(members):
        chosen, later = seq(node, with_comma), seq(Text(","), node, with_comma)
        if name in required:
            with_comma, without = later, chosen
        else:
            with_comma, without = alt(later, with_comma), alt(chosen, without)
    return without


def _row(opening: str, items: Sequence[Node], low: int, closing: str) -> Node:
    """`low` to ``len(items)`` of the items, in their order, with commas between."""
    rest: Node = EMPTY
    for n in range(len(items) - 1, -1, -1):
        row = seq(Text("," if n else ""), items[n], rest)
        rest = row if n < low else optional(row)
    return seq(Text(opening), rest, Text(closing))


def _subset(values: Sequence[str], low: int, high: int) -> Node:
    """Different ones of the `values`, in their order: any one, or just as many as there must be."""
    if low > len(values):
        return NOTHING
    count = max(low, min(1, high))
    rows = itertools.islice(itertools.combinations(values, count), 200)
    choices = alt(*(Text("[" + ",".join(row) + "]") for row in rows))
    return choices if low else alt(choices, Text("[]"))


def _listed(values: Sequence[Any], schema: Schema) -> Node:
    kinds = _types(schema) if "type" in schema else None
    return alt(*(Text(_json(value)) for value in values if kinds is None or _kind(value) & set(kinds)))


def _kind(value: object) -> set[str]:
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    if isinstance(value, float):
        return {"number", "integer"} if value.is_integer() else {"number"}
    if value is None:
        return {"null"}
    return {"string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"}


def _types(schema: Schema) -> Sequence[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    if isinstance(kind, list):
        return [name for name in kind if isinstance(name, str)]
    signs = [name for name, keys in _SIGNS.items() if any(key in schema for key in keys)]
    return signs or _TYPES


def _integer(schema: Schema) -> Node:
    low, high, open_low, open_high = _limits(schema)
    least = None if low is None else math.floor(low) + 1 if open_low else math.ceil(low)
    most = None if high is None else math.ceil(high) - 1 if open_high else math.floor(high)
    step = _decimal(schema.get("multipleOf"))
    if step is not None and step > 0 and step != int(step):
        numerator, _ = step.as_integer_ratio()
        return integers(least, most, numerator)
    return integers(least, most, int(step) if step and step > 0 else 1)


def _number(schema: Schema) -> Node:
    low, high, open_low, open_high = _limits(schema)
    step = _decimal(schema.get("multipleOf"))
    if step is not None and step > 0:
        tiny = Decimal("1e-9")
        low = low + tiny if low is not None and open_low else low
        high = high - tiny if high is not None and open_high else high
        return multiples(step, low, high)
    return numbers(low, high, open_low, open_high)


def _limits(schema: Schema) -> tuple[Decimal | None, Decimal | None, bool, bool]:
    low, high = _decimal(schema.get("minimum")), _decimal(schema.get("maximum"))
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    open_low, open_high = above is True, below is True  # the form of draft 4
    above, below = _decimal(above), _decimal(below)
    if above is not None and (low is None or above >= low):
        low, open_low = above, True
    if below is not None and (high is None or below <= high):
        high, open_high = below, True
    return low, high, open_low, open_high


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Decimal(str(value))


def _count(schema: Schema, key: str, otherwise: int) -> int:
    value = schema.get(key)
    return (
        int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
        else otherwise
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
