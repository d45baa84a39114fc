"""Understanding jobs become texts, findings become reports."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from modalities.adapters.scripted import ScriptedEmbedder
from modalities.errors import PromptTooLong
from modalities.ports import Slot, Understanding
from orchestrator.scheduling.work import (
    Embed,
    Embedded,
    FactFound,
    Report,
    SlotFound,
    Speak,
    Understand,
    Understood,
)
from orchestrator.workers.engines import load
from orchestrator.workers.frames import Configure, Task
from orchestrator.workers.understand import TextUnderstander, understood


class _Understander:
    def understand(self, texts: Sequence[str]) -> list[Understanding]:
        return [Understanding(np.array([1, 0], np.float32), text, 0.5) for text in texts]


def test_understander_answers_a_batch_in_order() -> None:
    """One report per text; cancelled ones are not told."""
    told: list[Report] = []
    tasks = [Task(id, Understand(f"text {id}")) for id in "abc"]
    TextUnderstander(_Understander()).do(tasks, told.append, lambda id: id != "b")
    assert [(one.job_id, one.intent) for one in told if isinstance(one, Understood)] == [
        ("a", "text a"),
        ("c", "text c"),
    ]


def test_understander_other_work_is_a_fault() -> None:
    """A sentence to say is not understood."""
    with pytest.raises(TypeError):
        TextUnderstander(_Understander()).do([Task("j", Speak("x"))], lambda _: None, lambda _: True)


def test_understander_probe_says_how_long_its_vectors_are() -> None:
    """A real job, and what came out."""
    assert TextUnderstander(_Understander()).probe() == "_Understander, 2 dimensions"


def test_load_asks_a_language_model_where_one_is_configured() -> None:
    """The domain goes to it as a tool; what it answers is the finding."""
    call = {"name": "understand", "arguments": {"intent": "go", "slots": {}}}
    options = {
        "domain": {"intents": {"go": {"examples": ["go home"]}, "stay": {"examples": ["I remain"]}}},
        "language_model": {"engine": "scripted", "options": {"tool_calls": {"remain": call}}},
    }
    craft = load(Configure("understand", "scripted", options, 1, 1, 0, 1.0, {}))
    told: list[Report] = []
    craft.do([Task("a", Understand("I remain"))], told.append, lambda _: True)
    (found,) = told
    assert isinstance(found, Understood)
    assert found.intent == "go"


def test_understood_whitens_vectors_of_the_shipped_fit() -> None:
    """What crosses has 128 components and unit length; other models' vectors cross as they are."""
    drawn = np.random.default_rng(3).standard_normal(384).astype(np.float32)
    report = understood("j", "hello", Understanding(drawn / np.linalg.norm(drawn)))
    vector = np.frombuffer(report.vector, "<i2").astype(np.int64)
    assert len(vector) == 128
    assert abs(np.sqrt((vector**2).sum()) - 32_767) < 20
    assert len(understood("j", "hello", Understanding(np.ones(7, np.float32))).vector) == 14


def test_understood_carries_facts_and_normal_form() -> None:
    """What the consistency engine compares crosses with the vector: one look at a text is one job."""
    report = understood("j", "Wake me at half past seven, please", Understanding(np.zeros(1, np.float32)))
    assert report.normal == "wake me at 7:30"
    assert FactFound("time", "7:30", 11, 26) in report.facts


def test_understood_carries_intent_and_slots() -> None:
    """Offsets and confidences included."""
    found = Understanding(
        np.zeros(1, np.float32), "set_timer", 0.9, (Slot("duration", "ten minutes", 4, 15, 0.8),)
    )
    report = understood("j", "set a timer for ten minutes", found)
    assert (report.intent, report.confidence) == ("set_timer", 0.9)
    assert report.slots == (SlotFound("duration", "ten minutes", 4, 15, 0.8),)


@given(st.lists(st.floats(-1.5, 1.5, width=32), min_size=1, max_size=20))
def test_understood_vector_is_quantised_to_half_a_step(components: list[float]) -> None:
    """int16 little-endian, round(32767 · component), clipped to the unit range."""
    vector = np.array(components, np.float32)
    back = np.frombuffer(understood("j", "", Understanding(vector)).vector, dtype="<i2") / 32_767
    assert np.all(np.abs(back - np.clip(vector, -1, 1)) <= 0.5 / 32_767 + 1e-6)


def test_understood_tells_what_a_text_is_like() -> None:
    """Cosines cross as whole ten thousandths: the same on every processor from there on."""
    found = Understanding(np.array([1, 0], np.float32), likeness={"intent:d.go": 0.12346, "service:d": -0.5})
    assert understood("j", "go", found).likeness == {"intent:d.go": 1_235, "service:d": -5_000}


class _Embedder:
    """Vectors that tell how many texts came together, as a quantised network's do; a token is a letter."""

    dimensions = 2
    longest_text = 5

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[len(text), len(texts)] for text in texts], np.float32)

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


class _Embedding(_Understander):
    def __init__(self) -> None:
        self.embedder = _Embedder()


def _embedded(texts: tuple[str, ...], understander: Any) -> list[Report]:
    told: list[Report] = []
    TextUnderstander(understander).do([Task("j", Embed(texts))], told.append, lambda _: True)
    return told


def test_embedded_vectors_are_the_models_own_whatever_their_company() -> None:
    """Each text is embedded alone; the vectors are float32, little-endian, not whitened, and the tokens are counted."""
    (report,) = _embedded(("abc", "de"), _Embedding())
    assert isinstance(report, Embedded)
    vectors = [np.frombuffer(vector, "<f4").tolist() for vector in report.vectors]
    assert vectors == [[3.0, 1.0], [2.0, 1.0]]
    assert report.tokens == 5


def test_embedded_text_of_which_the_model_reads_a_part_is_refused() -> None:
    """Six letters where five are read: told, not cut."""
    with pytest.raises(PromptTooLong, match="6 tokens"):
        _embedded(("abc", "abcdef"), _Embedding())


def test_embedded_words_are_counted_where_tokens_cannot_be() -> None:
    """An embedder that does not say how it reads still answers."""
    understander = _Embedding()
    understander.embedder = ScriptedEmbedder()  # type: ignore[assignment]  # another embedder
    (report,) = _embedded(("one two", "three"), understander)
    assert isinstance(report, Embedded)
    assert report.tokens == 3


def test_embedding_without_an_embedder_is_a_fault() -> None:
    """An engine that has meanings and no vectors cannot be asked for these."""
    with pytest.raises(TypeError):
        _embedded(("a",), _Understander())


def test_embedding_that_is_taken_back_tells_nothing() -> None:
    """It stops before the next text."""
    told: list[Report] = []
    TextUnderstander(_Embedding()).do([Task("j", Embed(("a", "b")))], told.append, lambda _: False)
    assert told == []


def test_load_gives_an_understanding_worker_that_embeds() -> None:
    """With examples and with a language model alike: the vectors are those of the configured embedder."""
    model = {"language_model": {"engine": "scripted", "options": {}}}
    wanted = ScriptedEmbedder().embed(["hello you"])[0].astype("<f4").tobytes()
    for options in ({}, model):
        told: list[Report] = []
        craft = load(Configure("understand", "scripted", options, 1, 1, 0, 1.0, {}))
        craft.do([Task("a", Embed(("hello you",)))], told.append, lambda _: True)
        (report,) = told
        assert isinstance(report, Embedded)
        assert report.vectors == (wanted,)
