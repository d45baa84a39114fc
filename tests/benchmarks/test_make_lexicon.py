"""The word tables come out of WordNet's files as promised; here out of a WordNet of a few words."""

from pathlib import Path

import pytest

from benchmarks.make_lexicon import opposites, related
from benchmarks.wordnet import WordNet, inflected

_DATA = {
    "noun": [
        "00000001 03 n 01 animal 0 000 | a beast",
        "00000002 03 n 02 dog 0 hound 0 001 @ 00000001 n 0000 | a pet",
    ],
    "verb": [
        "00000011 30 v 01 lift 0 001 ! 00000012 v 0101 01 + 08 00 | move up",
        "00000012 30 v 01 sink 0 002 ! 00000011 v 0101 ~ 00000013 v 0000 01 + 08 00 | move down",
        "00000013 30 v 01 scuttle 0 001 @ 00000012 v 0000 01 + 08 00 | sink a ship",
    ],
    "adj": [
        "00000021 00 a 01 vast 0 002 & 00000023 a 0000 ! 00000022 a 0101 | big",
        "00000022 00 a 01 minute 0 001 ! 00000021 a 0101 | little",
        "00000023 00 s 01 endless 0 001 & 00000021 a 0000 | without bound",
        "00000024 00 a 01 tidy 0 000 | neat",
        "00000025 00 a 01 untidy 0 000 | not neat",
    ],
    "adv": [],
}
_INDEX = {
    "noun": ["animal n 1 0 1 0 00000001", "dog n 1 1 @ 1 0 00000002", "hound n 1 1 @ 1 0 00000002"],
    "verb": [
        "lift v 1 1 ! 1 0 00000011",
        "scuttle v 1 1 @ 1 0 00000013",
        "sink v 1 2 ! ~ 1 0 00000012",
    ],
    "adj": [
        *("vast a 1 2 & ! 1 0 00000021", "minute a 1 1 ! 1 0 00000022", "endless a 1 1 & 1 0 00000023"),
        *("tidy a 1 0 1 0 00000024", "untidy a 1 0 1 0 00000025"),
    ],
    "adv": [],
}


@pytest.fixture
def wordnet(tmp_path: Path) -> WordNet:
    """A folder as Debian's wordnet-base has it."""
    for name, lines in _DATA.items():
        head = ["  1 This is a licence.  "] if name == "noun" else []
        (tmp_path / f"data.{name}").write_text("".join(f"{line}\n" for line in [*head, *lines]))
        (tmp_path / f"index.{name}").write_text("".join(f"{line}\n" for line in _INDEX[name]))
        (tmp_path / f"{name}.exc").write_text("sank sink\nsunken sink\n" if name == "verb" else "")
    (tmp_path / "cntlist.rev").write_text("dog%1:03:00:: 1 42\n")
    return WordNet.read(tmp_path)


def test_wordnet_is_read_with_its_licence_and_counts(wordnet: WordNet) -> None:
    """Synsets, senses by frequency, irregular forms."""
    assert wordnet.licence == "This is a licence.\n"
    assert wordnet.senses("dog", "n") == [(("n", "00000002"), 42)]
    assert wordnet.irregular == {"sank": "sink", "sunken": "sink"}
    assert "sank" in set(inflected("sink", wordnet))


def test_opposites_are_direct_by_satellites_by_troponyms_and_by_prefix(wordnet: WordNet) -> None:
    """Each word on its side of the axis, its forms too; words of grammar and of other facts are left out."""
    table = dict(line.split("\t") for line in opposites(wordnet))
    assert "lift/sink:lift" in table["lift"]
    assert "lift/sink:sink" in table["sinking"]
    assert "lift/sink:sink" in table["sank"]
    assert table["scuttle"] == "lift/sink:sink"
    assert table["endless"] == "minute/vast:vast"
    assert "tidy/untidy:untidy" in table["untidy"]
    assert "minute" not in table
    assert "off" not in table


def test_related_lists_meanings_kinds_and_irregular_forms(wordnet: WordNet) -> None:
    """Three lists, apart by empty lines; words without a tie to any other are left out."""
    words, kinds, irregular = "\n".join(related(wordnet)).split("\n\n")
    meanings = dict(line.split("\t") for line in words.split("\n"))
    assert meanings["dog"] == meanings["hound"]
    assert dict(line.split("\t") for line in kinds.split("\n"))[meanings["dog"]] == meanings["animal"]
    assert "tidy" not in meanings
    assert irregular == "sank\tsink\nsunken\tsink"
