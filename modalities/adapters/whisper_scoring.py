"""How likely a text is under a clip's sound: Whisper reads it out against the encoder output that is at hand.

Forced decoding (utterance verification, arXiv:2003.09180): one pass of the decoder over a given text gives every
token's probability. It reads the clip's own part of the encoder output, without the silence behind it: as telling as
the full window and a sixth of the work.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import fsum, log
from typing import Any

import numpy as np

from modalities.adapters.whisper_engine import FULL, Encoded, WhisperEngine, bucket_of, own_frames
from modalities.adapters.whisper_memory import EncodingMemory, Remembered
from modalities.ports import SPEECH_RATE_HZ, Claim, Difference, Fit, Fits
from modalities.text.renderings import renderings

ROWS_AT_ONCE = 32
"""Texts that go through the decoder together."""

_WINDOW_SAMPLES = 30 * SPEECH_RATE_HZ
_LEAST_PROBABILITY = 1e-10
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class _Row:
    """One spelling of one text of one claim; -1 is what was recognised."""

    claim: int
    text: int
    spelling: str
    words: tuple[tuple[int, ...], ...]


class ForcedScorer:
    """Scores texts under what an engine heard; `memory` holds what recognition left."""

    def __init__(self, engine: WhisperEngine, memory: EncodingMemory | None = None) -> None:
        self._engine = engine
        self.memory = memory or EncodingMemory()

    def remember(self, key: str, encoded: Encoded, place: int, language: str) -> None:
        """Keeps one clip of an encoding."""
        self.memory.keep(key, _part(self._engine, encoded, place, language), time.monotonic())

    def score(self, claims: Sequence[Claim], languages: Sequence[str | None]) -> list[Fits | None]:
        """Returns the fits of each claim, in order; `languages` are those of the clips, None to detect it."""
        heard = [self._heard(claim, language) for claim, language in zip(claims, languages, strict=True)]
        rows = [
            row
            for number, (claim, found) in enumerate(zip(claims, heard, strict=True))
            if found is not None
            for row in self._rows(number, claim, found.language)
        ]
        fits = self._fits(rows, heard)
        return [
            _best(number, claim, rows, fits) if heard[number] is not None else None
            for number, claim in enumerate(claims)
        ]

    def _heard(self, claim: Claim, language: str | None) -> Remembered | None:
        found = self.memory.find(claim.clip.key, time.monotonic()) if claim.clip.key else None
        if found is not None:
            return found
        samples = len(claim.clip.pcm)
        if not 0 < samples <= _WINDOW_SAMPLES or not claim.recognised.strip():
            return None
        encoded = self._engine.encode([claim.clip.pcm], self._engine.shortens)
        found = _part(self._engine, encoded, 0, language or self._engine.detect_languages(encoded)[0])
        if claim.clip.key:
            self.memory.keep(claim.clip.key, found, time.monotonic())
        return found

    def _rows(self, number: int, claim: Claim, language: str) -> list[_Row]:
        tokenizer = self._engine.tokenizer(language)

        def known(word: str) -> bool:
            return len(tokenizer.encode(f" {word}")) == 1

        spellings = [(-1, claim.recognised.strip())]
        for at, text in enumerate(claim.texts):
            ways = renderings(text, claim.recognised, known) or (text.strip() or ".",)
            spellings += [(at, way) for way in ways]
        return [
            _Row(number, at, way, tuple(tuple(tokenizer.encode(f" {word}")) for word in way.split()))
            for at, way in spellings
        ]

    def _fits(self, rows: Sequence[_Row], heard: Sequence[Remembered | None]) -> list[tuple[float, ...]]:
        """Returns the log probability of each word's tokens, flat, per row."""
        found: list[tuple[float, ...]] = [()] * len(rows)
        groups: dict[tuple[int, str], list[int]] = {}
        for at, row in enumerate(rows):
            one = heard[row.claim]
            assert one is not None
            groups.setdefault((len(one.output), one.language), []).append(at)
        for (_, language), members in groups.items():
            # Of about one length side by side: a batch takes as long as its longest text.
            members.sort(key=lambda at: sum(map(len, rows[at].words)))
            for start in range(0, len(members), ROWS_AT_ONCE):
                chosen = members[start : start + ROWS_AT_ONCE]
                sounds = [heard[rows[at].claim] for at in chosen]
                texts = [[token for word in rows[at].words for token in word] for at in chosen]
                for at, scores in zip(chosen, self._align(sounds, texts, language), strict=True):
                    found[at] = scores
        return found

    def _align(
        self, sounds: Sequence[Remembered | None], texts: Sequence[list[int]], language: str
    ) -> list[tuple[float, ...]]:
        import ctranslate2

        present = [one for one in sounds if one is not None]
        features = ctranslate2.StorageView.from_array(np.stack([one.output for one in present]))
        tokenizer = self._engine.tokenizer(language)
        results: list[Any] = self._engine.model.model.align(  # the vendor's own type
            features, tokenizer.sot_sequence, texts, [one.frames for one in present]
        )
        return [
            tuple(log(max(float(p), _LEAST_PROBABILITY)) for p in result.text_token_probs)
            for result in results
        ]


