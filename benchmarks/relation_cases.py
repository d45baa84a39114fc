"""A labelled set for relations: utterances split, recombined, corrected and paired, always the same way.

A *complement* is the head of an utterance and its tail, or the head of one and the tail of another; a *correction* puts
words of correction before another value; a *restatement* is the recogniser's text and the typed text of one request,
with or without a planted contradiction; *unrelated* are two requests of different intents.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from consistency.judge import Relation

PREPOSITIONS = (
    "at",
    "for",
    "on",
    "in",
    "with",
    "from",
    "to",
    "about",
    "by",
    "near",
    "tomorrow",
    "today",
    "tonight",
)
_PARTICLED = re.compile(
    r"(?:turn|switch|put|shut|go|move|get|turned|is|are|listen|want|need|like|add|reply|lights?|have|going|what|how)$"
)
_VALUE = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|fifty)\b(?: (?:am|pm))?"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:today|tomorrow|tonight)\b"
)
_OTHER_VALUES = {
    "number": ("three", "six", "eleven", "fifteen", "forty"),
    "day": ("monday", "thursday", "saturday"),
    "near": ("tomorrow", "next week", "on friday"),
}
_CORRECTIONS = (
    "no, {}", "no {}", "sorry, {}", "i meant {}", "i said {}", "actually {}", "wait, {}", "make it {}", "not {old}, {}",
    "no, make that {}", "{}, not {old}", "sorry i mean {}", "no no {}", "oops {}", "{} instead",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """Two texts of one user, the earlier first, and how they stand to each other. `how` it was made."""

    relation: Relation
    how: str
    earlier: str
    later: str


def cases(rows: Sequence[dict[str, Any]], most: int = 300, seed: int = 20_261_129) -> list[Case]:
    """Returns up to `most` cases of each sort, made of the pairs' texts (`a`, `b`, `intent`, `type`)."""
    drawn = random.Random(seed)
    texts = sorted({(row["a"], row["intent"]) for row in rows if row["type"] == "natural_asr"})
    found: list[Case] = []
    for make in (_split, _recombined, _corrected, _unrelated):
        made = list(make(texts, drawn))
        drawn.shuffle(made)
        found += made[:most]
    for how, chosen in (
        ("same", [row for row in rows if row["type"] == "natural_asr"]),
        ("contradicted", [row for row in rows if row["type"].startswith("hard_")]),
    ):
        picked = drawn.sample(chosen, min(most, len(chosen)))
        found += [Case("restatement", how, row["a"], row["b"]) for row in picked]
    return found


def _cuts(text: str) -> Iterator[tuple[str, str]]:
    words = text.split()
    for at in range(2, len(words)):
        if words[at] in PREPOSITIONS and not _PARTICLED.search(words[at - 1]):
            head, tail = " ".join(words[:at]), " ".join(words[at:])
            weighty = [word for word in words[at + 1 :] if len(word) > 2] or words[at] in PREPOSITIONS[-3:]
            if weighty and len(words) - at <= 6:
                yield head, tail


def _split(texts: Sequence[tuple[str, str]], drawn: random.Random) -> Iterator[Case]:
    for text, _ in texts:
        for head, tail in list(_cuts(text))[:1]:
            yield Case("complement", "split", head, tail)


def _recombined(texts: Sequence[tuple[str, str]], drawn: random.Random) -> Iterator[Case]:
    """The head of one utterance with the tail of another of its intent: no two parts stem from one mouth."""
    by_intent: dict[str, list[tuple[str, str]]] = {}
    for text, intent in texts:
        by_intent.setdefault(intent, []).extend(list(_cuts(text))[:1])
    for parts in by_intent.values():
        for head, tail in parts:
            other, _ = drawn.choice(parts)
            if other != head and not _VALUE.search(other):
                yield Case("complement", "recombined", other, tail)


def _corrected(texts: Sequence[tuple[str, str]], drawn: random.Random) -> Iterator[Case]:
    for text, _ in texts:
        value = _VALUE.search(text)
        if value is None:
            continue
        old = value.group()
        sort = (
            "day"
            if old.endswith("day") and old != "today"
            else "near"
            if old[0] == "t" and old[1] == "o"
            else "number"
        )
        new = drawn.choice([one for one in _OTHER_VALUES[sort] if one not in old])
        half = " pm" if old.endswith("pm") else " am" if old.endswith(" am") else ""
        for form in drawn.sample(_CORRECTIONS, 2):
            yield Case("correction", "value", text, form.format(new + half, old=old))
        yield Case(
            "correction",
            "whole",
            text,
            f"{drawn.choice(('no', 'sorry', 'i said', 'no i said'))} {text.replace(old, new + half)}",
        )


def _unrelated(texts: Sequence[tuple[str, str]], drawn: random.Random) -> Iterator[Case]:
    whole = [(text, intent) for text, intent in texts if len(text.split()) >= 4]
    for text, intent in whole:
        other, theirs = drawn.choice(whole)
        if theirs.partition("_")[0] != intent.partition("_")[0]:
            yield Case("unrelated", "other intent", text, other)
