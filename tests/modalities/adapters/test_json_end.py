"""A JSON text cut anywhere is ended to JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.json_end import json_end

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.booleans(), st.data())
def test_json_end_makes_any_beginning_whole(
    value: dict[str, Any], ascii_only: bool, data: st.DataObject
) -> None:
    """Wherever an object's text is cut, in whatever layout, beginning and end together parse to an object."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=data.draw(st.sampled_from([None, 1])))
    begun = text[: data.draw(st.integers(0, len(text)))]
    assert isinstance(json.loads(begun + json_end(begun)), dict)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_json_end_adds_nothing_to_what_is_whole(value: dict[str, Any]) -> None:
    """A complete object stays as it is."""
    assert json_end(json.dumps(value)) == ""


@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("", {}),
        ('{"city": "Par', {"city": "Par"}),
        ('{"a": [1, {"b": tr', {"a": [1, {"b": True}]}),
        ('{"a": 1, "b', {"a": 1, "b": None}),
        ('{"a": -', {"a": 0}),
        ('{"a": "x\\u00e', {"a": "xà"}),
    ],
)
def test_json_end_keeps_what_was_written(begun: str, whole: dict[str, Any]) -> None:
    """The end keeps every value that was begun as near to it as JSON allows."""
    assert json.loads(begun + json_end(begun)) == whole
