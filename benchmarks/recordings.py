"""The recorded speech that CHORALE_SPEECH_DATA names: a manifest and files in every format people have."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Pcm = NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Recording:
    """One file. `speech_s` is how much of it a voice activity detector took for speech."""

    path: Path
    name: str
    category: str
    transcript: str | None
    transcript_source: str
    language: str
    speech_s: float
    expect: str | None
    notes: str


class Undecodable(Exception):
    """The file holds no sound that a decoder finds."""


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


def decode(path: Path, rate_hz: int) -> Pcm:
    """Returns a file's sound as mono int16, its channels mixed, as a client's media library would.

    Raises `Undecodable`. A file that breaks off gives what came before the break.
    """
    import av

    pieces: list[Pcm] = []
    try:
        with av.open(str(path), metadata_errors="ignore") as container:
            resampler = av.AudioResampler(format="s16", layout="mono", rate=rate_hz)
            try:
                for frame in container.decode(audio=0):
                    frame.pts = None
                    pieces += [piece.to_ndarray()[0] for piece in resampler.resample(frame)]
            except av.FFmpegError:
                if not pieces:
                    raise
            pieces += [piece.to_ndarray()[0] for piece in resampler.resample(None)]
    except (av.FFmpegError, IndexError, ValueError) as error:
        raise Undecodable(f"{path.name}: {error}") from error
    sound: Pcm = np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
    if not len(sound):
        raise Undecodable(f"{path.name}: no samples")
    return sound


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
    )
