"""Two schemas at once: what satisfies both satisfies the one that is made of them, and the other way round."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from modalities.adapters.schema_merge import merged


@pytest.mark.parametrize(
    ("one", "other", "good", "bad"),
    [
        ({"minimum": 3}, {"minimum": 5, "maximum": 9}, [5, 9], [4, 10]),
        ({"maxLength": 3, "type": "string"}, {"maxLength": 5}, ["abc"], ["abcd"]),
        ({"type": ["string", "null"]}, {"type": "string"}, ["a"], [None, 1]),
        ({"type": "number"}, {"type": "integer"}, [1], [1.5, "a"]),
        ({"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}, [2, 3], [1, 4]),
        ({"required": ["a"]}, {"required": ["b"]}, [{"a": 1, "b": 2}], [{"a": 1}, {"b": 2}]),
        (
            {"type": "object", "properties": {"a": {"minimum": 1}}},
            {"properties": {"a": {"maximum": 3}, "b": {"type": "string"}}},
            [{"a": 2, "b": "x"}],
            [{"a": 0}, {"a": 4}, {"b": 1}],
        ),
        ({"allOf": [{"minimum": 1}]}, {"allOf": [{"maximum": 3}]}, [1, 3], [0, 4]),
    ],
)
def test_merged_allows_what_both_allow(
    one: dict[str, Any], other: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    """Whichever stands first."""
    for both in (merged(one, other), merged(other, one)):
        check = Draft202012Validator(dict(both))
        assert all(check.is_valid(value) for value in good)
        assert not any(check.is_valid(value) for value in bad)


def test_merged_changes_neither() -> None:
    """The schemas are a client's, and may be used again."""
    one, other = {"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"maximum": 3}}}
    merged(one, other)
    assert (one, other) == ({"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"maximum": 3}}})
