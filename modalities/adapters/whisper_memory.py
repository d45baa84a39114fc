"""What Whisper's encoder made of the last utterances, kept so that texts can be scored without hearing them again."""

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KEPT_S = 60
"""How long an utterance is kept."""

KEPT_BYTES = 64 << 20
"""Of all of them together: some hundred short ones, eight of 30 s under a large model."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """Encoder output of one clip, its own part: shape (positions, width). `frames` of 10 ms are the clip's."""

    output: NDArray[np.float32]
    frames: int
    language: str


class EncodingMemory:
    """The last utterances by key; the least recently used leaves first. Bounded in seconds and bytes."""

    def __init__(self, seconds: float = KEPT_S, most_bytes: int = KEPT_BYTES) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, tuple[float, Remembered]] = OrderedDict()
        self._bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of what is kept now."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, key: str, heard: Remembered, now_s: float) -> None:
        """Keeps an utterance. One larger than the whole bound is not kept."""
        self._drop(key)
        self._kept[key] = (now_s, heard)
        self._bytes += heard.output.nbytes
        self._clear(now_s)

    def find(self, key: str, now_s: float) -> Remembered | None:
        """Returns an utterance; None where it is gone."""
        self._clear(now_s)
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[1]

    def _clear(self, now_s: float) -> None:
        for key in [key for key, (since_s, _) in self._kept.items() if now_s - since_s > self._seconds]:
            self._drop(key)
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= found[1].output.nbytes
