"""How two things that a user said stand to each other, before anything is held against anything.

Restatement: both say one request, perhaps with a contradiction in it. Correction: the later one replaces a part of the
earlier ("no, fifteen"). Complement: they are parts of one request ("book a table", "at Luigi's, seven pm"). Unrelated:
two requests. Rules over the alignment and a few words of English; no model. `benchmarks/relation_cases.py` makes the
labelled set that they are measured on.
"""

import re
from dataclasses import dataclass

from consistency.features import Comparison
from consistency.judge import Relation
from consistency.observation import Observation
from consistency.reading import vocabulary
from consistency.verdict import Evidence
from consistency.wording import CARRIER, MERGED, Wording

_CUES = (
    r"nope|nah|sorry|wait|actually|correction|oops|rather|scratch that|i (?:mean|meant|said|say)|not|make (?:that|it)|"
    r"change (?:that|it) to|instead|my mistake|that's wrong|wrong|let's make it|it should be|that should be|"
    r"(?:that|it)(?:'s| is| was) not"
)
_CUE = re.compile(
    r"^(?:(?:oh|um|uh|er|well|but|hm|ok|okay|hey)\W+)*"
    r"(?:no\b(?!\W+(?:problem|thanks|thank)\b|\s+(?:one|more|need|way|idea|worries|doubt|wonder|rush|matter)\b)|"
    rf"(?:{_CUES})\b)"
)
_CUE_BEHIND = re.compile(
    r"(?:\b(?:instead|rather|i meant|i mean|i said|actually|not \w+(?: \w+)?)|,\s*(?:sorry|oops|my mistake))\W*$"
)
_STRIP = re.compile(rf"\b(?:no|{_CUES}|let's|please|the|a|an)\b")
_LEADING = vocabulary(
    "at in on for from to with without by near under around about after before between until till via of and or "
    "also plus as the a an my our tomorrow today tonight next this"
)
_ASKS = vocabulary(
    "what who when where why how which is are was were do does did can could will would should may has have am"
)
_COMMANDS = vocabulary(
    "book reserve order buy find search look get show tell give list read play stop pause start begin resume skip "
    "turn switch set make create add put remove delete cancel clear schedule plan remind wake call ring dial text "
    "email mail send write reply forward post tweet open close lock unlock check query mute unmute dim brighten "
    "raise lower increase decrease change move rename save store mark rate like love navigate drive take bring "
    "explain describe define calculate convert translate spell repeat recommend suggest help want need let please "
    "enable disable activate deactivate clean vacuum brew cook prepare warm heat cool locate browse share invite "
    "confirm pay transfer track update silence shut wish arrange register subscribe unsubscribe install download "
    "upload print watch record listen shuffle include attach throw keep go display initialize complain notify "
    "alert inform ask say know hear see use replace purchase run"
)

_SAME_REQUEST = 0.5
"""Share of the smaller text's content with an answer from which both say one request."""
_ONE_PLACE = 0.3
"""... where they differ in one place only."""
_SOUNDS_ALIKE = 0.5
_MOST_WORDS_BEFORE_A_CUE = 10
_FRAGMENT = 5.0
"""Content of a text up to which it may be a part of a request."""
_NEAR = 0.55
"""Whitened cosine distance under which two requests are one."""


@dataclass(frozen=True, slots=True)
class Related:
    """The relation of an earlier to a later observation, and what told. `replaces`: for a correction the words of the
    earlier text that the later one replaces, empty where that is not known."""

    relation: Relation
    evidence: Evidence
    replaces: str = ""


