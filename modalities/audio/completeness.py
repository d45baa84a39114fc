"""Whether words could be all of a sentence: rules of English, in steps of doubt.

The text is a recogniser's draft. It puts a full stop behind half a sentence, too, so that a stop says little and a word
that ends no sentence says much. Other languages are judged by their punctuation.
"""

import re
from enum import IntEnum


class Completeness(IntEnum):
    """From a sentence that is over to one that cannot be."""

    FINISHED = 0
    LIKELY = 1
    OPEN = 2
    SPELLED = 3
    DOUBTFUL = 4
    HANGING = 5


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words(
    """a an the my your our their every and or nor but because although unless whether than into onto
    uh um uhm er erm hm hmm mm i'm i'd i'll i've we're we'd we'll you're you'd you'll they're they'd they'll
    gonna wanna"""
)
"""Words that end no English sentence, whatever punctuation a recogniser puts behind them."""

_RARELY_LAST = _words(
    """of to in on at by for from with without about over under between through during before after near like as
    is are was were am be been do does did has have had can could will would should may might must
    i he she we they if when while until since though so what who which where how why
    there's that's it's let's very really quite just also some any please another"""
)
"""Words that end a sentence now and then: they hang unless a question mark follows."""

_TRANSITIVE = _words(
    """want wants need needs get gets give gives make makes bring brings take takes find finds put puts send sends buy
    buys tell tells show shows use uses add adds set sets book books order orders schedule play plays"""
)
"""Verbs whose object is still to come, where they stand last."""

_SUBORDINATING = _words(
    "if although though because unless while whereas when whenever since once before after until as"
)
"""Words that open a clause which another one completes."""

_ANSWERS = _words(
    """yes yeah yep no nope ok okay sure right exactly stop cancel help hello hi hey thanks bye goodbye please continue
    next back repeat enter start go wait never always maybe correct wrong fine great nothing alright"""
)
"""Words that are a turn of their own."""

_MEASURES = _words(
    """ounce inch foot mile meter metre minute hour day week month year dollar pound gallon liter litre gram degree
    percent person bedroom piece page door"""
)
_NUMBERS = _words(
    """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"""
)
_UNCOUNTED = _words("percent foot")
"""Measures that stay as they are behind a number: "twenty percent" may be all."""

_SPELLED = re.compile(r"(?:\b[A-Z]\b[\s.,-]*){2,}$|\b[A-Z]{3,}\W*$|(?:\b[A-Z]-)+[A-Z]?\W*$")
_DIGITS = re.compile(r"\d[\d\s,.-]*$")


def completeness(text: str) -> Completeness:
    """Returns how complete a partial transcript is; an empty one is open."""
    words = text.split()
    if not words:
        return Completeness.OPEN
    said = words[-1].rstrip("\"')]”’")
    bare = _bare(said)
    if said.endswith((",", ";", ":", "-", "–", "—")) or bare in _NEVER_LAST:
        return Completeness.HANGING
    asked = said.endswith(("?", "？"))
    if _is_measure_of_more(words) or (
        bare in _TRANSITIVE | _RARELY_LAST and not said.endswith((".", "?", "!"))
    ):
        return Completeness.HANGING
    trails_off = said.endswith(("...", "…"))
    clause = re.split(r"[.?!]\s+", text.strip())[-1]
    if not asked and _is_half_a_period(clause):
        return Completeness.HANGING
    if trails_off:
        return Completeness.DOUBTFUL
    if said.endswith(("。", "！", "？")):
        return Completeness.FINISHED
    if bare in _ANSWERS and len(clause.split()) <= 3:
        return Completeness.FINISHED
    if _SPELLED.search(" ".join(words[-3:])) or _DIGITS.search(said.rstrip(".?!")):
        return Completeness.SPELLED
    if bare in _TRANSITIVE | _RARELY_LAST:
        return Completeness.FINISHED if asked else Completeness.DOUBTFUL
    if asked or said.endswith("!"):
        return Completeness.FINISHED
    if said.endswith("."):
        return Completeness.LIKELY if len(clause.split()) > 2 else Completeness.OPEN
    return Completeness.OPEN


def _bare(word: str) -> str:
    return word.strip(".,;:!?…-–—\"'([“‘").lower()


def _is_measure_of_more(words: list[str]) -> bool:
    """ "20 ounce" is no amount: behind a number it would be "ounces"; a noun is still to come."""
    *rest, last = (_bare(word) for word in words[-2:])
    number, _, joined = last.rpartition("-")
    measure = joined if number else last
    counted = number or (rest[0] if rest else "")
    more = counted in _NUMBERS or (counted.replace(".", "", 1).isdigit() and counted != "1")
    return measure in _MEASURES - _UNCOUNTED and more


def _is_half_a_period(clause: str) -> bool:
    """ "If the reader will excuse me": a clause that leans on another, with no comma behind which that other began."""
    words = clause.split()
    return len(words) > 2 and _bare(words[0]) in _SUBORDINATING and "," not in clause.rstrip(",.")
