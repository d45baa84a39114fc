"""Options of a configuration become settings, or one error that names every fault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from modalities.adapters.options import settings_from
from modalities.errors import UnknownAdapter


@dataclass(frozen=True, slots=True)
class Settings:
    path: str | None = None
    threads: int = 1
    temperature: float = 0.5
    texts: Sequence[str] = ()
    replies: Mapping[str, str] = field(default_factory=dict)


def test_options_fill_the_settings_and_leave_the_rest() -> None:
    """Named options are taken, others keep their defaults; a whole number is a float as well."""
    settings = settings_from(Settings, "engine", {"path": "m.gguf", "temperature": 1, "texts": ["a"]})
    assert settings == Settings(path="m.gguf", temperature=1, texts=["a"])


def test_options_that_do_not_exist_are_named_together() -> None:
    """One error tells every unknown name and lists those that exist."""
    with pytest.raises(UnknownAdapter, match=r"engine: .*'thread'.*'sed'.*Options: .*threads"):
        settings_from(Settings, "engine", {"thread": 2, "sed": 1, "path": None})


@pytest.mark.parametrize(
    "options",
    [
        {"threads": "2"},
        {"threads": True},
        {"threads": 1.5},
        {"temperature": "hot"},
        {"path": 7},
        {"texts": [1]},
        {"replies": {"a": 1}},
        {"replies": ["a"]},
    ],
)
def test_options_of_another_type_are_refused_with_their_name(options: dict[str, object]) -> None:
    """A value of a wrong type, also inside a list or mapping, is refused by the name of its option."""
    with pytest.raises(UnknownAdapter, match=next(iter(options))):
        settings_from(Settings, "engine", options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"path": 7}, "expected str or null"),
        ({"threads": "2"}, "expected int"),
        ({"texts": 5}, "expected a list"),
        ({"replies": ["a"]}, "expected a mapping"),
    ],
)
def test_options_are_expected_in_words_of_a_configuration(options: dict[str, object], expected: str) -> None:
    """A file has mappings and lists, not Python's classes of them."""
    with pytest.raises(UnknownAdapter, match=rf"{expected}\. Options"):
        settings_from(Settings, "engine", options)
