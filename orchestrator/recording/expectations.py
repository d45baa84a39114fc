"""Holds a story to what was expected of it. Pure."""

import re
from collections.abc import Iterator

from msgspec import UNSET

from orchestrator.recording.scenario import Conflict, Expected, Miss, ReplyCondition
from orchestrator.recording.story import Said, Story, Told

_CONFLICTS = ("suspect", "freeze", "ask", "roll_back")


def check(expected: Expected, story: Story) -> list[Miss]:
    """Returns every expectation that was not met, in the order in which they are written."""
    return [
        *_words(expected, story),
        *_slots(expected, story),
        *_intent(expected, story),
        *_conflicts(expected, story),
        *_turns(expected.freezes, "freeze", "freezes", story),
        *_turns(expected.questions, "ask", "questions", story),
        *_verdicts(expected, story),
        *_rollbacks(expected, story),
        *_replies(expected, story),
        *_errors(expected, story),
    ]


def conflicts_of(story: Story) -> list[Told]:
    """Returns the verdicts that were not plain acceptance, one for each turn and kind."""
    seen: dict[tuple[object, object], Told] = {}
    for one in story.of("chorale.verdict"):
        if one.event.get("verdict") in _CONFLICTS:
            seen.setdefault((one.event.get("unit"), one.event.get("verdict")), one)
    return list(seen.values())


def _words(expected: Expected, story: Story) -> Iterator[Miss]:
    if expected.words is None:
        return
    users = [one for one in story.said if one.role == "user" and one.words.strip()]
    wanted = expected.words
    extra = len(users) - len(wanted)
    if not 0 <= extra <= expected.tolerances.extra_turns:
        yield Miss(
            "words", _at(users), f"{len(wanted)} turns: {list(wanted)}", str([one.words for one in users])
        )
        return
    wrong = sum(_errors_between(_split(a), _split(b.words)) for a, b in zip(wanted, users, strict=False))
    total = max(1, sum(len(_split(one)) for one in wanted))
    if wrong / total > expected.tolerances.word_errors:
        for text, one in zip(wanted, users, strict=False):
            if _split(text) != _split(one.words):
                yield Miss("words", one.at_us, text, one.words)


def _slots(expected: Expected, story: Story) -> Iterator[Miss]:
    found = story.slots
    for name, value in (expected.slots or {}).items():
        got = found.get(name)
        if (got or "").casefold() != (value or "").casefold():
            at = [one.at_us for one in story.of("chorale.token") if f"'{name}'" in str(one.event)]
            yield Miss(f"slot {name}", at[-1] if at else None, str(value), str(got))

    others = {name: value for name, value in found.items() if name not in (expected.slots or {})}
    if expected.other_slots is not None and len(others) != expected.other_slots:
        yield Miss("other slots", None, str(expected.other_slots), str(others) if others else "none")


def _intent(expected: Expected, story: Story) -> Iterator[Miss]:
    if expected.intent is not UNSET and expected.intent != story.intent:
        tokens = story.of("chorale.token")
        at_us = tokens[-1].at_us if tokens else None
        yield Miss("intent", at_us, expected.intent or "none", story.intent or "none")


def _turns(wanted: int | None, verdict: str, what: str, story: Story) -> Iterator[Miss]:
    """Counts the turns on which a verdict was reached, however often."""
    found = [one for one in conflicts_of(story) if one.event.get("verdict") == verdict]
    if wanted is not None and len(found) != wanted:
        yield Miss(what, found[0].at_us if found else None, str(wanted), _texts(found))


def _verdicts(expected: Expected, story: Story) -> Iterator[Miss]:
    if expected.verdict is None:
        return
    told = story.of("chorale.verdict")
    if isinstance(expected.verdict, str):
        yield from _verdict("verdict", expected.verdict, told)
        return
    for unit, wanted in expected.verdict.items():
        yield from _verdict(
            f"verdict on turn {unit}", wanted, [one for one in told if one.event.get("unit") == unit]
        )


