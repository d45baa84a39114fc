"""Patterns of a JSON Schema as languages inside a JSON string."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.grammar import gbnf
from modalities.adapters.pattern_grammar import FORMATS, pattern_language
from tests.modalities.adapters.json_schemas import drawn

PATTERNS = [
    "^[A-Z]{3}$",
    r"^\d{2,4}-x?$",
    "(red|green)+",
    r"^\+?[0-9 ]{5,12}$",
    "[^a-c]e",
    r"a\\b",
    'q"q',
    r"^(?:[a-z]+\.)*[a-z]+@\w{2,5}$",
    ".{3}",
    "x*?y",
    "[é-ü世]{2}",
    r"[^\w]",
    *FORMATS.values(),
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(chance=st.integers())
def test_pattern_language_holds_only_what_the_pattern_finds(pattern: str, chance: int) -> None:
    """Whatever may be written is a JSON string in which the pattern is found."""
    language = pattern_language(pattern)
    assert language is not None
    text = json.loads(f'"{drawn(language, random.Random(chance))}"')
    assert re.search(pattern, text)
    assert len(text) < 200


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", r"(a)\1", "[", "a^b", "a$b", "(^a){2}", "^x|y^", r"\bword\b", r"\p{L}"]
)
def test_pattern_that_is_no_regular_language_is_told(pattern: str) -> None:
    """Look-around, back references, borders and faults are left to the caller."""
    assert pattern_language(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    ["(a|a){40}^", "((a{1000}){1000}){1000}", "a{100000}", "(" * 500 + "a" + "){9}" * 500, "a" * 2_000],
)
def test_pattern_that_asks_for_very_much_is_left_to_the_caller(pattern: str) -> None:
    """A client's pattern costs no more than a moment, and no text is as long as it likes."""
    assert pattern_language(pattern) is None


def test_pattern_of_all_characters_is_a_part_of_them() -> None:
    """Wide ranges are not written out."""
    language = pattern_language("[\0-\U0010ffff]" * 80)
    assert language is not None
    assert len(gbnf(language)) < 10_000
    wide = pattern_language("^[\u4e00-\U0010ffff]{3}$")
    assert wide is not None
    assert re.fullmatch("[\u4e00-\U0010ffff]{3}", drawn(wide, random.Random(1)))
