from pathlib import Path

import pytest

from benchmarks.recordings import Recording, pick, read_manifest

CATEGORIES = ("clean_read", "command")


def recording(category: str, number: int) -> Recording:
    return Recording(Path(f"{number}.wav"), f"{number}.wav", category, None, "none", "en", 1.0, None, "")


def test_picking_spreads_a_limit_over_and_within_categories() -> None:
    """A small part is taken from everywhere, always the same; without a limit everything is."""
    every = [recording(name, number) for name in CATEGORIES for number in range(10)]
    picked = [(one.category, one.name) for one in pick(every, CATEGORIES, 5)]
    assert picked == [
        ("clean_read", "0.wav"),
        ("clean_read", "5.wav"),
        ("command", "0.wav"),
        ("command", "3.wav"),
        ("command", "6.wav"),
    ]
    assert pick(every, CATEGORIES, None) == every


def test_picking_from_a_category_that_is_not_there_names_it() -> None:
    """A misspelt category is an error, not an empty run."""
    with pytest.raises(LookupError, match="commands"):
        pick([recording("command", 1)], ["command", "commands"], None)


@pytest.mark.corpus
def test_the_manifest_lists_files_that_are_there(speech_data: Path) -> None:
    """Every line of the manifest is a recording whose file exists; spoken ones say how much speech they hold."""
    every = read_manifest(speech_data)
    assert len(every) > 200
    assert not [one.name for one in every if not one.path.is_file()]
    assert all(one.speech_s > 1 for one in every if one.category == "clean_read")
