"""The clips and speech pairs of the consistency data as the server hears them: recognised, and scored by the sound."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.consistency_pairs import observe
from benchmarks.data_files import LABEL, LIST, MAYBE_NUMBER, TEXT, BadData, numbered, parts_of
from benchmarks.kept_ears import Kept, asked_of
from consistency.observation import ForcedScore, Observation, Word
from consistency.sound import utterance, witness
from modalities.adapters.faster_whisper import FasterWhisper, WhisperSettings
from modalities.adapters.whisper_judgement import SECOND
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ, Claim, Clip, Fits, Pcm, Recognition
from modalities.text.normalize import normalize
from orchestrator.errors import ModelMissing
from orchestrator.models import resolve

ALTERNATIVES = 5
CLIP_FIELDS = {"audio": TEXT, "slots": LIST, "snr_db": MAYBE_NUMBER}
PAIR_FIELDS = {"id": TEXT, "type": TEXT, "label": LABEL, "audio": TEXT, "b": TEXT}
LOST_BELOW, KEPT_FROM = 0.8, 0.9
"""How alike a slot's value and the nearest words of the text are where it is lost, and where it is kept."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class HeardPair:
    """A clip and a typed text; `group` is equal for pairs of one clip. `first` and `second` are the witnesses'
    features; `heard_s` and `scored_s` are the times of the first recogniser's decode and of its forced score."""

    type: str
    inconsistent: bool
    noisy: bool
    group: int
    typed: str
    first: tuple[float, ...]
    second: tuple[float, ...] | None
    heard_s: float
    scored_s: float


@dataclass(frozen=True, slots=True)
class HeardClip:
    """A clip: is a slot's value lost in the first recogniser's text (None: unclear), and what is there to doubt?"""

    group: int
    noisy: bool
    lost: bool | None
    features: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Hearing:
    """What two recognisers made of a clip, each with its other likely texts; `took_s` is the first one's decode."""

    first: Recognition
    second: Recognition | None
    took_s: float


@dataclass(frozen=True, slots=True)
class Scored:
    """How well a text fits a clip (None: it was not told), and how long that took."""

    fit: ForcedScore | None
    took_s: float


@dataclass(frozen=True, slots=True)
class Ears:
    """One or two recognisers; `kept` remembers what they heard."""

    whisper: FasterWhisper
    both: bool
    kept: Kept | None = None

    def hear(self, pcm: Pcm, key: str) -> Hearing:
        """Returns what both made of a clip, and how long the first one's decode took."""
        if self.kept is None:
            return self._hear(pcm, key)
        return self.kept.answer(Hearing, pcm, f"hear {self.both}", lambda: self._hear(pcm, key))

    def score(self, pcm: Pcm, key: str, heard: Recognition, text: str, rung: int = 0) -> Scored:
        """Returns how well a text fits a clip under one of them."""
        if self.kept is None:
            return self._score(pcm, key, heard, text, rung)
        question = f"score {rung} {heard.text!r} {text!r}"
        return self.kept.answer(Scored, pcm, question, lambda: self._score(pcm, key, heard, text, rung))

    def _hear(self, pcm: Pcm, key: str) -> Hearing:
        start = time.perf_counter()
        first = self.whisper.recognize([Clip(pcm, key=key)])[0]
        took_s = time.perf_counter() - start
        # The other texts are asked for apart: they are no part of an ordinary decode.
        others = self.whisper.recognize([Clip(pcm, key=key, alternatives=ALTERNATIVES)])[0].alternatives
        again = Clip(pcm, rung=SECOND, key=key, alternatives=ALTERNATIVES)
        second = self.whisper.recognize([again])[0] if self.both else None
        return Hearing(replace(first, alternatives=others), second, took_s)

    def _score(self, pcm: Pcm, key: str, heard: Recognition, text: str, rung: int) -> Scored:
        start = time.perf_counter()
        found = self.whisper.score([Claim(Clip(pcm, rung=rung, key=key), heard.text, (text,))])[0]
        took_s = time.perf_counter() - start
        return Scored(None if found is None else forced(found, text, rung), took_s)


def ears(with_second: bool = True, keep: Path | None = None) -> Ears:
    """Returns the default recogniser, and Whisper base beside it where that is installed and wanted. `keep`: a folder
    that remembers what they hear."""
    try:
        second = resolve("asr", "faster_whisper", "whisper-base").options["path"] if with_second else None
    except ModelMissing:
        second = None
    path = resolve("asr", "faster_whisper", None).options["path"]
    settings = WhisperSettings(path=path, second=second)
    kept = Kept(keep, asked_of(settings)) if keep is not None else None
    return Ears(FasterWhisper(settings), second is not None, kept)


def forced(found: Fits, text: str, rung: int) -> ForcedScore:
    """Returns a recogniser's fit as the engine is told of it."""
    (fit,), own = found.texts, found.recognised
    apart = tuple((one.recognised, one.text, one.ratio) for one in fit.differences)
    return ForcedScore(text, fit.total, fit.mean, fit.lowest, own.total, own.mean, own.lowest, apart, rung)


