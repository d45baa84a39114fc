"""Whisper by CTranslate2, one step at a time: sound to encoder output, that to text, text to word times.

Whisper's encoder is trained on 30 s windows, most of whose cost is silence. A short window alone makes the decoder
loop: it finds the end of the speech by the long silence behind it. So the encoder reads the clip and half a second of
silence, and what it makes of silence, computed once, is put behind its output up to the full window.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.memory import keep_freed_memory
from modalities.adapters.whisper_judgement import Decoded
from modalities.ports import SPEECH_RATE_HZ, Alternative, Pcm, Word

BUCKETS: tuple[int, ...] = (*range(300, 1000, 50), *range(1000, 2000, 100), *range(2000, 3001, 250))
"""Encoder lengths in frames of 10 ms. `chorale bench asr-sweep` measures what shorter ones would cost in words."""

FULL = BUCKETS[-1]
_HOP = 160
_PADDING_FRAMES = 50
_LIMITS_S = (5.0, 7.5, 10.0, 15.0, 20.0, 30.0)
_MAX_TOKENS = 448
_TOKENS_PER_SECOND = 10
_LEAST_TOKENS = 8
_WINDOW_FRAMES = 2
_RANGE = 2.0
_LEAST_LEVEL = -1.5
"""How Whisper scales a spectrogram: (log10 power + 4) / 4, floors at 10^-10 and at 10^-8 of the loudest."""

_NO_SPACE_BEFORE = "\"'.。,，!！?？:：”)]}、"
_NO_SPACE_AFTER = "\"'“¿([{-"


@dataclass(frozen=True, slots=True)
class Heard:
    """Encoder output of clips of one length, without what stands behind it; `places` says which clips."""

    places: tuple[int, ...]
    output: Any  # ctranslate2.StorageView, a vendor's type


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoder output of clips in order. `full` is what the decoder reads, `heard` the clips' own part by length, and
    `limit` how many tokens a decode of any of them may have."""

    clips: tuple[Pcm, ...]
    full: Any  # ctranslate2.StorageView, a vendor's type
    heard: tuple[Heard, ...]
    limit: int
    shortened: bool