def _part(engine: WhisperEngine, encoded: Encoded, place: int, language: str) -> Remembered:
    """Returns a clip's own part of an encoding, cut to its bucket where it was heard in full."""
    clip = encoded.clips[place]
    group = next(one for one in encoded.heard if place in one.places)
    output = engine.row(group.output, group.places.index(place))
    frames = own_frames(clip)
    positions = min(len(output), bucket_of(len(clip)) // 2, FULL // 2)
    return Remembered(np.ascontiguousarray(output[:positions], dtype=np.float32), frames, language)


def _best(number: int, claim: Claim, rows: Sequence[_Row], fits: Sequence[tuple[float, ...]]) -> Fits:
    """Returns, of each text, the spelling that fits best."""
    own = [(row, scores) for row, scores in zip(rows, fits, strict=True) if row.claim == number]
    said, said_scores = own[0]
    recognised = _fit(said, said_scores, ())
    texts = []
    for at in range(len(claim.texts)):
        row, scores = max((one for one in own if one[0].text == at), key=lambda one: fsum(one[1]))
        texts.append(_fit(row, scores, _differences(said, said_scores, row, scores)))
    return Fits(recognised, tuple(texts))


def _fit(row: _Row, scores: tuple[float, ...], differences: tuple[Difference, ...]) -> Fit:
    total = fsum(scores)
    mean = total / max(1, len(scores))
    lowest = min(scores, default=0.0)
    return Fit(row.spelling, round(total, _DIGITS), round(mean, _DIGITS), round(lowest, _DIGITS), differences)


def _differences(
    said: _Row, said_scores: tuple[float, ...], row: _Row, scores: tuple[float, ...]
) -> tuple[Difference, ...]:
    """Returns where the words of a spelling differ from the recognised ones; signs and capitals do not count."""
    ours, theirs = said.spelling.split(), row.spelling.split()
    matcher = SequenceMatcher(
        None, [_key(word) for word in ours], [_key(word) for word in theirs], autojunk=False
    )
    left, right = _word_sums(said, said_scores), _word_sums(row, scores)
    return tuple(
        Difference(
            " ".join(ours[i1:i2]),
            " ".join(theirs[j1:j2]),
            round(fsum(right[j1:j2]) - fsum(left[i1:i2]), _DIGITS),
        )
        for what, i1, i2, j1, j2 in matcher.get_opcodes()
        if what != "equal"
    )


def _word_sums(row: _Row, scores: tuple[float, ...]) -> list[float]:
    sums, at = [], 0
    for word in row.words:
        sums.append(fsum(scores[at : at + len(word)]))
        at += len(word)
    return sums


def _key(word: str) -> str:
    return re.sub(r"[^\w%$£€']", "", word.lower())
