"""A text cut into weighted words for comparison; words that make up a typed fact are one word.

"nine am", "9 a.m." and "9:00 am" are the same word here: its facts. Weights say how much a request changes without the
word: nothing without "please", little without "show me", much without a name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from consistency.observation import Fact, Observation
from consistency.observation import Word as Heard
from consistency.reading import vocabulary
from consistency.related import is_word, lemmas
from consistency.slips import is_slip

LONGEST = 48
"""Words of one text that are compared; alignment costs the product of both lengths."""

NUMBERS = frozenset({"number", "ordinal", "percent", "year", "duration", "money", "time"})
DAYS = frozenset({"weekday", "relative_day", "date"})
HALVES = frozenset({"half_day"})
MERGED = NUMBERS | DAYS | HALVES | {"spelling"}
"""Kinds of facts whose words count as one; facts of other kinds mark the words they were read from."""

MANNERS, GRAMMAR, CARRIER, CONTENT = 0.0, 0.08, 0.3, 1.0

_LONG_MANNERS = ("please", "thanks", "thank")
"""Manners that are long enough to be told when they are mistyped."""


_MANNERS = vocabulary(
    "please thanks thx thank kindly hey hi hello ok okay olly alexa siri google assistant computer uh um er erm "
    "hmm oh well just yes yeah yep yup cheers sorry pls plz ya so mm s t m re ll ve d now"
)
_GRAMMAR = vocabulary(
    "a an the is are am was were be been being do does did has have had will would can could shall should may "
    "might must i me my mine we us our you your it its this that these those there here of and or any some also "
    "too then than as if what which who whom how when where why whats whos hows wheres going gonna to at on in "
    "for by about into get got let lets house one ones he she they them his her their up down off out with again "
    "all every each both really very not no dont cant isnt doesnt didnt wont only right currently current today's"
)
_HEAVIER = {"from": 0.15, "to": 0.12, "with": 0.15, "about": 0.15, "again": 0.3, "all": 0.3, "every": 0.3, "each": 0.3,
            "why": 0.3, "when": 0.3, "where": 0.3, "who": 0.3, "how": 0.2, "off": 0.4, "up": 0.3, "down": 0.3,
            "out": 0.3, "his": 0.2, "her": 0.2,
            "your": 0.12, "their": 0.2, "both": 0.3, "any": 0.1, "some": 0.1,
            "current": 0.3, "currently": 0.15}  # fmt: skip
_CARRIERS = vocabulary(
    "turn switch change hear tell show give want need like know see say make help find look check take put go use "
    "try keep wish please new more most latest recent outside thing things something anything kind way near "
    "nearest closest"
)
_FORMS = {
    "dont": "don't", "doesnt": "doesn't", "didnt": "didn't", "isnt": "isn't", "wont": "won't", "cant": "can't",
    "whats": "what", "whos": "who", "hows": "how", "wheres": "where", "whens": "when", "thats": "that", "im": "i",
    "ive": "i", "id": "i", "lets": "let", "tv": "television", "colour": "color", "favourite": "favorite", "e": "e",
    "vs": "versus", "till": "until", "u": "you", "wanna": "want", "gonna": "going", "n": "and", "mum": "mom",
    "centre": "center", "programme": "program", "grey": "gray", "tyre": "tire", "theatre": "theater", "rd": "road",
    "st": "street", "pic": "picture", "pics": "pictures", "info": "information", "mins": "minutes", "hrs": "hours",
}  # fmt: skip
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+(?:[.,:]\d+)*")
_TO_DO = re.compile(r"to[ -]do(?= lists?\b)")
"""Kept as long as it was, so that places stay where they were."""
_NEGATION = re.compile(
    r"^(?:do|does|did|is|are|was|were|has|have|had|would|could|should|must)n['’]t$|^(?:ca|wo)n['’]t$"
)


class Axis(NamedTuple):
    """A pair of opposites that a word belongs to, and its side."""

    name: str
    side: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One word, or the words of one fact. `weight` in [0, 1]; `role`: the preposition that governs it; `probability`:
    the recogniser's, the lowest of its words, 1 where none is known."""

    text: str
    weight: float
    facts: tuple[Fact, ...] = ()
    axes: tuple[Axis, ...] = ()
    role: str = ""
    probability: float = 1.0

    @property
    def is_content(self) -> bool:
        """Whether a request is another one without it."""
        return self.weight >= CONTENT