def bucket_of(samples: int) -> int:
    """Returns the encoder length for a clip: the first bucket that holds it and half a second of silence."""
    needed = min(FULL, -(-samples // _HOP) + _PADDING_FRAMES)
    return next(bucket for bucket in BUCKETS if bucket >= needed)


def token_limit(samples: int) -> int:
    """Returns how many tokens a decode may have: more than speech of that length ever needs, and the same for clips of
    about one length, so that they can be decoded together."""
    at = min(bisect_left(_LIMITS_S, samples / SPEECH_RATE_HZ), len(_LIMITS_S) - 1)
    return min(_MAX_TOKENS // 2, _LEAST_TOKENS + int(_TOKENS_PER_SECOND * _LIMITS_S[at]))


class WhisperEngine:
    """The model with its tokenizer and spectrogram. `language` is a code that the model knows, or None to detect."""

    def __init__(self, folder: Path, device: str, compute_type: str, threads: int) -> None:
        """Loads the model of a folder and, on a processor, encodes the silence that stands behind every clip."""
        from faster_whisper import WhisperModel

        keep_freed_memory()
        self.model: Any = WhisperModel(
            str(folder), device=device, compute_type=compute_type, cpu_threads=threads
        )
        self.multilingual = bool(self.model.model.is_multilingual)
        self.languages = frozenset(self.model.supported_languages)
        self.shortens = device == "cpu"
        self._tokenizers: dict[str, Any] = {}
        self._silence: NDArray[np.float32] | None = None
        if self.shortens:
            self._silence = np.array(self.hear([_hush()], FULL))

    @property
    def silence(self) -> NDArray[np.float32] | None:
        """What stands behind a shortened clip: shape (1, 1500, width); None where nothing is shortened."""
        return self._silence

    def hear(self, clips: Sequence[Pcm], frames: int) -> Any:
        """Returns the encoder's output for clips cut or filled to so many frames: (clips, frames / 2, width)."""
        return self.model.encode(np.stack([self._spectrogram(clip, frames) for clip in clips]))

    def encode(self, clips: Sequence[Pcm], shorten: bool) -> Encoded:
        """Encodes clips that share a token limit, each at its own length where they are shortened."""
        lengths = [bucket_of(len(clip)) if shorten else FULL for clip in clips]
        heard = []
        for length in sorted(set(lengths)):
            places = tuple(place for place, own in enumerate(lengths) if own == length)
            heard.append(Heard(places, self.hear([clips[place] for place in places], length)))
        limit = max(token_limit(len(clip)) for clip in clips)
        whole = len(heard) == 1 and lengths[0] == FULL
        full = heard[0].output if whole or self._silence is None else self._filled(heard, len(clips))
        return Encoded(tuple(clips), full, tuple(heard), limit, shorten)

    def part(self, encoded: Encoded, places: Sequence[int]) -> Encoded:
        """Returns the encoding of some of the clips, in the order given."""
        if list(places) == list(range(len(encoded.clips))):
            return encoded
        clips = [encoded.clips[place] for place in places]
        if self._silence is None:
            # On a GPU the encoder is quicker than the way to the processor's memory and back.
            return self.encode(clips, encoded.shortened)
        full = _rows(encoded.full, places)
        heard = []
        for group in encoded.heard:
            rows = [(places.index(place), row) for row, place in enumerate(group.places) if place in places]
            if rows:
                output = _rows(group.output, [row for _, row in rows])
                heard.append(Heard(tuple(place for place, _ in rows), output))
        return Encoded(tuple(clips), full, tuple(heard), encoded.limit, encoded.shortened)

    def _filled(self, heard: Sequence[Heard], count: int) -> Any:
        """Puts silence behind what was heard, up to the full window."""
        import ctranslate2

        assert self._silence is not None
        full = np.repeat(self._silence, count, axis=0)
        for group in heard:
            own = np.array(group.output)
            full[list(group.places), : own.shape[1]] = own
        return ctranslate2.StorageView.from_array(full)

    def detect_languages(self, encoded: Encoded) -> list[str]:
        """Returns the most probable language of each clip."""
        if not self.multilingual:
            return ["en"] * len(encoded.clips)
        return [found[0][0][2:-2] for found in self.model.model.detect_language(encoded.full)]

    def decode(
        self,
        encoded: Encoded,
        language: str,
        bias: str | None,
        beam: int,
        rung: int,
        temperature: float = 0.0,
    ) -> list[Decoded]:
        """Decodes clips of one language and bias together. A temperature over 0 samples the best of five."""
        tokenizer = self.tokenizer(language)
        search: dict[str, float] = (
            {"beam_size": 1, "num_hypotheses": 5, "sampling_topk": 0, "sampling_temperature": temperature}
            if temperature > 0
            else {"beam_size": beam}
        )
        results, limit = self._generate(encoded, tokenizer, bias, search)
        return [
            self._decoded(result, tokenizer, language, limit, rung, 1 if temperature > 0 else beam)
            for result in results
        ]

    def _generate(
        self, encoded: Encoded, tokenizer: Any, bias: str | None, search: dict[str, float]
    ) -> tuple[list[Any], int]:
        """Returns the vendor's results, and how many tokens each may have."""
        from faster_whisper.transcribe import get_suppressed_tokens

        prompt = self._prompt(tokenizer, bias)
        # CTranslate2 allows half of max_length to new tokens, and what the prompt leaves.
        longest = min(_MAX_TOKENS, max(2 * encoded.limit, len(prompt) + encoded.limit))
        results = self.model.model.generate(
            encoded.full,
            [prompt] * len(encoded.clips),
            max_length=longest,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=get_suppressed_tokens(tokenizer, [-1]),
            **search,
        )
        return results, min(longest // 2, longest - len(prompt))

    def alternatives(
        self, encoded: Encoded, language: str, bias: str | None, count: int
    ) -> list[tuple[Alternative, ...]]:
        """Returns the likeliest texts of each clip, by a beam as wide as their number; alike ones are one."""
        tokenizer = self.tokenizer(language)
        results = self._generate(encoded, tokenizer, bias, {"beam_size": count, "num_hypotheses": count})[0]
        found = []
        for result in results:
            texts: dict[str, float] = {}
            for tokens, score in zip(result.sequences_ids, result.scores, strict=True):
                texts.setdefault(str(tokenizer.decode(list(tokens))).strip(), float(score) * len(tokens))
            found.append(tuple(Alternative(text, score) for text, score in texts.items()))
        return found

    def words(
        self, encoded: Encoded, language: str, tokens: Sequence[Sequence[int]]
    ) -> list[tuple[Word, ...]]:
        """Places the words of clips of one language by cross-attention over the clips' own part."""
        from faster_whisper.transcribe import merge_punctuations

        tokenizer = self.tokenizer(language)
        placed: list[tuple[Word, ...]] = [()] * len(tokens)
        for heard in encoded.heard:
            wanted = [n for n, place in enumerate(heard.places) if tokens[place]]
            if not wanted:
                continue
            places = [heard.places[n] for n in wanted]
            texts = [[token for token in tokens[place] if token < tokenizer.eot] for place in places]
            frames = [own_frames(encoded.clips[place]) for place in places]
            output = heard.output if len(wanted) == len(heard.places) else _rows(heard.output, wanted)
            found = self.model.find_alignment(tokenizer, texts, output, frames)
            for place, words in zip(places, found, strict=True):
                merge_punctuations(words, _NO_SPACE_AFTER, _NO_SPACE_BEFORE)
                placed[place] = _trimmed([word for word in map(_word, words) if word.text])
        return placed

    def row(self, output: Any, row: int) -> NDArray[np.float32]:
        """Returns one clip's encoder output as an array of its own: (positions, width)."""
        own: NDArray[np.float32] = np.array(_rows(output, [row]), dtype=np.float32)[0]
        return own

    def tokenizer(self, language: str) -> Any:
        """Returns the tokenizer of a language."""
        from faster_whisper.tokenizer import Tokenizer

        if language not in self._tokenizers:
            self._tokenizers[language] = Tokenizer(
                self.model.hf_tokenizer, self.multilingual, "transcribe", language
            )
        return self._tokenizers[language]

    def _decoded(
        self, result: Any, tokenizer: Any, language: str, limit: int, rung: int, beam: int
    ) -> Decoded:
        tokens = tuple(result.sequences_ids[0])
        logprob = result.scores[0] * len(tokens) / (len(tokens) + 1)
        return Decoded(
            str(tokenizer.decode(list(tokens))).strip(),
            tokens,
            float(logprob),
            float(result.no_speech_prob),
            language,
            len(tokens) >= limit,
            rung,
            beam,
        )

    def _prompt(self, tokenizer: Any, bias: str | None) -> list[int]:
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        if not bias or not bias.strip():
            return prompt
        earlier = tokenizer.encode(f" {bias.strip()}")[-(_MAX_TOKENS // 2 - 1) :]
        return [tokenizer.sot_prev, *earlier, *prompt]

    def _spectrogram(self, clip: Pcm, frames: int) -> NDArray[np.float32]:
        """Returns the log mel spectrogram of a clip with silence behind it, shape (bands, frames)."""
        sound = clip[: frames * _HOP].astype(np.float32) / np.float32(32768)
        # Beyond the clip's last window every frame is the floor: only what sounds is computed.
        sounding = min(frames, -(-len(sound) // _HOP) + _WINDOW_FRAMES)
        padded = np.zeros(sounding * _HOP, dtype=np.float32)
        padded[: len(sound)] = sound
        features: NDArray[np.float32] = self.model.feature_extractor(padded)[:, :sounding]
        floor = max(float(features.max()) - _RANGE, _LEAST_LEVEL)
        return np.pad(features, ((0, 0), (0, frames - sounding)), constant_values=floor)


def _rows(output: Any, rows: Sequence[int]) -> Any:
    """Returns some clips' encoder output, in the processor's memory."""
    import ctranslate2

    own = output if output.device == "cpu" else output.to_device(ctranslate2.Device.cpu)
    return ctranslate2.StorageView.from_array(np.array(own)[list(rows)])


def own_frames(clip: Pcm) -> int:
    """Returns how many frames of a clip's encoding are its own."""
    return min(FULL, max(2, -(-len(clip) // _HOP)))


def _hush() -> Pcm:
    """Returns a breath of faint noise: the level that a quiet room has beside speech."""
    return np.random.default_rng(0).normal(0.0, 3.3, SPEECH_RATE_HZ // 10).astype(np.int16)


def _trimmed(words: Sequence[Word]) -> tuple[Word, ...]:
    """Takes the pause before a word out of it: alignment gives a pause to the word that follows."""
    if not words:
        return ()
    usual = min(0.7, float(np.median([word.stop_s - word.start_s for word in words])))
    longest = max(2 * usual, 0.2)
    return tuple(replace(word, start_s=round(max(word.start_s, word.stop_s - longest), 3)) for word in words)


def _word(found: dict[str, Any]) -> Word:
    return Word(
        str(found["word"]).strip(),
        round(float(found["start"]), 3),
        round(float(found["end"]), 3),
        float(found["probability"]),
    )
