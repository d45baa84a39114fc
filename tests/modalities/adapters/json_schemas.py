"""JSON Schemas for tests, and texts drawn from a language."""

import random
from typing import Any

from hypothesis import strategies as st

from modalities.adapters.grammar import Alt, Chars, Node, Repeat, Seq, Text

_VALUES = ["red", "dark blue", 'quo"te', "back\\slash", 3, 2.5, None, True, [1], {"a": 1}]
_NAMES = st.sampled_from(["city", "days", "when", "note", "größe", 'a"b', "x y"])


def drawn(node: Node, chance: random.Random) -> str:
    """Returns a text of the language, chosen by `chance`."""
    match node:
        case Text():
            return node.text
        case Chars():
            count = chance.choice([node.low, min(node.low + 1, node.high), min(node.high, node.low + 30)])
            return "".join(_character(node, chance) for _ in range(count))
        case Seq():
            return "".join(drawn(part, chance) for part in node.parts)
        case Alt():
            return drawn(chance.choice(node.choices), chance)
        case Repeat():
            return "".join(
                drawn(node.part, chance)
                for _ in range(chance.randint(node.low, min(node.high, node.low + 3)))
            )


def _character(node: Chars, chance: random.Random) -> str:
    if node.negated:
        return next(c for c in iter(lambda: chance.choice("abc XYZ09-é世🙂'.,/<>"), None) if node.holds(c))
    first, last = chance.choice(node.ranges)
    return chr(chance.randint(first, last))


def _bounded(low: str, high: str, least: int, most: int) -> st.SearchStrategy[dict[str, int]]:
    number = st.integers(least, most)
    return st.one_of(
        st.just({}),
        st.builds(lambda a: {low: a}, number),
        st.builds(lambda a: {high: a}, number),
        st.builds(lambda a, b: {low: min(a, b), high: max(a, b)}, number, number),
    )


def _integers() -> st.SearchStrategy[dict[str, Any]]:
    limits = st.one_of(
        _bounded("minimum", "maximum", -2000, 2000),
        _bounded("exclusiveMinimum", "exclusiveMaximum", -50, 50).filter(
            lambda d: len(d) < 2 or d["exclusiveMaximum"] - d["exclusiveMinimum"] > 1
        ),
    )
    return limits.map(lambda d: {"type": "integer", **d})


def _numbers() -> st.SearchStrategy[dict[str, Any]]:
    sides = st.tuples(
        st.sampled_from(["minimum", "exclusiveMinimum"]), st.sampled_from(["maximum", "exclusiveMaximum"])
    )
    tenths = st.integers(-300, 300).map(lambda n: n / 10)

    def limits(names: tuple[str, str], one: float, other: float, which: int) -> dict[str, Any]:
        low, high = min(one, other), max(one, other)
        if low == high:
            high += 0.5
        return {
            "type": "number",
            **[{}, {names[0]: low}, {names[1]: high}, {names[0]: low, names[1]: high}][which],
        }

    return st.builds(limits, sides, tenths, tenths, st.integers(0, 3))


def _strings() -> st.SearchStrategy[dict[str, Any]]:
    patterns = [
        "^[A-Z]{3}$",
        r"^\d{2,4}-x?$",
        "(red|green)+",
        r"^\+?[0-9 ]{5,12}$",
        "[^a-c]e",
        "^$",
        r"a\\b",
        'q"q',
    ]
    return st.one_of(
        _bounded("minLength", "maxLength", 0, 90).map(lambda d: {"type": "string", **d}),
        st.sampled_from(patterns).map(lambda p: {"type": "string", "pattern": p}),
        st.sampled_from(
            ["date", "time", "date-time", "email", "uuid", "ipv4", "uri", "hostname", "color"]
        ).map(lambda f: {"type": "string", "format": f}),
    )


_LISTED: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.lists(
        st.sampled_from(["red", "dark blue", 'quo"te', "back\\slash", 3, 2.5, None, True, [1], {"a": 1}]),
        min_size=1,
    ).map(lambda values: {"enum": values}),
    st.sampled_from(["one", 7, False, None]).map(lambda value: {"const": value}),
)
_LEAVES = st.one_of(
    _integers(), _numbers(), _strings(), _LISTED, st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, True]),
    st.sampled_from([{"type": ["string", "null"]}, {"type": ["integer", "boolean"], "minimum": 3}]),
    st.sampled_from([{"type": "integer", "multipleOf": 15}, {"type": "number", "multipleOf": 0.5, "minimum": -3}]),
)  # fmt: skip


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        objects(inner),
        st.builds(
            lambda items, sizes, unique: {"type": "array", "items": items, **sizes, **unique},
            inner,
            _bounded("minItems", "maxItems", 0, 3),
            st.sampled_from([{}, {}, {"uniqueItems": False}]),
        ),
        st.builds(
            lambda values, low: {
                "type": "array",
                "uniqueItems": True,
                "minItems": low,
                "items": {"enum": values},
            },
            st.lists(st.text("abc", max_size=3), min_size=2, unique=True),
            st.integers(0, 2),
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda choices: {"anyOf": choices}),
        inner.map(lambda schema: {"allOf": [schema, {"description": "the same"}]}),
    )


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Object schemas over the inner ones, with some of the properties required."""

    def made(properties: dict[str, Any], required: list[str], closed: bool) -> dict[str, Any]:
        names = [name for name in dict.fromkeys(required) if name in properties]
        schema: dict[str, Any] = {"type": "object", "properties": properties, "required": names}
        return {**schema, "additionalProperties": False} if closed else schema

    return st.builds(
        made, st.dictionaries(_NAMES, inner, max_size=4), st.lists(_NAMES, max_size=4), st.booleans()
    )


SCHEMAS = objects(st.recursive(_LEAVES, _grown, max_leaves=8))
"""Schemas of objects, as tools describe their parameters."""
