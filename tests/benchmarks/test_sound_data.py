"""The clips and pairs of the data are read whole or not at all, and what is missing is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.data_files import BadData
from benchmarks.sound_data import clips_and_pairs

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
