"""The form in which texts are compared."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.facts import facts_and_form, facts_of, normal_form
from modalities.text.normalize import number_words


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Could you please turn on the lights, thanks!", "turn on the lights"),
        ("Don't wake me at half past seven", "do not wake me at 7:30"),
        ("wake me at 19:30", "wake me at 7:30 pm"),
        ("wake me at eight in the evening", "wake me at 8:00 pm"),
        ("uh, what's the weather", "what is the weather"),
        ("bob's number", "bob's number"),
        ("I'm gonna be late", "i am going to be late"),
        ("set a timer for an hour and a half", "set a timer for 90 minutes"),
        ("it costs fifteen dollars fifty", "it costs 15.50 dollars"),
        ("on the 3rd of June 2026", "on june 3 2026"),
        ("the twenty-first song", "the 21st song"),
        ("fifty per cent", "50 percent"),
        ("at five, no, six", "at 6:00"),
        ("no, not Boston, Austin", "austin"),
        ("no, fifteen", "no, 15"),
        ("B as in boy, o, b", "b o b"),
        ("twenty, five", "20, 5"),
        ("please", ""),
    ],
)
def test_normal_form_of_what_people_say(text: str, form: str) -> None:
    """Small letters, opened contractions, digits; no manners, nothing that was taken back."""
    assert normal_form(text) == form


def _standing(text: str) -> list[tuple[str, str]]:
    return sorted((one.kind, one.value) for one in facts_of(text) if one.kind != "withdrawn")


_HOURS = st.integers(1, 12).map(number_words)
_COUNTS = st.integers(0, 4_000).map(number_words)
_FILLED = st.one_of(
    st.builds("wake me at half past {} please".format, _HOURS),
    st.builds("don't play {} songs, um, at a quarter to {}".format, _COUNTS, _HOURS),
    st.builds("could you set it to {} percent tomorrow morning".format, _COUNTS),
    st.builds("at {}, no, {} in the evening".format, _HOURS, _HOURS),
    st.builds("i'd like {} dollars for the {} of may".format, _COUNTS, st.integers(1, 31)),
    st.builds("a timer for {} hours and a half isn't it".format, _COUNTS),
)


@given(_FILLED)
def test_normal_form_keeps_the_facts_and_is_its_own(text: str) -> None:
    """The facts of the form are the facts of the text, and nothing is left to change."""
    form = normal_form(text)
    assert _standing(form) == _standing(text)
    assert normal_form(form) == form


@pytest.mark.dialogues
def test_normal_form_keeps_the_facts_of_recorded_talk(consistency_data: Path) -> None:
    """Of thousands of real and typed utterances, one in five hundred at the most reads differently."""
    lines = (consistency_data / "pairs_slurp.jsonl").read_text(encoding="utf-8").splitlines()
    texts = sorted({json.loads(line)[side] for line in lines for side in "ab"})
    changed = [text for text in texts if _standing(normal_form(text)) != _standing(text)]
    assert len(changed) <= len(texts) / 500, changed[:5]


@given(st.text(max_size=200))
def test_facts_and_form_are_what_each_alone_gives(text: str) -> None:
    """Reading once is reading the same."""
    assert facts_and_form(text) == (facts_of(text), normal_form(text))
