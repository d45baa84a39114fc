"""Words with opposites."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.facts import facts_of, polarity


def _axes(text: str) -> dict[str, str]:
    values = [one.value for one in facts_of(text) if one.kind == "polarity"]
    return dict(part.rsplit(":", 1) for value in values for part in value.split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("on", "off"),
        ("open", "close"),
        ("increased", "decreasing"),
        ("lock", "unlock"),
        ("mute", "unmute"),
        ("add", "delete"),
        ("louder", "quieter"),
        ("tiny", "gigantic"),
        ("ascend", "descend"),
        ("happy", "unhappy"),
        ("careful", "careless"),
        ("first", "last"),
        ("disarm", "arm"),
        ("warmest", "coldest"),
    ],
)
def test_opposites_lie_on_two_sides_of_an_axis(one: str, other: str) -> None:
    """Direct antonyms, by satellites, by prefix, by ending, inflected, and what commands undo."""
    left, right = _axes(f"now {one}"), _axes(f"now {other}")
    assert any(left[axis] != right[axis] for axis in left.keys() & right.keys())


@pytest.mark.parametrize("text", ["put milk on my list on friday", "meet in may", "call me in the morning"])
def test_particle_before_a_day_is_a_preposition(text: str) -> None:
    """ "On" and "in" before a day or time stand against nothing."""
    assert sum(one.value.startswith(("off/on", "in/out")) for one in facts_of(text)) <= 1
    assert all(
        one.stop < len(text) - 6 for one in facts_of(text) if one.value.startswith(("off/on", "in/out"))
    )


def test_words_of_grammar_and_manners_have_no_side() -> None:
    """Nearly every sentence has them."""
    assert _axes("please can you do this for me thanks ok") == {}


@given(st.sampled_from(sorted(polarity.table())))
def test_no_word_lies_on_both_sides_of_an_axis(word: str) -> None:
    """Each axis is named once for a word, and there are two sides to each."""
    parts = [part.rsplit(":", 1) for part in polarity.table()[word].split()]
    assert len({axis for axis, _ in parts}) == len(parts)
    assert all(side and axis.count("/") == 1 for axis, side in parts)
