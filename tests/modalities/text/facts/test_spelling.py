"""Words spelled letter by letter."""

import pytest

from tests.modalities.text.facts.reading import told


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("my name is b o b", "bob"),
        ("b-o-b", "bob"),
        ("B as in boy, o, b", "bob"),
        ("double u a y n e", "wayne"),
        ("a double n a", "anna"),
        ("s for sierra o for oscar s", "sos"),
    ],
)
def test_spelling_joins_its_letters(text: str, letters: str) -> None:
    """Letters, explained letters and doubled ones."""
    assert told(text) == [("spelling", letters)]


@pytest.mark.parametrize("text", ["i like it", "can i for instance go", "vitamin c", "a plan b"])
def test_single_letters_that_spell_nothing_are_none(text: str) -> None:
    """A pronoun, an article, a name."""
    assert told(text) == []
