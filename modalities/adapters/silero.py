"""Voice activity detection by the Silero VAD network, run by ONNX Runtime.

The model file ships in the ``silero-vad`` package; that package is never imported, since it imports torch.
Network: https://github.com/snakers4/silero-vad (MIT), version 6: 512 new samples at 16 kHz behind 64 of the
window before, and an LSTM state of 2 x 128.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.onnx import load_network
from modalities.adapters.packages import package_file
from modalities.errors import AdapterUnavailable
from modalities.ports import SPEECH_RATE_HZ

WINDOW = 512
_PAST = 64
_LSTM = 128
STATE_WIDTH = _PAST + 2 * _LSTM


@dataclass(frozen=True, slots=True)
class SileroSettings:
    """What a configuration may say. `path` None takes the network of the installed ``silero-vad`` package."""

    path: str | None = None
    threads: int = 1


class SileroDetector:
    """Judges windows of many streams in one call, on one thread.

    A stream's state is one row: the last 64 samples, then the LSTM's hidden and cell vectors.
    """

    def __init__(self, settings: SileroSettings | None = None) -> None:
        """Loads the network. Raises `AdapterUnavailable` where it is missing."""
        settings = settings or SileroSettings()
        path = settings.path
        file = Path(path) if path else package_file("silero_vad", "data/silero_vad.onnx")
        if file is None or not file.is_file():
            raise AdapterUnavailable(str(path or "the Silero VAD model"), "pip install --no-deps silero-vad")
        self._session = load_network(file, settings.threads)
        self._rate = np.array(SPEECH_RATE_HZ, dtype=np.int64)

    @property
    def window(self) -> int:
        return WINDOW

    def new_state(self) -> NDArray[np.float32]:
        return np.zeros(STATE_WIDTH, dtype=np.float32)

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        n = len(windows)
        after = np.empty((n, STATE_WIDTH), dtype=np.float32)
        if n == 0:
            return np.empty(0, dtype=np.float32), after
        heard = np.concatenate((states[:, :_PAST], windows), axis=1, dtype=np.float32)
        lstm = np.ascontiguousarray(states[:, _PAST:].reshape(n, 2, _LSTM).transpose(1, 0, 2))
        probabilities, lstm_after = self._session.run(None, {"input": heard, "state": lstm, "sr": self._rate})
        after[:, :_PAST] = heard[:, -_PAST:]
        after[:, _PAST:] = lstm_after.transpose(1, 0, 2).reshape(n, 2 * _LSTM)
        return probabilities[:, 0], after
