"""The recorded speech that CHORALE_SPEECH_DATA names: a manifest and files in every format people have."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Recording:
    """One file. `speech_s` is how much of it a voice activity detector took for speech, `speech` where (seconds).
    `turn_complete` False: the speaker has not finished."""

    path: Path
    name: str
    category: str
    transcript: str | None
    transcript_source: str
    language: str
    speech_s: float
    expect: str | None
    notes: str
    speech: tuple[tuple[float, float], ...] = ()
    turn_complete: bool | None = None


def read_manifest(folder: Path) -> list[Recording]:
    """Returns the recordings of a data folder in the manifest's order."""
    lines = (folder / "manifest.jsonl").read_text().splitlines()
    return [_recording(folder, json.loads(line)) for line in lines if line]


def pick(recordings: Sequence[Recording], categories: Sequence[str], limit: int | None) -> list[Recording]:
    """Returns the recordings of these categories; at most `limit`, spread evenly over and within the categories."""
    groups = [[recording for recording in recordings if recording.category == name] for name in categories]
    unknown = [name for name, group in zip(categories, groups, strict=True) if not group]
    if unknown:
        raise LookupError(f"the data has no category {', '.join(unknown)}")
    shares = [len(group) for group in groups]
    while limit is not None and sum(shares) > limit:
        shares[shares.index(max(shares))] -= 1
    return [
        group[index * len(group) // share]
        for group, share in zip(groups, shares, strict=True)
        for index in range(share)
    ]


def _recording(folder: Path, line: dict[str, object]) -> Recording:
    segments = line.get("vad_silero") or []
    assert isinstance(segments, list)
    return Recording(
        path=folder / str(line["file"]),
        name=str(line["file"]),
        category=str(line["category"]),
        transcript=None if line["transcript"] is None else str(line["transcript"]),
        transcript_source=str(line["transcript_source"]),
        language=str(line["language"]),
        speech_s=float(sum(stop - start for start, stop in segments)),
        expect=None if line.get("expect") is None else str(line["expect"]),
        notes=str(line.get("notes") or ""),
        speech=tuple((float(start), float(stop)) for start, stop in segments),
        turn_complete=None if line.get("turn_complete") is None else bool(line["turn_complete"]),
    )
