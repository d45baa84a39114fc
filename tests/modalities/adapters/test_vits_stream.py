"""Speech in chunks is the speech that is made in one piece."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from modalities.adapters.onnx_cut import CannotCut
from modalities.adapters.vits_stream import VitsStream, load_vits_stream

HOP = 4


class Layout:
    """Gives frames that were thought up before."""

    def __init__(self, count: int) -> None:
        self.frames = np.random.default_rng(5).standard_normal((1, 2, count)).astype(np.float32)

    def run(self, _: None, inputs: dict[str, Any]) -> list[NDArray[np.float32]]:
        """Returns the frames."""
        return [self.frames]


class Decoder:
    """Makes `HOP` samples of each frame out of the mean of all frames within `reach`."""

    def __init__(self, reach: int) -> None:
        self.reach = reach

    def get_inputs(self) -> list[Any]:
        """Returns the one input, its channels unknown."""

        class Input:
            shape = (1, "channels", "frames")

        return [Input()]

    def run(self, _: None, inputs: dict[str, NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Returns the sound of the frames."""
        (frames,) = inputs.values()
        kernel = np.ones(2 * self.reach + 1, np.float32)
        mean = np.convolve(frames[0].sum(axis=0), kernel)[self.reach : -self.reach or None]
        return [np.repeat(mean, HOP)[None, None].astype(np.float32)]


@pytest.mark.parametrize("count", [1, 24, 25, 36, 37, 61, 160, 448, 1000])
@pytest.mark.parametrize("reach", [0, 11, 12, 30])
def test_stream_chunks_join_to_the_whole(count: int, reach: int) -> None:
    """No sample differs, wherever the chunks are cut, and the first one is short."""
    layout, decoder = Layout(count), Decoder(reach)
    stream = VitsStream(layout, decoder, "z")
    chunks = list(stream.sound({}))
    (whole,) = decoder.run(None, {"z": layout.frames})
    assert np.allclose(np.concatenate(chunks), whole.reshape(-1), atol=1e-3)
    assert len(chunks[0]) <= (24 + stream.context) * HOP
    assert stream.hop == HOP
    assert reach <= stream.context


def test_stream_of_a_decoder_that_looks_everywhere_is_refused() -> None:
    """Chunks of it would differ from the whole."""
    with pytest.raises(CannotCut):
        VitsStream(Layout(10), Decoder(70), "z")


def test_stream_of_a_file_that_is_no_voice_is_none(tmp_path: Path) -> None:
    """The caller then loads the file whole, and says what is wrong with it."""
    file = tmp_path / "voice.onnx"
    file.write_bytes(b"something else")
    assert load_vits_stream(file, 1) is None
