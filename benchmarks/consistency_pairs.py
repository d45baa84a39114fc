"""Pairs of texts of the consistency data, as the observations that the server would make of them."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_files import LABEL, MAYBE_TEXT, TEXT, BadData, numbered
from consistency.observation import NO_VECTOR, Fact, Observation
from consistency.whitening import shipped
from modalities.adapters.minilm_onnx import MiniLmOnnx
from modalities.text.facts import facts_and_form

AUDIT = Path(__file__).parent.parent / "docs" / "consistency-audit.csv"
BATCH = 32
FIELDS = {
    "id": TEXT,
    "type": TEXT,
    "label": LABEL,
    "a": TEXT,
    "b": TEXT,
    "said": MAYBE_TEXT,
    "intent": MAYBE_TEXT,
}

Judgement = Literal["consistent", "inconsistent", "unclear", ""]
READ: tuple[Judgement, ...] = ("consistent", "inconsistent")


@dataclass(frozen=True, slots=True)
class Pair:
    """A recogniser's text and a typed text. `inconsistent` is the published label, `judged` what reading it blind said
    (empty: not read), `judged_again` what a second reader said. `group` is equal for pairs of one utterance; it only
    makes folds."""

    id: str
    type: str
    inconsistent: bool
    heard: str
    typed: str
    group: int
    intent: str = ""
    judged: Judgement = ""
    judged_again: Judgement = ""

    @property
    def is_hard(self) -> bool:
        """Whether one critical thing was planted."""
        return self.type.startswith("hard_")

    @property
    def is_sure(self) -> bool:
        """Whether its label is sure: planted, or read and clear."""
        return self.is_hard or self.judged in READ

    @property
    def truth(self) -> bool:
        """The label, the audit's where there is one."""
        return self.judged == "inconsistent" if self.judged in READ else self.inconsistent

    @property
    def other_reading(self) -> "Pair":
        """The same pair, judged by the second reader alone."""
        return replace(self, judged=self.judged_again)


def read_pairs(data: Path, limit: int | None = None) -> list[Pair]:
    """Reads `pairs_slurp.jsonl` of a folder of the data's layout; with a limit every n-th pair. Pairs that the audit
    has read carry its judgements; other data has other pairs, whatever their ids.

    Raises OSError where the file is missing, `BadData` where a line is not as it should be or an id comes twice."""
    path = data / "pairs_slurp.jsonl"
    judged = audit()
    groups: dict[str, int] = {}
    pairs: dict[str, Pair] = {}
    for line, row in numbered(path, FIELDS):
        if row["id"] in pairs:
            raise BadData(path, line, "id", "each id once", row["id"])
        first, again = judged.get((row["id"], print_of(row["a"], row["b"])), ("", ""))
        pairs[row["id"]] = Pair(
            row["id"],
            row["type"],
            row["label"] == "inconsistent",
            row["a"],
            row["b"],
            groups.setdefault(row.get("said") or row["a"], len(groups)),
            row.get("intent") or "",
            first,
            again,
        )
    if not pairs:
        raise BadData(path, 1, "", "at least one pair")
    step = max(1, len(pairs) // limit) if limit else 1
    return list(pairs.values())[::step]


def audit() -> dict[tuple[str, str], tuple[Judgement, Judgement]]:
    """Returns both readers' judgements of docs/consistency-audit.csv by id and print of the texts."""
    with AUDIT.open(encoding="utf-8", newline="") as file:
        return {
            (row["id"], row["texts"]): (row["judgement"], row["second reader"])  # type: ignore[misc]
            for row in csv.DictReader(file)
        }


def print_of(heard: str, typed: str) -> str:
    """Returns eight hexadecimal digits of a pair's texts: by them the audit knows what it has read."""
    return blake2b(f"{heard}\t{typed}".encode(), digest_size=4).hexdigest()


class Observer:
    """Makes observations of texts: vector, facts and normal form, by the default model and the server's own readers."""

    def __init__(self) -> None:
        self._model = MiniLmOnnx()
        self._vectors: dict[str, NDArray[np.int16]] = {}

    def embed(self, texts: Sequence[str]) -> Iterator[int]:
        """Embeds texts in batches; yields how many are done, for a progress bar."""
        wanted = sorted(set(texts) - set(self._vectors), key=lambda text: (len(text), text))
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            self._vectors.update(zip(batch, shipped().apply(self._model.embed(batch)), strict=True))
            yield min(start + BATCH, len(wanted))

    def observe(self, pair: Pair) -> tuple[Observation, Observation]:
        """Returns what was heard and what was typed."""
        heard = replace(observe(pair.heard), id=f"{pair.id}/heard", modality="speech")
        typed = replace(observe(pair.typed), id=f"{pair.id}/typed")
        return (
            replace(heard, vector=self._vectors.get(pair.heard, NO_VECTOR)),
            replace(typed, vector=self._vectors.get(pair.typed, NO_VECTOR)),
        )


def observe(text: str) -> Observation:
    """Returns a typed text as an observation without a vector."""
    facts, normal = facts_and_form(text)
    named = tuple(Fact(fact.kind, fact.value, fact.start, fact.stop) for fact in facts)
    return Observation("", "text", 0, 0, text, normal, named)
