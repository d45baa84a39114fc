"""Whisper by CTranslate2, one step at a time: sound to encoder output, that to text, text to word times.

Whisper's encoder is trained on 30 s windows, most of whose cost is silence. A short window alone makes the decoder
loop: it finds the end of the speech by the long silence behind it. So the encoder reads the clip and half a second of
silence, and what it makes of silence, computed once, is put behind its output up to the full window.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.whisper_judgement import Decoded
from modalities.ports import SPEECH_RATE_HZ, Pcm, Word

BUCKETS = (400, 500, 750, 1000, 1500, 2000, 3000)
"""Encoder lengths in frames of 10 ms. Below 400 more clips of one word are doubted, which costs more than it saves."""

FULL = BUCKETS[-1]
_HOP = 160
_PADDING_FRAMES = 50
_MAX_TOKENS = 448
_TOKENS_PER_SECOND = 10
_LEAST_TOKENS = 8
_NO_SPACE_BEFORE = "\"'.。,，!！?？:：”)]}、"
_NO_SPACE_AFTER = "\"'“¿([{-"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoder output of n clips of one bucket. `full` is what the decoder reads, `heard` the clips' own part."""

    full: Any  # ctranslate2.StorageView, a vendor's type
    heard: Any
    frames: tuple[int, ...]
    bucket: int


def bucket_of(samples: int) -> int:
    """Returns the encoder length for a clip: the first bucket that holds it and half a second of silence."""
    needed = min(FULL, -(-samples // _HOP) + _PADDING_FRAMES)
    return next(bucket for bucket in BUCKETS if bucket >= needed)


def token_limit(bucket: int) -> int:
    """Returns how many tokens a decode may have: more than speech of that length ever needs."""
    return min(_MAX_TOKENS // 2, _LEAST_TOKENS + _TOKENS_PER_SECOND * bucket // 100)


class WhisperEngine:
    """The model with its tokenizer and spectrogram. `language` is a code that the model knows, or None to detect."""

    def __init__(self, folder: Path, device: str, compute_type: str, threads: int) -> None:
        """Loads the model of a folder and, on a processor, encodes the silence that stands behind every clip."""
        from faster_whisper import WhisperModel

        self.model: Any = WhisperModel(
            str(folder), device=device, compute_type=compute_type, cpu_threads=threads
        )
        self.multilingual = bool(self.model.model.is_multilingual)
        self.languages = frozenset(self.model.supported_languages)
        self.shortens = device == "cpu"
        self._tokenizers: dict[str, Any] = {}
        self._silence: NDArray[np.float32] | None = None
        if self.shortens:
            self._silence = np.array(self.model.encode(self._spectrogram(_hush(), FULL)))

    def encode(self, clips: Sequence[Pcm], bucket: int) -> Encoded:
        """Encodes clips that fit a bucket, together."""
        import ctranslate2

        features = np.stack(
            [self._spectrogram(clip.astype(np.float32) / np.float32(32768), bucket) for clip in clips]
        )
        heard = self.model.encode(features)
        full = heard
        if self._silence is not None and bucket < FULL:
            own = np.array(heard)
            tail = np.broadcast_to(
                self._silence[:, own.shape[1] :], (len(clips), FULL // 2 - own.shape[1], own.shape[2])
            )
            full = ctranslate2.StorageView.from_array(np.concatenate((own, tail), axis=1))
        frames = tuple(min(bucket, max(2, -(-len(clip) // _HOP))) for clip in clips)
        return Encoded(full, heard, frames, bucket)

    def detect_languages(self, encoded: Encoded) -> list[str]:
        """Returns the most probable language of each clip."""
        if not self.multilingual:
            return ["en"] * len(encoded.frames)
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
        from faster_whisper.transcribe import get_suppressed_tokens

        tokenizer = self.tokenizer(language)
        prompt = self._prompt(tokenizer, bias)
        # CTranslate2 allows half of max_length to new tokens, and what the prompt leaves.
        longest = min(
            _MAX_TOKENS, max(2 * token_limit(encoded.bucket), len(prompt) + token_limit(encoded.bucket))
        )
        limit = min(longest // 2, longest - len(prompt))
        search = (
            {"beam_size": 1, "num_hypotheses": 5, "sampling_topk": 0, "sampling_temperature": temperature}
            if temperature > 0
            else {"beam_size": beam}
        )
        results = self.model.model.generate(
            encoded.full,
            [prompt] * len(encoded.frames),
            max_length=longest,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=get_suppressed_tokens(tokenizer, [-1]),
            **search,
        )
        return [self._decoded(result, tokenizer, language, limit, rung) for result in results]

    def words(
        self, encoded: Encoded, language: str, tokens: Sequence[Sequence[int]]
    ) -> list[tuple[Word, ...]]:
        """Places the words of clips of one language by cross-attention over the clips' own part."""
        from faster_whisper.transcribe import merge_punctuations

        tokenizer = self.tokenizer(language)
        texts = [[token for token in decoded if token < tokenizer.eot] for decoded in tokens]
        found = self.model.find_alignment(tokenizer, texts, encoded.heard, list(encoded.frames))
        placed = []
        for words in found:
            merge_punctuations(words, _NO_SPACE_AFTER, _NO_SPACE_BEFORE)
            placed.append(_trimmed([word for word in map(_word, words) if word.text]))
        return placed

    def tokenizer(self, language: str) -> Any:
        """Returns the tokenizer of a language."""
        from faster_whisper.tokenizer import Tokenizer

        if language not in self._tokenizers:
            self._tokenizers[language] = Tokenizer(
                self.model.hf_tokenizer, self.multilingual, "transcribe", language
            )
        return self._tokenizers[language]

    def _decoded(self, result: Any, tokenizer: Any, language: str, limit: int, rung: int) -> Decoded:
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
        )

    def _prompt(self, tokenizer: Any, bias: str | None) -> list[int]:
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        if not bias or not bias.strip():
            return prompt
        earlier = tokenizer.encode(f" {bias.strip()}")[-(_MAX_TOKENS // 2 - 1) :]
        return [tokenizer.sot_prev, *earlier, *prompt]

    def _spectrogram(self, sound: NDArray[np.float32], frames: int) -> NDArray[np.float32]:
        padded = np.zeros(frames * _HOP, dtype=np.float32)
        padded[: min(len(sound), len(padded))] = sound[: len(padded)]
        features: NDArray[np.float32] = self.model.feature_extractor(padded)[:, :frames]
        return features


def _hush() -> NDArray[np.float32]:
    """Returns a breath of faint noise: the level that a quiet room has beside speech."""
    return np.random.default_rng(0).normal(0.0, 1e-4, SPEECH_RATE_HZ // 10).astype(np.float32)


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
