"""Speech behind the place where a decode stopped."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from modalities.adapters.faster_whisper import FasterWhisper
from modalities.adapters.whisper_rest import continued, unheard_from
from modalities.ports import SPEECH_RATE_HZ, Clip, Pcm, Recognition, Word


def noise(seconds: float, level: float) -> Pcm:
    """Returns noise of a level (RMS) that stands for speech or for a room."""
    samples = round(seconds * SPEECH_RATE_HZ)
    return np.random.default_rng(1).normal(0, level, samples).astype(np.int16)


def test_rest_is_heard_again_where_speech_goes_on() -> None:
    """From just behind the last word on."""
    sound = np.concatenate((noise(3, 2_000), noise(0.5, 20), noise(3, 2_000)))
    start = unheard_from(sound, 3.0)
    assert start is not None
    assert 3.0 < start / SPEECH_RATE_HZ < 3.5


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (noise(4, 20), "a quiet room"),
        (noise(1.9, 2_000), "a short rest: alignment is wrong by so much"),
        (np.concatenate((noise(1, 2_000), noise(3, 20))), "one more sound"),
        (noise(4, 200), "somebody far away"),
    ],
)
def test_rest_that_is_no_speech_is_left(rest: Pcm, why: str) -> None:
    """Nothing is invented where nothing was said."""
    assert unheard_from(np.concatenate((noise(3, 2_000), rest)), 3.0) is None, why


def test_rest_becomes_part_of_the_whole() -> None:
    """Words keep their order and their places in the clip; what was silent adds nothing."""
    first = Recognition("One.", (Word("One.", 0.1, 0.5, 0.9),), average_logprob=-0.2)
    rest = Recognition("Two.", (Word("Two.", 0.3, 0.6, 0.8),), average_logprob=-0.4)
    whole = continued(first, rest, 4.0)
    assert whole.text == "One. Two."
    assert [(word.text, word.start_s, word.stop_s) for word in whole.words] == [
        ("One.", 0.1, 0.5),
        ("Two.", 4.3, 4.6),
    ]
    assert whole.average_logprob == pytest.approx(-0.3)
    assert continued(first, Recognition(""), 4.0) == first


@pytest.mark.corpus
@pytest.mark.real
def test_rest_of_a_clip_that_whisper_left_off_is_recognised(speech_data: Path) -> None:
    """Twelve seconds over several readers' sentences, of which the decoder writes the first only."""
    lines = (speech_data / "manifest.jsonl").read_text("utf-8").splitlines()
    files = [entry["file"] for entry in map(json.loads, lines) if entry["category"] == "clean_read"]
    read = [soundfile.read(speech_data / file, dtype="int16") for file in files]
    sound = np.concatenate([pcm for pcm, rate in read if rate == SPEECH_RATE_HZ and pcm.ndim == 1])
    recognizer = FasterWhisper()
    for start in range(0, 60 * SPEECH_RATE_HZ, 12 * SPEECH_RATE_HZ):
        clip = sound[start : start + 12 * SPEECH_RATE_HZ]
        if len(clip):
            words = recognizer.recognize([Clip(clip)])[0].words
            assert unheard_from(clip, words[-1].stop_s) is None
