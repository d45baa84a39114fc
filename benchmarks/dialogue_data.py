"""The dialogues of the consistency data as the graph wants them. Reads texts, tokens and the schema; what a turn is
labelled with is kept apart and shown to no rule."""

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_files import LIST, MAYBE_TEXT, TEXT, BadData, Field, check, numbered, parts_of
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
OBJECT = Field(dict, "an object")
FIELDS = {"id": TEXT, "modality": TEXT, "services": LIST, "turns": LIST}
TURN_FIELDS = {
    "i": Field(int, "a whole number"),
    "speaker": Field(str, '"user" or "system"', ("user", "system")),
    "text": Field(str, "a text", may_be_blank=True),
    "tokens": LIST,
    "label": Field(str, '"coherent", "incoherent" or null', ("coherent", "incoherent"), may_lack=True),
    "switch": Field(bool, "true, false or null", may_lack=True),
}
TOKEN_FIELDS = dict.fromkeys(("service", "act", "intent", "slot", "value"), MAYBE_TEXT)
INTENT_FIELDS = {"description": TEXT, "required": LIST, "optional": LIST}
SLOT_FIELDS = {"description": TEXT, "categorical": Field(bool, "true or false"), "possible_values": LIST}


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
    """Reads the raw dialogues and the schema. Raises `OSError` where they are missing, `BadData` where they are not as
    they should be."""
    path = folder / "dialogues.jsonl"
    found = numbered(path, FIELDS)
    for line, row in found:
        parts_of(path, line, row, "turns", TURN_FIELDS)
        for place, turn in enumerate(row["turns"]):
            _check_turn(path, line, turn, f"turns[{place}].")
    return [row for _, row in found], ontology_from(_schema(folder / "schema.json"))


def _check_turn(path: Path, line: int, turn: Mapping[str, Any], within: str) -> None:
    for place, token in enumerate(turn["tokens"]):
        name = f"{within}tokens[{place}]"
        if not isinstance(token, dict):
            raise BadData(path, line, name, "an object", token)
        check(path, line, token, TOKEN_FIELDS, f"{name}.")
    if turn.get("label") == "incoherent":
        if not isinstance(turn.get("corruption"), dict):
            raise BadData(path, line, f"{within}corruption", "an object, as the turn is incoherent")
        check(path, line, turn["corruption"], {"kind": TEXT}, f"{within}corruption.")


def _schema(path: Path) -> dict[str, Any]:
    """Reads the schema."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise BadData(path, error.lineno, "", f"JSON ({error.msg})") from None
    if not isinstance(found, dict):
        raise BadData(path, 1, "", "an object of services", found)
    for name, service in found.items():
        if not isinstance(service, dict):
            raise BadData(path, 1, name, "an object", service)
        check(path, 1, service, {"description": TEXT, "intents": OBJECT, "slots": OBJECT}, f"{name}.")
        for part, fields in (("intents", INTENT_FIELDS), ("slots", SLOT_FIELDS)):
            for one, settings in service[part].items():
                check(path, 1, settings, fields, f"{name}.{part}.{one}.")
    return found


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
    if is_user and turn.get("label") is not None:
        kind = turn["corruption"]["kind"] if turn["label"] == "incoherent" else ""  # type: ignore[index]
        scored = Scored(dialogue, int(turn["i"]), modality, kind, bool(turn.get("switch")))  # type: ignore[call-overload]
    return Step(Turn("user" if is_user else "assistant", read(text), tokens, like), scored)


def _token(token: Mapping[str, str | None]) -> Token:
    return Token(
        intent=token["intent"] or "",
        slot=token["slot"] or "",
        value=token["value"] or "",
        act="request" if token["act"] == "request" else "inform",
        service=token["service"] or "",
    )
