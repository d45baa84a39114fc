"""A VITS voice (Piper's ONNX export) that sounds before its sentence is computed whole.

Two thirds of a VITS voice's time go into its decoder, a convolution: a sample depends on few frames around it. So the
model is cut before the decoder (`onnx_cut`), the first part lays out the sentence's frames, and the decoder takes them
in chunks, each with so many frames around it that not a sample differs. A sentence of 5.4 s is heard after 143 ms
instead of 424, one of 1.9 s after 67 instead of 146 (one thread of an AMD EPYC, Piper's joe-medium).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.onnx import load_network
from modalities.adapters.onnx_cut import CannotCut, cut

Floats = NDArray[np.float32]

_FIRST_FRAMES = 24
_GROWTH = 2
_CONTEXTS = (12, 16, 24, 32, 48)
_SAME = 1e-4
"""What a chunked and a whole decode may differ in, of full scale: 3 steps of 16 bits."""


class VitsStream:
    """A cut voice. `hop` samples belong to a frame; `context` frames around a chunk make it exact."""

    def __init__(self, layout: Any, decoder: Any, border: str) -> None:  # two `onnxruntime.InferenceSession`s
        self._layout = layout
        self._decoder = decoder
        self._border = border
        self.hop, self.context = self._measured()

    def sound(self, inputs: Mapping[str, NDArray[Any]]) -> Iterator[Floats]:
        """Yields the sound of one sentence; the first chunk is short, the following ones grow."""
        frames = self._layout.run(None, dict(inputs))[0]
        start, size = 0, _FIRST_FRAMES
        while start < frames.shape[2]:
            # What would be left over as a crumb goes along.
            stop = start + size if frames.shape[2] - start - size > self.context else frames.shape[2]
            yield self._decode(frames, start, stop, self.hop, self.context)
            start, size = stop, size * _GROWTH

    def _decode(self, frames: Floats, start: int, stop: int, hop: int, context: int) -> Floats:
        before = min(context, start)
        sound = self._run(frames[:, :, start - before : stop + context])
        return sound[before * hop : (before + stop - start) * hop]

    def _run(self, frames: Floats) -> Floats:
        sound: Floats = self._decoder.run(None, {self._border: frames})[0].reshape(-1)
        return sound

    def _measured(self) -> tuple[int, int]:
        """Returns hop and context. Raises `CannotCut` where no context makes a chunk exact."""
        channels = self._decoder.get_inputs()[0].shape[1]
        size = 4 * _CONTEXTS[-1] + _FIRST_FRAMES  # further than any chunk looks, on both sides
        if not isinstance(channels, int):
            channels = _channels(self._layout)
        frames = np.random.default_rng(1).standard_normal((1, channels, size)).astype(np.float32)
        whole = self._run(frames)
        hop, rest = divmod(len(whole), size)
        if rest:
            raise CannotCut("the decoder does not make the same number of samples of each frame")
        start = 2 * _CONTEXTS[-1]
        stop = start + _FIRST_FRAMES
        for context in _CONTEXTS:
            chunk = self._decode(frames, start, stop, hop, context)
            if np.abs(chunk - whole[start * hop : stop * hop]).max() < _SAME:
                return hop, context
        raise CannotCut("the decoder looks further than a chunk can")


def load_vits_stream(file: Path, threads: int) -> VitsStream | None:
    """Returns a voice that streams; None where its model cannot be cut (one of several speakers, for example)."""
    try:
        layout, decoder, border = cut(file.read_bytes(), lambda name: name.startswith("/dec/"))
        return VitsStream(load_network(layout, threads), load_network(decoder, threads), border)
    except CannotCut:
        return None


def _channels(layout: Any) -> int:
    """Returns how many channels a frame has, by laying out the shortest sentence."""
    inputs = {
        "input": np.array([[1, 0, 2]], np.int64),
        "input_lengths": np.array([3], np.int64),
        "scales": np.array([0, 1, 0], np.float32),
    }
    return int(layout.run(None, inputs)[0].shape[1])
