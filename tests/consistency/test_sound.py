"""Speech against typed text: the sound decides where texts alone cannot, in numbers that are the same everywhere."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency import sound
from consistency.distance import distance
from consistency.judge import Comparison
from consistency.observation import Fact, ForcedScore, Observation, Word
from consistency.sound import (
    LOST_NAMES,
    PAIR_NAMES,
    SoundJudge,
    from_json,
    shipped,
    to_json,
    utterance,
    witness,
)
from consistency.verdict import Evidence

S = 1_000_000


def said(text: str, *facts: Fact, probability: float = 0.95) -> Observation:
    words = tuple(Word(word, probability, n * S, (n + 1) * S) for n, word in enumerate(text.split()))
    return Observation("a", "speech", 0, S, text, text, facts, words=words, log_probability=-0.2)


def typed(text: str, *facts: Fact) -> Observation:
    return Observation("b", "text", 2 * S, 2 * S, text, text, facts)


def score(ratio: float, lowest: float, *apart: tuple[str, str, float], rung: int = 0) -> ForcedScore:
    return ForcedScore("typed", -2.0 + ratio, (-2.0 + ratio) / 8, lowest, -2.0, -0.25, -0.8, apart, rung)


HEARD = said("set a timer for fifty minutes", Fact("duration", "3000", 16, 29))
SAME = typed("set a timer for fifty minutes", Fact("duration", "3000", 16, 29))
OTHER = typed("set a timer for fifteen minutes", Fact("duration", "900", 16, 31))
FITS = score(0.0, -0.8)
NOT_SAID = score(-14.0, -9.0, ("fifty", "fifteen", -13.0))
MISHEARD = score(1.5, -0.9, ("fifty", "fifteen", 1.6))


def test_sound_model_ships_and_belongs_to_what_is_measured() -> None:
    """A fit for other features is refused, not misread."""
    model = shipped()
    assert model is not None
    told = json.loads(json.dumps(to_json(model)))
    assert from_json(told) == model
    told["first"]["weights"].pop("ratio")
    with pytest.raises(ValueError, match="other features"):
        from_json(told)


def test_sound_tells_the_same_words_from_a_contradiction() -> None:
    """Below half where the typed text is what was heard, frozen where neither text nor sound agree."""
    model = shipped()
    assert model is not None
    assert model.distance(witness(HEARD, SAME, FITS)) < 0.5
    assert model.distance(witness(HEARD, OTHER, NOT_SAID)) > 0.85


def test_witness_tells_what_the_texts_alone_say_and_reads_no_vectors() -> None:
    """Their distance is one of its numbers, as log odds; with vectors of whatever kind it is the same."""
    near, far = witness(HEARD, SAME, FITS), witness(HEARD, OTHER, FITS)
    at = PAIR_NAMES.index("by_texts")
    apart = distance(HEARD, OTHER)
    assert far[at] == pytest.approx(math.log((apart + 0.01) / (1.01 - apart)), abs=1e-4)
    assert near[at] < -2 < 2 < far[at]
    vector = np.full(128, 2_000, dtype=np.int16)
    assert witness(replace(HEARD, vector=vector), replace(OTHER, vector=-vector), FITS) == far


def test_sound_speaks_for_a_typed_text_that_was_misheard() -> None:
    """Texts alone see the same conflict twice; the sound tells them apart."""
    model = shipped()
    assert model is not None
    misheard = model.distance(witness(HEARD, OTHER, MISHEARD))
    assert misheard < model.distance(witness(HEARD, OTHER, NOT_SAID)) - 0.3


def test_two_witnesses_who_agree_are_surer_than_the_doubtful_one() -> None:
    """The second recogniser moves D towards what it heard."""
    model = shipped()
    assert model is not None
    doubtful = witness(HEARD, OTHER, score(-3.0, -3.0, ("fifty", "fifteen", -2.5)))
    alone = model.distance(doubtful)
    assert model.distance(doubtful, witness(HEARD, OTHER, NOT_SAID)) > alone
    assert model.distance(doubtful, witness(said(OTHER.text, *OTHER.facts), OTHER, FITS)) < alone


@given(
    st.floats(-200, 50),
    st.floats(-30, 0),
    st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5), st.floats(-40, 9))),
)
def test_sound_is_bounded_and_repeatable_for_any_score(
    ratio: float, lowest: float, apart: list[tuple[str, str, float]]
) -> None:
    """Whatever a recogniser says: as many features as the model has weights, a probability, the same twice."""
    model = shipped()
    assert model is not None
    one = score(ratio, lowest, *apart)
    features = witness(HEARD, OTHER, one)
    assert len(features) == len(PAIR_NAMES)
    found = model.distance(features)
    assert 0.0 <= found <= 1.0
    assert found == round(found, 4) == model.distance(witness(HEARD, OTHER, one))


class Texts:
    """A judge of texts that always says the same."""

    def compare(
        self,
        a: Observation,
        b: Observation,
        scores: tuple[ForcedScore, ...] = (),
        second: Observation | None = None,
    ) -> Comparison:
        return Comparison("restatement", 0.6, (Evidence("distance", 0.6),))


def test_judge_leaves_what_was_not_scored_to_the_judge_of_texts() -> None:
    """Without a score, and with the second recogniser's alone, nothing is changed."""
    judge = SoundJudge(Texts())
    assert judge.compare(HEARD, OTHER).distance == 0.6
    assert judge.compare(HEARD, OTHER, (replace(NOT_SAID, rung=3),)).distance == 0.6


def test_judge_decides_by_the_best_score_and_names_the_words() -> None:
    """Either order of the two; the relation stays that of the texts, their reasons behind its own."""
    judge = SoundJudge(Texts())
    found = judge.compare(HEARD, OTHER, (NOT_SAID, MISHEARD))
    assert found == judge.compare(OTHER, HEARD, (MISHEARD,))
    assert found.relation == "restatement"
    assert found.distance == found.evidence[0].value < 0.85
    assert found.evidence[0].about == "fifteen for fifty: +1.6"
    assert found.evidence[1] == Evidence("distance", 0.6)


def test_utterance_is_doubted_where_words_are_unsure_and_recognisers_disagree() -> None:
    """Certain words that both heard, against unsure ones that only one did."""
    model = shipped()
    assert model is not None
    clear = said("play jazz on the radio")
    sure = utterance(clear, [("play jazz on the radio", -0.5), ("play jazz on a radio", -3.0)], clear, FITS)
    unsure = said("and a voice on friday plays", probability=0.3)
    unsure = replace(unsure, log_probability=-0.9)
    other = said("add avicii to friday plays", probability=0.4)
    doubted = utterance(unsure, [(unsure.text, -6.0), ("advise on friday plays", -6.2)], other, NOT_SAID)
    assert len(sure) == len(doubted) == len(LOST_NAMES)
    for with_second in (False, True):
        assert model.lost(sure, with_second) < model.lost(doubted, with_second)


def test_utterance_without_content_is_measured_all_the_same() -> None:
    """Nothing to lose: no words, no alternatives, no second recogniser."""
    assert len(utterance(said("uh"))) == len(LOST_NAMES)
    assert utterance(said(""), [("", -1.0)])[6:] == (0.0,) * (len(LOST_NAMES) - 6)


def test_judge_without_a_fit_is_that_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file costs the sound its say, nothing else."""
    monkeypatch.setattr(sound, "shipped", lambda: None)
    assert SoundJudge(Texts()).compare(HEARD, OTHER, (NOT_SAID,)).distance == 0.6
