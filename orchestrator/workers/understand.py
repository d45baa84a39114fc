"""Understanding in a worker process: a batch of texts in, vector, intent, slots and facts of each out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from consistency.whitening import shipped
from modalities.errors import PromptTooLong
from modalities.ports import Embedder, EmbeddingUnderstander, TokenCounter, Understander, Understanding
from modalities.text.facts import facts_and_form
from orchestrator.scheduling.work import Embed, Embedded, FactFound, SlotFound, Understand, Understood
from orchestrator.workers.desk import Tell, Wanted
from orchestrator.workers.frames import Task

VECTOR_SCALE = 32_767
"""A component of a unit vector times this, rounded, is what crosses: equal on every processor from there on."""


class TextUnderstander:
    """One call for a whole batch is one step."""

    def __init__(self, understander: Understander) -> None:
        self._understander = understander

    def probe(self) -> str:
        """Understands a greeting, and reads the tables that the first text would wait for."""
        (found,) = self._understander.understand(["hello there"])
        understood("", "no, hello there", found)
        return f"{type(self._understander).__name__}, {len(found.vector)} dimensions"

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        if any(isinstance(task.work, Embed) for task in tasks):
            self._embed(tasks, tell, wanted)
            return
        texts = [_text(task) for task in tasks]
        found = self._understander.understand(texts)
        for task, text, one in zip(tasks, texts, found, strict=True):
            if wanted(task.job_id):
                tell(understood(task.job_id, text, one))

    def _embed(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        """Texts are embedded one by one: quantised networks scale a batch as a whole, so that a vector would depend on
        its company."""
        if not isinstance(self._understander, EmbeddingUnderstander):
            raise TypeError(f"{type(self._understander).__name__} has no vectors of its own")
        embedder = self._understander.embedder
        for task in tasks:
            if not isinstance(task.work, Embed):
                raise TypeError("vectors and meanings are not asked for in one batch")
            tokens = _tokens(embedder, task.work.texts)
            vectors = []
            for text in task.work.texts:
                if not wanted(task.job_id):
                    break
                vectors.append(embedder.embed([text])[0].astype("<f4").tobytes())
            else:
                tell(Embedded(task.job_id, tuple(vectors), tokens))


def _tokens(embedder: Embedder, texts: Sequence[str]) -> int:
    """Counts tokens, where the embedder can, else words. Raises `PromptTooLong` on a text of which it would read only
    the beginning."""
    if not isinstance(embedder, TokenCounter):
        return sum(len(text.split()) for text in texts)
    counts = embedder.count(texts)
    most = embedder.longest_text
    if counts and max(counts) > most:
        raise PromptTooLong(f"A text has {max(counts)} tokens; the model reads {most} at most.")
    return sum(counts)


def understood(job_id: str, text: str, found: Understanding) -> Understood:
    """Returns what was found in a text as a report: its vector in int16 little-endian, its facts, its normal form."""
    vector = whitened(found.vector)
    slots = tuple(
        SlotFound(slot.name, slot.value, slot.start, slot.stop, slot.confidence) for slot in found.slots
    )
    facts, normal = facts_and_form(text)
    named = tuple(FactFound(fact.kind, fact.value, fact.start, fact.stop) for fact in facts)
    likeness = {name: round(10_000 * much) for name, much in found.likeness.items()}
    return Understood(
        job_id, vector.tobytes(), found.intent, found.confidence, slots, normal, named, likeness
    )


def whitened(vector: NDArray[np.float32]) -> NDArray[np.int16]:
    """Returns a sentence vector as the consistency engine compares it, int16 little-endian. One of a length that the
    shipped whitening was not fitted for crosses as it is, and is compared with nothing."""
    if len(vector) == len(shipped().mean):
        white: NDArray[np.int16] = shipped().apply(vector[None, :])[0].astype("<i2")
        return white
    plain: NDArray[np.int16] = np.clip(np.rint(vector * VECTOR_SCALE), -VECTOR_SCALE, VECTOR_SCALE).astype(
        "<i2"
    )
    return plain


def _text(task: Task) -> str:
    if not isinstance(task.work, Understand):
        raise TypeError(f"an understanding worker was given {type(task.work).__name__}")
    return task.work.text
