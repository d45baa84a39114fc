"""A foreign schema works without being written again."""

import pytest

from consistency.ontology import Ontology, ValueKind, kind_from
from tests.consistency.dialogue import ONTOLOGY


@pytest.mark.parametrize(
    ("name", "description", "values", "kind"),
    [
        ("leaving_date", "Date of the journey", (), "date"),
        ("s1", "Time of departure", (), "time"),
        ("s2", "Number of people", (), "number"),
        ("city", "Where the hotel is", (), "place"),
        ("album", "Album of the song", (), "name"),
        ("genre", "Genre of the movie", (), "text"),
        ("has_wifi", "Boolean flag", ("True", "False"), "boolean"),
        ("seats", "", ("1", "2"), "number"),
        ("price", "", ("cheap", "pricey"), "category"),
        ("x", "", (), "text"),
    ],
)
def test_kind_comes_from_values_name_and_description(
    name: str, description: str, values: tuple[str, ...], kind: ValueKind
) -> None:
    """Listed values first, then words."""
    assert kind_from(name, description, values) == kind


def test_service_is_the_named_one_else_the_one_that_has_the_intent() -> None:
    """A token need not name its service."""
    named, found = ONTOLOGY.service_of("hotels", "find_train"), ONTOLOGY.service_of("", "find_train")
    assert named is not None
    assert found is not None
    assert (named.name, found.name) == ("hotels", "trains")
    assert ONTOLOGY.service_of("", "unheard_of") is None
    assert Ontology().service_of("", "anything") is None