def listen(
    data: Path, who: Ears, progress: Progress, limit: int | None = None
) -> tuple[list[HeardClip], list[HeardPair]]:
    """Hears every clip of a folder of the data's layout and scores its typed texts; with a limit every n-th clip.

    Raises OSError where there are none, `BadData` where a line is not as it should be. Clips in which nothing is heard
    are left out.
    """
    clips, typed = clips_and_pairs(data)
    step = max(1, len(clips) // limit) if limit else 1
    heard_clips: list[HeardClip] = []
    pairs: list[HeardPair] = []
    chosen = clips[::step]
    for group, row in enumerate(chosen):
        own = [one for one in typed if one["audio"] == row["audio"]]
        found = _one(who, row, own, _read(data / row["audio"]), group)
        if found is not None:
            heard_clips.append(found[0])
            pairs += found[1]
        progress("clips", group + 1, len(chosen))
    return heard_clips, pairs


def clips_and_pairs(data: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Reads `clips.jsonl` and `pairs_audio.jsonl`. Raises OSError where one is missing, `BadData` where a line is not
    as it should be, a clip's file is missing, or a pair's clip is in no line."""
    clips_path, pairs_path = data / "clips.jsonl", data / "pairs_audio.jsonl"
    clips, pairs = numbered(clips_path, CLIP_FIELDS), numbered(pairs_path, PAIR_FIELDS)
    for line, row in clips:
        parts_of(clips_path, line, row, "slots", {"value": TEXT})
        if not (data / row["audio"]).is_file():
            raise BadData(clips_path, line, "audio", "the name of a file of this folder", row["audio"])
    known = {row["audio"] for _, row in clips}
    for line, row in pairs:
        if row["audio"] not in known:
            raise BadData(pairs_path, line, "audio", "a clip of clips.jsonl", row["audio"])
    return [row for _, row in clips], [row for _, row in pairs]


def _one(
    who: Ears, row: dict[str, Any], typed: Sequence[dict[str, Any]], pcm: Pcm, group: int
) -> tuple[HeardClip, list[HeardPair]] | None:
    key = str(row["audio"])
    heard = who.hear(pcm, key)
    first, second = heard.first, heard.second
    if not first.text or (second is not None and not second.text):
        return None
    noisy = row.get("snr_db") is not None
    ours = observed(first)
    theirs = observed(second) if second is not None else None
    crossed = who.score(pcm, key, second, first.text, SECOND).fit if second is not None else None
    doubts = utterance(ours, others_of(first), theirs, crossed, others_of(second))
    clip = HeardClip(group, noisy, is_lost(row["slots"], first.text), doubts)
    pairs = []
    for one in typed:
        score = who.score(pcm, key, first, one["b"])
        other = who.score(pcm, key, second, one["b"], SECOND).fit if second is not None else None
        assert score.fit is not None
        text = replace(observe(one["b"]), id="typed")
        pairs.append(
            HeardPair(
                one["type"],
                one["label"] == "inconsistent",
                noisy,
                group,
                one["b"],
                witness(ours, text, score.fit),
                witness(theirs, text, other) if theirs is not None and other is not None else None,
                heard.took_s,
                score.took_s,
            )
        )
    return clip, pairs


def others_of(heard: Recognition | None) -> list[tuple[str, float]]:
    """Returns a recogniser's likeliest texts with the logarithms of their probabilities."""
    return [(one.text, one.log_probability) for one in heard.alternatives] if heard is not None else []


def observed(heard: Recognition) -> Observation:
    """Returns what was recognised as an observation, its times from the clip's start."""
    words = tuple(
        Word(one.text, one.probability, round(one.start_s * 1e6), round(one.stop_s * 1e6))
        for one in heard.words
    )
    return replace(
        observe(heard.text), id="heard", modality="speech", words=words, log_probability=heard.average_logprob
    )


def is_lost(slots: Sequence[dict[str, str]], text: str) -> bool | None:
    """Whether a slot's value is not in a text, "20th" for "twentieth" being the same; None where that is unclear."""
    alike = min((_alike(one["value"], text) for one in slots), default=1.0)
    return None if LOST_BELOW <= alike < KEPT_FROM else alike < LOST_BELOW


def _alike(value: str, text: str) -> float:
    wanted, given = normalize(value, keep_fillers=True), normalize(text, keep_fillers=True)
    joined, best = "".join(wanted), 0.0
    for length in range(max(1, len(wanted) - 1), len(wanted) + 3):
        for start in range(max(1, len(given) - length + 1)):
            span = "".join(given[start : start + length])
            best = max(best, SequenceMatcher(None, joined, span, autojunk=False).ratio())
    return best


def _read(path: Path) -> Pcm:
    import soundfile

    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    pcm: Pcm = np.clip(np.round(samples.mean(axis=1) * 32768), -32768, 32767).astype(np.int16)
    if rate == SPEECH_RATE_HZ:
        return pcm
    resampler = Resampler(rate, SPEECH_RATE_HZ)
    return np.concatenate((resampler.feed(pcm), resampler.flush()))