def relate(
    earlier: Observation, later: Observation, found: Comparison, ours: Wording, theirs: Wording
) -> Related:
    """Tells how the later observation stands to the earlier. `found`: their features, `ours` and `theirs` their
    wording, the earlier's first. Pure."""
    text = later.text.lower().strip()
    shared = 1.0 - found["answered"]
    if _CUE.search(text) or (_CUE_BEHIND.search(text) and theirs.content <= _FRAGMENT):
        rest = _STRIP.sub(" ", text)
        answers = theirs.content <= _FRAGMENT or shared >= _SAME_REQUEST
        another = is_request(rest) and shared < 0.2 and not found["conflicts"]
        if answers and rest.strip(" ,.!?") and not another:
            told = Evidence("relation", 1.0, "a word of correction")
            return Related("correction", told, _replaced(found))
    contradiction = _same_kind_elsewhere(earlier, later)
    requests = is_request(earlier.text.lower()), is_request(text)
    if all(requests) or not any(requests):
        one_place = found["places"] <= 1 and shared >= _ONE_PLACE
        near = found["meaning_absent"] == 0 and found["meaning"] < _NEAR
        if shared >= _SAME_REQUEST or one_place or near or _sounds_alike(found):
            return Related("restatement", Evidence("relation", round(shared, 4), "the same words"))
        if not any(requests) and not contradiction and min(ours.content, theirs.content) > 0:
            return Related("complement", Evidence("relation", round(shared, 4), "two parts of a request"))
        if contradiction and (shared or not any(requests)):
            return Related("restatement", Evidence("relation", round(shared, 4), contradiction))
        return Related("unrelated", Evidence("relation", round(shared, 4), "two requests"))
    # One of them is a part only: it adds what the other lacks, or says again what it has.
    larger = max(ours.content, theirs.content)
    said_again = (
        shared >= 0.75
        or _sounds_alike(found)
        or (shared >= _SAME_REQUEST and min(ours.content, theirs.content) > 0.5 * larger)
    )
    if said_again or contradiction:
        return Related(
            "restatement", Evidence("relation", round(shared, 4), contradiction or "the same words")
        )
    return Related("complement", Evidence("relation", round(shared, 4), "a part of a request"))


def corrects(text: str) -> bool:
    """Whether a text has words of correction where a correction has them: as it opens, or behind a few words."""
    lowered = text.lower().strip()
    is_behind = _CUE_BEHIND.search(lowered) and len(lowered.split()) <= _MOST_WORDS_BEFORE_A_CUE
    return bool((_CUE.search(lowered) or is_behind) and _STRIP.sub(" ", lowered).strip(" ,.!?"))


def says_all(text: str) -> bool:
    """Whether a correction is a request by itself: "no, book it in Austin"."""
    return is_request(_STRIP.sub(" ", text.lower()))


def is_request(text: str) -> bool:
    """Whether a text asks for something by itself: a question or a command, not only a place, time or thing."""
    words = [word for word in re.findall(r"[a-z']+|\d+", text) if word not in _POLITE]
    if not words:
        return False
    head = words[0].partition("'")[0]
    if head in _LEADING and head not in {"and", "also"}:
        return False
    return (
        head in _ASKS
        or head in _COMMANDS
        or (head in {"i", "we", "let", "don", "dont", "and", "also", "you"} and len(words) > 1)
    )


_POLITE = vocabulary(
    "please hey ok okay hi hello olly alexa siri google assistant so well um uh er now just yes yeah kindly"
)


def _sounds_alike(found: Comparison) -> bool:
    """Whether what differs may be one thing heard in two ways."""
    return (
        found["sound"] <= _SOUNDS_ALIKE
        and found["places"] > 0
        and min(found["lost_first"], found["lost_second"]) < 3
    )


def _same_kind_elsewhere(earlier: Observation, later: Observation) -> str:
    """Tells of a day, time or half of a day that both texts name, with other values; empty where there is none."""
    for kind in ("time", "weekday", "relative_day", "date", "half_day", "money", "duration", "percent"):
        left = {fact.value for fact in earlier.facts if fact.kind == kind and kind in MERGED}
        right = {fact.value for fact in later.facts if fact.kind == kind}
        if left and right and not left & right:
            return f"{kind} {min(left)} against {min(right)}"
    return ""


def _replaced(found: Comparison) -> str:
    """The words of the earlier text in whose place the later one has others, where they are of one kind."""
    for step in found.steps:
        if step.kind == "fact" or (step.kind == "other" and step.weight >= CARRIER):
            return " ".join(unit.text for unit in step.ours)
    return ""
