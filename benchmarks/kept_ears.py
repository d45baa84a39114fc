"""Ears that remember: what a recogniser made of a clip is kept in a folder, so that a fit goes on where it was stopped.

Hearing the clips of the data takes minutes; everything that is made of it takes seconds. Each answer is a
file, named by all that it depends on: the sound, the question, the models and the code that asks them.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import modalities.adapters
from modalities.ports import Pcm

_CODE = ("faster_whisper.py", "whisper_*.py")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder of answers. `asked` names who answers: models, settings, code."""

    folder: Path
    asked: str

    def answer(self, kind: type[Answer], pcm: Pcm, question: str, ask: Callable[[], Answer]) -> Answer:
        """Returns the answer that is kept, or asks and keeps it. A file that is cut off or not of this kind counts as
        none. Raises OSError where the folder cannot be written to."""
        name = hashlib.sha256(f"{self.asked}\0{question}\0".encode() + pcm.tobytes()).hexdigest()[:32]
        file = self.folder / f"{name}.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=kind)
        except (FileNotFoundError, msgspec.DecodeError):
            found = ask()
        self.folder.mkdir(parents=True, exist_ok=True)
        # Written beside and moved: who is stopped here leaves no half file under the name.
        half = file.with_suffix(f".{os.getpid()}")
        half.write_bytes(msgspec.json.encode(found))
        half.replace(file)
        return found


def asked_of(settings: Any) -> str:
    """Returns what names recognisers of these settings: models by path and size, settings, and the adapter's code."""
    code = hashlib.sha256()
    for root in modalities.adapters.__path__:
        for pattern in _CODE:
            for file in sorted(Path(root).glob(pattern)):
                code.update(file.read_bytes())
    models = []
    for path in (settings.path, settings.second):
        if path is not None:
            told = (Path(path) / "model.bin").stat()
            models.append((str(path), told.st_size))
    return json.dumps([asdict(settings), models, code.hexdigest()], sort_keys=True, default=str)