def _verdict(what: str, wanted: str, told: list[Told]) -> Iterator[Miss]:
    last = told[-1] if told else None
    if last is None or last.event.get("verdict") != wanted:
        at_us, got = (None, "none") if last is None else (last.at_us, last.text)
        yield Miss(what, at_us, wanted, got)


def _conflicts(expected: Expected, story: Story) -> Iterator[Miss]:
    found = conflicts_of(story)
    wanted = expected.conflicts
    if isinstance(wanted, int) and len({one.event.get("unit") for one in found}) != wanted:
        yield Miss("conflicts", found[0].at_us if found else None, str(wanted), _texts(found))
    elif isinstance(wanted, tuple):
        for condition in wanted:
            if not any(_is_met(condition, one) for one in found):
                at_us = found[0].at_us if found else None
                yield Miss("conflict", at_us, _name(condition), _texts(found))


def _is_met(condition: Conflict, told: Told) -> bool:
    start, stop = condition.within or (0.0, float("inf"))
    return (
        condition.verdict in (None, told.event.get("verdict"))
        and condition.about.casefold() in told.text.casefold()
        and start <= told.at_us / 1e6 <= stop
    )


def _rollbacks(expected: Expected, story: Story) -> Iterator[Miss]:
    found = story.of("chorale.rolled_back")
    if expected.rollbacks is not None and len(found) != expected.rollbacks:
        yield Miss("rollbacks", found[0].at_us if found else None, str(expected.rollbacks), _texts(found))


def _replies(expected: Expected, story: Story) -> Iterator[Miss]:
    said = [one for one in story.said if one.role == "assistant" and one.words.strip()]
    if isinstance(expected.replies, int) and len(said) != expected.replies:
        yield Miss("replies", _at(said), str(expected.replies), str([one.words for one in said]))
    elif isinstance(expected.replies, tuple):
        for condition in expected.replies:
            yield from _reply(condition, said)


def _reply(condition: ReplyCondition, said: list[Said]) -> Iterator[Miss]:
    number = condition.number
    chosen = said if number is None else said[number - 1 : number]
    what = "a reply" if number is None else f"reply {number}"
    if not chosen:
        yield Miss(what, None, "to be there", f"{len(said)} replies")
        return
    texts = [one.words for one in chosen]
    whole = " | ".join(texts)
    for part in condition.contains:
        if not any(part.casefold() in text.casefold() for text in texts):
            yield Miss(what, _at(chosen), f"contains {part!r}", whole)
    for part in condition.lacks:
        if any(part.casefold() in text.casefold() for text in texts):
            yield Miss(what, _at(chosen), f"lacks {part!r}", whole)
    if condition.matches is not None and not any(re.search(condition.matches, text) for text in texts):
        yield Miss(what, _at(chosen), f"matches {condition.matches!r}", whole)


def _errors(expected: Expected, story: Story) -> Iterator[Miss]:
    failed = [one for one in story.of("response.done") if one.text == "response failed"]
    failed += story.of("conversation.item.input_audio_transcription.failed")
    if expected.errors is not None and len(failed) != expected.errors:
        yield Miss("errors", failed[0].at_us if failed else None, str(expected.errors), _texts(failed))


def _name(condition: Conflict) -> str:
    about = f" about {condition.about!r}" if condition.about else ""
    within = f" within {list(condition.within)} s" if condition.within else ""
    return f"{condition.verdict or 'a conflict'}{about}{within}"


def _texts(told: list[Told]) -> str:
    return " | ".join(one.text for one in told) or "none"


def _at(said: list[Said]) -> int | None:
    return said[-1].at_us if said else None


def _split(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.casefold())


def _errors_between(wanted: list[str], got: list[str]) -> int:
    """Returns how many words must be put in, left out or replaced (Levenshtein)."""
    row = list(range(len(got) + 1))
    for i, one in enumerate(wanted, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(got, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (one != other))
    return row[-1]
