"""What a model may write for a schema satisfies it, always ends, and can be ended wherever it was cut."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from modalities.adapters.grammar import NOTHING, after, gbnf, may_end, shortest
from modalities.adapters.schema_grammar import Bounds, object_language
from tests.modalities.adapters.json_schemas import SCHEMAS, drawn

RECURSIVE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "next": {"$ref": "#"},
        "kids": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["value"],
}


def parsed(text: str) -> Any:
    """Returns the value of strict JSON: no duplicate keys, no NaN."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in pairs}) == len(pairs)
        return dict(pairs)

    return json.loads(text, object_pairs_hook=unique, parse_constant=pytest.fail)


@given(SCHEMAS, st.integers())
def test_object_language_holds_only_what_the_schema_allows(schema: dict[str, Any], chance: int) -> None:
    """Any text of the language is JSON that satisfies the schema; so is its shortest."""
    language = object_language(schema)
    if not Draft202012Validator(schema).is_valid({}) and shortest(language) == "{}":
        pytest.fail("an object that the schema forbids")
    for text in (drawn(language, random.Random(chance)), shortest(language)):
        assert text is not None
        Draft202012Validator(schema).validate(parsed(text))


@given(SCHEMAS, st.integers(), st.data())
def test_object_language_cut_anywhere_is_ended_to_a_value_of_the_schema(
    schema: dict[str, Any], chance: int, data: st.DataObject
) -> None:
    """A beginning, whatever it is, has a shortest end, and both together satisfy the schema."""
    language = object_language(schema)
    text = drawn(language, random.Random(chance))
    begun = text[: data.draw(st.integers(0, len(text)))]
    rest = shortest(after(language, begun))
    assert rest is not None
    Draft202012Validator(schema).validate(parsed(begun + rest))
    assert may_end(after(language, text))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {}),
        ({"type": ["object", "null"]}, {}),
        ({"properties": {"a": False}}, {}),
        ({"properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}, {"a": 0, "b": 0}),
        ({"properties": {"a": {"const": 1}, "b": {"const": 2}}, "minProperties": 1}, {"a": 1}),
        ({"minProperties": 2, "additionalProperties": {"type": "null"}}, {"1a": None, "2a": None}),
        ({"properties": {"a": {"prefixItems": [{"const": 1}], "minItems": 1}}, "required": ["a"]}, {"a": [1]}),
        ({"properties": {"a": {"oneOf": [False, {"const": 3}]}}, "required": ["a"]}, {"a": 3}),
        (RECURSIVE, {"value": 0}),
        ({"$defs": {"n": {"$ref": "#/$defs/n"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}, {}),
        ({"$defs": {"n": {"const": "x"}}, "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a"]}, {"a": "x"}),
        ({"properties": {"a": {"not": {"type": "string"}, "type": "integer"}}, "required": ["a"]}, {"a": 0}),
        ({"properties": {"a": {"pattern": "(?=x)y", "type": "string"}}, "required": ["a"]}, {"a": ""}),
        ({"properties": "nonsense", "required": 3, "type": 5}, {}),
    ],
)  # fmt: skip
def test_object_language_knows_the_shapes_that_schemas_take(schema: dict[str, Any], expected: object) -> None:
    """Defaults, references, tuples, free keys and faults give the shortest object that fits."""
    text = shortest(object_language(schema))
    assert text is not None
    assert parsed(text) == expected


def test_object_language_of_an_impossible_schema_is_the_empty_object() -> None:
    """What nothing can satisfy still gives JSON."""
    schema = {"properties": {"a": False}, "required": ["a"]}
    assert shortest(object_language(schema)) == "{}"


def test_object_language_follows_references_down_to_its_depth_only() -> None:
    """A schema that contains itself ends, and reaches as deep as the bounds say."""
    language = object_language(RECURSIVE, Bounds(depth=2))
    assert after(language, '{"value":1,"next":{"value":2,"next":{') is NOTHING
    assert after(language, '{"value":1,"next":{"value":2') is not NOTHING


@pytest.mark.parametrize(
    ("inner", "inside", "outside"),
    [
        (
            {"type": "integer", "minimum": 8, "maximum": 120},
            ["8", "99", "120"],
            ["7", "121", "-8", "08", "8.0"],
        ),
        ({"type": "integer", "maximum": -3}, ["-3", "-40"], ["-2", "0", "3"]),
        ({"type": "integer", "exclusiveMinimum": 0}, ["1", "4321"], ["0", "-1"]),
        ({"type": "number", "minimum": 0, "maximum": 1}, ["0", "1", "0.5"], ["1.5", "-0.5"]),
        ({"type": "number", "exclusiveMaximum": 10}, ["9.99", "-7.25", "-1", "0"], ["10", "10.0"]),
        ({"type": "string", "enum": ["a", 'b"']}, ['"a"', '"b\\""'], ['"c"']),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"é世界"'], ['"a"', '"abcd"', '"a\\"']),
        ({"type": "string", "pattern": "^[A-Z]{2}$"}, ['"AB"'], ['"Ab"', '"ABC"']),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 1}, ["[]", "[null]"], ["[null,null]"]),
        ({"type": ["boolean", "null"]}, ["true", "null"], ["1"]),
    ],
)
def test_object_language_draws_the_line_where_the_schema_does(
    inner: dict[str, Any], inside: list[str], outside: list[str]
) -> None:
    """Values on the bounds belong to the language, values beyond do not."""
    language = object_language({"properties": {"x": inner}, "required": ["x"]})
    assert [text for text in inside if not may_end(after(language, f'{{"x":{text}}}'))] == []
    assert [text for text in outside if may_end(after(language, f'{{"x":{text}}}'))] == []


def asking(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


@pytest.mark.parametrize(
    "schema",
    [
        asking({"type": "string", "minLength": 10**9}),
        asking({"type": "array", "minItems": 10**9}),
        asking(
            {
                "type": "array",
                "minItems": 250,
                "items": {"type": "array", "minItems": 250, "items": {"type": "null"}},
            }
        ),
        asking({"type": "array", "items": False, "prefixItems": [{}] * 9_000, "minItems": 9_000}),
        asking({"type": "object", "minProperties": 10**9, "additionalProperties": {"type": "integer"}}),
        asking({"type": "string", "minLength": 1e300}),
        {"type": "object", "required": [f"p{n}" for n in range(5_000)]},
    ],
)
def test_object_language_of_a_schema_that_asks_for_very_much_is_the_empty_object(
    schema: dict[str, Any],
) -> None:
    """Sizes that no reply should have are as impossible as a contradiction, and cost as little."""
    assert shortest(object_language(schema)) == "{}"


def test_object_language_of_many_optional_members_shows_some() -> None:
    """However many there are, the grammar stays one that can be followed; those that must be there are."""
    names = [f"p{n}" for n in range(3_000)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names[-2:],
    }
    language = object_language(schema)
    assert len(gbnf(language)) < 32_768
    Draft202012Validator(schema).validate(parsed(shortest(language) or ""))
    assert '"p0"' in gbnf(language).replace("\\x22", '"')
