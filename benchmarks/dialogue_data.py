"""The dialogues of the consistency data as the graph wants them. Reads texts, tokens and the schema; what a turn is
labelled with is kept apart and shown to no rule."""

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consistency.context import Turn
from consistency.observation import Fact, Token
from consistency.ontology import IntentSpec, Ontology, ServiceSpec, SlotSpec, kind_from
from consistency.reading import Reading
from modalities.text.facts import facts_of

TODAY = datetime.date(2019, 3, 1)
"""The day on which these dialogues take place, as the paper on their source says (Rastogi et al. 2020)."""

Vectors = Mapping[str, NDArray[np.float32]]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
_BATCH = 32


@dataclass(frozen=True)
class Scored:
    """What is known of a scored turn, for the judge only."""

    dialogue: str
    index: int
    modality: str
    kind: str
    """Of its corruption; "" where it is coherent."""
    is_switch: bool

    @property
    def is_incoherent(self) -> bool:
        return bool(self.kind)


@dataclass(frozen=True)
class Step:
    """One turn, and what a judge knows of it (None where it is not scored)."""

    turn: Turn
    scored: Scored | None


@dataclass(frozen=True)
class Dialogue:
    """The turns of one conversation, in order."""

    name: str
    steps: tuple[Step, ...]


def facts(text: str) -> tuple[Fact, ...]:
    """The facts of a text, as the consistency package has them."""
    return tuple(Fact(one.kind, one.value, one.start, one.stop) for one in facts_of(text))


def ontology_from(schema: Mapping[str, object]) -> Ontology:
    """Returns the ontology of a schema file."""
    return Ontology({name: _service(name, settings) for name, settings in schema.items()})  # type: ignore[arg-type]


def _service(name: str, settings: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]) -> ServiceSpec:
    intents = {
        intent: IntentSpec(intent, str(one["description"]), tuple(one["required"]), tuple(one["optional"]))
        for intent, one in settings["intents"].items()
    }
    slots = {}
    for slot, one in settings["slots"].items():
        description, values = str(one["description"]), tuple(one["possible_values"])
        listed = values if one["categorical"] else ()
        slots[slot] = SlotSpec(
            slot, description, kind_from(slot, description, listed), dict.fromkeys(values, ())
        )
    return ServiceSpec(name, str(settings["description"]), intents, slots)


class Likenesses:
    """Cosines of utterances with what the ontology describes; every text is embedded once a run."""

    def __init__(self, ontology: Ontology, vectors: Vectors) -> None:
        self._vectors = vectors
        named = list(described(ontology).items())
        self._names = [name for name, _ in named]
        self._matrix = np.stack([vectors[text] for _, text in named])

    def of(self, text: str, values: Sequence[str]) -> dict[str, float]:
        """Returns the cosines of an utterance by name, rounded as they cross from a worker."""
        vector = self._vectors[text]
        found = dict(zip(self._names, np.round(self._matrix @ vector, 4).tolist(), strict=True))
        for value in values:
            found[f"value:{value}"] = round(float(self._vectors[value] @ vector), 4)
        return found


def described(ontology: Ontology) -> dict[str, str]:
    """Returns the texts that describe an ontology, by the names that `rules.Likeness` has for them."""
    found: dict[str, str] = {}
    for service in ontology.services.values():
        found[f"service:{service.name}"] = service.description
        for intent in service.intents.values():
            found[f"intent:{service.name}.{intent.name}"] = intent.description
        for slot in service.slots.values():
            found[f"slot:{service.name}.{slot.name}"] = slot.description
    return found


def load(folder: Path) -> tuple[list[dict[str, object]], Ontology]:
    """Reads the raw dialogues and the schema. Raises `OSError` where they are missing."""
    raw = [json.loads(line) for line in (folder / "dialogues.jsonl").read_text("utf-8").splitlines()]
    return raw, ontology_from(json.loads((folder / "schema.json").read_text("utf-8")))


def texts_of(raw: Sequence[Mapping[str, object]], ontology: Ontology) -> list[str]:
    """Returns every text that needs a vector, shortest first: texts of one length make good batches."""
    found = set(described(ontology).values())
    for dialogue in raw:
        for turn in dialogue["turns"]:  # type: ignore[attr-defined]
            if turn["speaker"] == "user":
                found.add(turn["text"])
                found |= {token["value"] for token in turn["tokens"] if token["value"]}
    return sorted(found, key=lambda text: (len(text), text))


def embedded(
    texts: Sequence[str], embed: Embed, progress: Callable[[int], None]
) -> dict[str, NDArray[np.float32]]:
    """Returns the vector of each text; `progress` hears how many are done."""
    found: dict[str, NDArray[np.float32]] = {}
    for first in range(0, len(texts), _BATCH):
        batch = texts[first : first + _BATCH]
        found.update(zip(batch, embed(batch), strict=True))
        progress(len(found))
    return found


def dialogues(
    raw: Sequence[Mapping[str, object]], read: Callable[[str], Reading], likenesses: Likenesses | None
) -> Iterator[Dialogue]:
    """Yields the dialogues; without likenesses, cosines are held against nothing."""
    for dialogue in raw:
        name, modality = str(dialogue["id"]), str(dialogue["modality"])
        steps = tuple(_step(turn, name, modality, read, likenesses) for turn in dialogue["turns"])  # type: ignore[attr-defined]
        yield Dialogue(name, steps)


def _step(
    turn: Mapping[str, object],
    dialogue: str,
    modality: str,
    read: Callable[[str], Reading],
    likenesses: Likenesses | None,
) -> Step:
    text = str(turn["text"])
    tokens = tuple(_token(token) for token in turn["tokens"])  # type: ignore[attr-defined]
    is_user = turn["speaker"] == "user"
    values = sorted({token.value for token in tokens if token.value})
    like = likenesses.of(text, values) if likenesses and is_user and tokens else {}
    scored = None
    if is_user and turn["label"] is not None:
        kind = turn["corruption"]["kind"] if turn["label"] == "incoherent" else ""  # type: ignore[index]
        scored = Scored(dialogue, int(turn["i"]), modality, kind, bool(turn["switch"]))  # type: ignore[call-overload]
    return Step(Turn("user" if is_user else "assistant", read(text), tokens, like), scored)


def _token(token: Mapping[str, str | None]) -> Token:
    return Token(
        intent=token["intent"] or "",
        slot=token["slot"] or "",
        value=token["value"] or "",
        act="request" if token["act"] == "request" else "inform",
        service=token["service"] or "",
    )
