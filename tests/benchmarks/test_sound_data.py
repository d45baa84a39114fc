"""The clips and pairs of the data are read whole or not at all, and what is missing is named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.data_files import BadData
from benchmarks.sound_data import Hearing, Scored, clips_and_pairs, listen
from consistency.observation import ForcedScore
from consistency.sound import LOST_NAMES
from modalities.ports import Alternative, Pcm, Recognition, Word

CLIP = {"audio": "audio/a.ogg", "slots": [{"slot": "city", "value": "Boston"}], "snr_db": None}
PAIR = {"id": "p", "type": "typed_same", "label": "consistent", "audio": "audio/a.ogg", "b": "to Boston"}


def written(folder: Path, clip: dict[str, Any], pair: dict[str, Any]) -> Path:
    """A folder of one clip and one pair."""
    (folder / "audio").mkdir()
    (folder / "audio" / "a.ogg").write_bytes(b"")
    (folder / "clips.jsonl").write_text(json.dumps(clip) + "\n")
    (folder / "pairs_audio.jsonl").write_text(json.dumps(pair) + "\n")
    return folder


def test_clips_and_pairs_are_read(tmp_path: Path) -> None:
    """As they are."""
    assert clips_and_pairs(written(tmp_path, CLIP, PAIR)) == ([CLIP], [PAIR])


@pytest.mark.parametrize(
    ("clip", "pair", "told"),
    [
        (
            CLIP | {"audio": "audio/b.ogg"},
            PAIR,
            "clips.jsonl, line 1, field audio: expected the name of a file",
        ),
        (CLIP | {"slots": [{}]}, PAIR, "clips.jsonl, line 1, field slots[0].value: expected a text"),
        (CLIP | {"snr_db": "loud"}, PAIR, "field snr_db: expected a number or null, found"),
        (CLIP, PAIR | {"audio": "audio/b.ogg"}, "pairs_audio.jsonl, line 1, field audio: expected a clip of"),
        (CLIP, PAIR | {"label": True}, "pairs_audio.jsonl, line 1, field label: expected"),
    ],
)
def test_fault_is_named_with_its_place(
    tmp_path: Path, clip: dict[str, Any], pair: dict[str, Any], told: str
) -> None:
    """Before minutes are spent on listening."""
    with pytest.raises(BadData) as caught:
        clips_and_pairs(written(tmp_path, clip, pair))
    assert told in str(caught.value)


class Ears:
    """Hears the same of every clip, and finds every text equally likely."""

    def __init__(self, *others: Alternative) -> None:
        self.others = others

    def hear(self, pcm: Pcm, key: str) -> Hearing:
        first = Recognition("to Boston", (Word("to", 0.9, 0.0, 0.2), Word("Boston", 0.6, 0.2, 0.7)))
        return Hearing(first, replace(first, alternatives=self.others), 0.1)

    def score(self, pcm: Pcm, key: str, heard: Recognition, text: str, rung: int = 0) -> Scored:
        return Scored(ForcedScore(text, -1.0, -0.5, -0.6, -1.0, -0.5, -0.6, (), rung), 0.1)


def test_doubt_of_an_utterance_reads_what_else_the_second_recogniser_found_likely(tmp_path: Path) -> None:
    """Where that would rather have another city, the words have less support; where it is sure, all of it."""
    pytest.importorskip("soundfile").write(tmp_path / "a.wav", np.zeros(1_600), 16_000)
    (tmp_path / "audio").mkdir()
    (tmp_path / "a.wav").rename(tmp_path / "audio" / "a.ogg")
    for name, row in (("clips", CLIP), ("pairs_audio", PAIR)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
    sure, torn = (
        listen(tmp_path, ears, lambda name, done, total: None)  # type: ignore[arg-type]
        for ears in (Ears(), Ears(Alternative("to Boston", -1.0), Alternative("to Austin", -0.5)))
    )
    at = LOST_NAMES.index("second_support")
    assert sure[0][0].features[at] == 1.0
    assert 0.3 < torn[0][0].features[at] < 0.5
    assert [pair.inconsistent for pair in torn[1]] == [False]