@dataclass(frozen=True, slots=True)
class Wording:
    """A text's units, and whether an odd number of negations stands in it."""

    units: tuple[Unit, ...]
    negated: bool

    @property
    def content(self) -> float:
        """Sum of the weights, whatever the order."""
        return fsum(unit.weight for unit in self.units)


def wording(observation: Observation) -> Wording:
    """Returns the units of an observation's text, at most `LONGEST`, with the facts that it carries."""
    text = _TO_DO.sub("todo ", observation.text.lower())
    spans = _spans([fact for fact in observation.facts if fact.kind in MERGED and fact.start >= 0])
    marks = [fact for fact in observation.facts if fact.kind not in MERGED and fact.start >= 0]
    heard = _probabilities(observation.words)
    units: list[Unit] = []
    role = ""
    done = 0
    for found in _TOKEN.finditer(text):
        if len(units) == LONGEST:
            break
        if found.start() < done:
            continue
        span = next((facts for start, stop, facts in spans if start <= found.start() < stop), None)
        if span is not None:
            done = max(fact.stop for fact in span)
            said = text[min(fact.start for fact in span) : done]
            units.append(Unit(said, CONTENT, span, role=role, probability=_lowest(said.split(), heard)))
            role = ""
            continue
        word = _form(found.group())
        role = word if word in _ROLES else role
        weight = _weight(word)
        axes = _axes(marks, found.start())
        if weight < CARRIER and any(axis.name in _PARTICLES for axis in axes):
            weight = CARRIER
        units.append(Unit(word, weight, (), axes, role if weight >= CARRIER else "", heard.get(word, 1.0)))
    return Wording(tuple(units), sum(fact.kind == "negation" for fact in observation.facts) % 2 == 1)


_ROLES = vocabulary("from to with without before after until since at for by via between")
_PARTICLES = frozenset({"off/on", "down/up", "in/out"})


def _spans(facts: Sequence[Fact]) -> list[tuple[int, int, tuple[Fact, ...]]]:
    """Joins facts whose characters overlap."""
    groups: list[list[Fact]] = []
    stop = -1
    for fact in sorted(facts, key=lambda one: (one.start, one.stop, one.kind, one.value)):
        if fact.start < stop:
            groups[-1].append(fact)
        else:
            groups.append([fact])
        stop = max(stop, fact.stop)
    return [(group[0].start, max(one.stop for one in group), tuple(group)) for group in groups]


def _form(word: str) -> str:
    """Opens a contraction as far as its first word; the rest is grammar."""
    word = word.replace("’", "'")
    word = _FORMS.get(word, word)
    if _NEGATION.match(word):
        return "not"
    return word.partition("'")[0] if "'" in word else word


def _weight(word: str) -> float:
    if word in _MANNERS:
        return MANNERS
    if word in _HEAVIER:
        return _HEAVIER[word]
    if word in _GRAMMAR:
        return GRAMMAR
    if word in _CARRIERS:
        return CARRIER
    if not _CARRIERS.isdisjoint(lemmas(word)):
        return CARRIER
    return (
        MANNERS if not is_word(word) and any(is_slip(word, polite) for polite in _LONG_MANNERS) else CONTENT
    )


def _axes(marks: Sequence[Fact], start: int) -> tuple[Axis, ...]:
    """The axes of the word at `start`; a particle lies on those of the verbs that it makes ("on": enable, start)."""
    found: list[Axis] = []
    for fact in marks:
        if fact.kind == "polarity" and fact.start == start:
            for axis in fact.value.split():
                found += [
                    Axis(*part.split(":", 1)) for part in (axis, *_MADE_BY.get(axis, ())) if ":" in part
                ]
    return tuple(found)


_MADE_BY = {
    "off/on:on": ("disable/enable:enable", "start/stop:start"),
    "off/on:off": ("disable/enable:disable", "start/stop:stop"),
    "down/up:up": (
        "lower/raise:raise",
        "louder/quieter:louder",
        "brighten/dim:brighten",
        "cooler/warmer:warmer",
    ),
    "down/up:down": (
        "lower/raise:lower",
        "louder/quieter:quieter",
        "brighten/dim:dim",
        "cooler/warmer:cooler",
    ),
}


def _probabilities(words: Sequence[Heard]) -> dict[str, float]:
    """The lowest probability of each word form."""
    found: dict[str, float] = {}
    for word in words:
        for part in _TOKEN.findall(word.text.lower()):
            form = _form(part)
            found[form] = min(found.get(form, 1.0), word.probability)
    return found


def _lowest(words: Sequence[str], heard: dict[str, float]) -> float:
    return min((heard.get(word.strip(".,?!"), 1.0) for word in words), default=1.0)
