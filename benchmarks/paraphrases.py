"""How well sentences in words of their own are understood: intents and slots of the domains that ship.

    python -m benchmarks.paraphrases                 both halves, and what was missed of the open one
    python -m benchmarks.paraphrases --data PATH     and prohibitions: who is given what he forbids

The sentences are `tests/modalities/tokens/paraphrases.yaml`. Every second one is kept apart: nothing was changed by
looking at it.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from benchmarks.data_files import TEXT, BadData, rows_of
from modalities.adapters.registry import build
from modalities.ports import Embedder, Understanding
from modalities.text.facts import normal_form
from modalities.tokens.ontology import Domain, domain_from
from modalities.tokens.understand import ExampleUnderstander

ROOT = Path(__file__).parents[1]
SENTENCES = ROOT / "tests" / "modalities" / "tokens" / "paraphrases.yaml"
Half = Literal["open", "apart"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is said, and what it means."""

    text: str
    intent: str | None
    slots: dict[str, str]


@dataclass(slots=True)
class Score:
    """Counts of sentences, and of those whose intent, slots (all, and no others) and both were found. `invented`: slots
    that were found and are none."""

    sentences: int = 0
    intents: int = 0
    slots: int = 0
    both: int = 0
    invented: int = 0

    def __str__(self) -> str:
        shares = (self.intents, self.slots, self.both)
        intents, slots, both = (f"{100 * one / max(self.sentences, 1):3.0f} %" for one in shares)
        return f"{self.sentences:4}  intent {intents}  slots {slots}  both {both}  invented {self.invented}"


def sentences(half: Half) -> dict[str, list[Sentence]]:
    """Returns one half of the sentences, by the name of their domain."""
    start = 0 if half == "open" else 1
    told = yaml.safe_load(SENTENCES.read_text())
    return {name: [Sentence(*row) for row in rows[start::2]] for name, rows in told.items()}


def domain(name: str) -> Domain:
    """Returns a domain that ships."""
    return domain_from(yaml.safe_load((ROOT / "configs" / "domains" / f"{name}.yaml").read_text()))


def score(said: Sequence[Sentence], found: Sequence[Understanding]) -> tuple[Score, list[str]]:
    """Returns the counts, and a line for each sentence that was not understood."""
    counts, missed = Score(), []
    for one, understanding in zip(said, found, strict=True):
        # Without an intent only general values are looked for; those are nobody's slots.
        got = {slot.name: _form(slot.value) for slot in understanding.slots} if understanding.intent else {}
        wanted = {name: _form(value) for name, value in one.slots.items()}
        intent, slots = understanding.intent == one.intent, got == wanted
        counts.sentences += 1
        counts.intents += intent
        counts.slots += slots
        counts.both += intent and slots
        counts.invented += len(got.items() - wanted.items())
        if not (intent and slots):
            missed.append(f"{one.text!r}: {one.intent} {one.slots}, got {understanding.intent} {got}")
    return counts, missed


def measure(half: Half, embedder: Embedder) -> dict[str, tuple[Score, list[str]]]:
    """Returns the counts of one half, by domain."""
    return {
        name: score(said, ExampleUnderstander(embedder, domain(name)).understand([one.text for one in said]))
        for name, said in sentences(half).items()
    }


def prohibitions(data: Path, embedder: Embedder) -> tuple[int, list[str]]:
    """Returns of how many commands of the consistency data the intent is known, each of which stands there turned into
    a prohibition too, and the prohibitions that are understood as the command that they forbid.

    Raises OSError where there is no such data, `BadData` where a line is not as it should be."""
    rows = rows_of(data / "pairs_slurp.jsonl", {"type": TEXT, "a": TEXT, "b": TEXT})
    rows = [row for row in rows if row["type"] == "hard_negation"]
    known, given = 0, []
    for name in ("default", "smart_home"):
        understander = ExampleUnderstander(embedder, domain(name))
        wanted = understander.understand([row["a"] for row in rows])
        forbidden = understander.understand([row["b"] for row in rows])
        for row, command, prohibition in zip(rows, wanted, forbidden, strict=True):
            known += command.intent is not None
            if command.intent is not None and command.intent == prohibition.intent:
                given.append(f"{row['b']!r}: {prohibition.intent}")
    return known, given


def _form(value: str) -> str:
    return normal_form(value) or value.lower()


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of the consistency data")
    chosen = parser.parse_args()
    embedder = build("embed", "minilm_onnx", {})
    for half in ("open", "apart"):
        for name, (counts, missed) in measure(half, embedder).items():
            print(f"{half:6}{name:12}{counts}")
            if half == "open":
                print("".join(f"      {line}\n" for line in missed), end="")
    if chosen.data is not None:
        try:
            known, given = prohibitions(chosen.data, embedder)
        except (BadData, OSError) as error:
            parser.error(str(error))
        print(f"prohibitions {known}, of which {len(given)} are given what they forbid")
        print("".join(f"      {line}\n" for line in given), end="")


if __name__ == "__main__":
    main()
