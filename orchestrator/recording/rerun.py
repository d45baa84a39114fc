"""Re-run: what was done to a recorded session is done to a new one, with today's models, and the two are compared."""

from collections.abc import Iterator
from difflib import SequenceMatcher

from orchestrator.recording.inputs import inputs_of
from orchestrator.recording.journal import Journal
from orchestrator.recording.replay import MOST_DIFFERENCES, Difference, NotReplayable
from orchestrator.recording.stage import MakeCompany, Tell, perform
from orchestrator.recording.story import Story, tell
from orchestrator.recording.written_rules import recorded_rules
from orchestrator.sessions.rules import SessionRules

_COMPARED = ("chorale.verdict", "chorale.frozen", "chorale.realigned", "chorale.rolled_back", "response.done")


def rerun(
    journal: Journal, make: MakeCompany, today: SessionRules | None = None, progress: Tell | None = None
) -> Journal:
    """Returns the journal of the same session, should it happen today: the same rules and inputs at the same times,
    other answers. Models take no time. Raises `NotReplayable` where what was said is not in the recording."""
    if journal.header.redact:
        blanked = " and ".join(journal.header.redact)
        raise NotReplayable(f"{journal.name}: its {blanked} was blanked: there is nothing to run again")
    header = journal.header
    rules = recorded_rules(header.rules, today)
    return perform(
        header.session, rules, inputs_of(journal), make, journal.name, header.began, progress
    ).journal


def compare(before: Story, after: Story) -> tuple[Difference, ...]:
    """Returns what two runs of a conversation differ in: words said, verdicts, how responses ended; not when."""
    said = _between([(one.at_us, f"{one.role}: {one.words}") for one in before.said],
                    [(one.at_us, f"{one.role}: {one.words}") for one in after.said], "said")  # fmt: skip
    told = _between([(one.at_us, one.text) for one in before.told if one.type in _COMPARED],
                    [(one.at_us, one.text) for one in after.told if one.type in _COMPARED], "told")  # fmt: skip
    found = sorted([*said, *told], key=lambda one: one.at_us)
    return tuple(found[:MOST_DIFFERENCES])


def _between(before: list[tuple[int, str]], after: list[tuple[int, str]], about: str) -> Iterator[Difference]:
    matcher = SequenceMatcher(None, [text for _, text in before], [text for _, text in after], autojunk=False)
    for kind, start, stop, other_start, other_stop in matcher.get_opcodes():
        if kind == "equal":
            continue
        old, new = before[start:stop], after[other_start:other_stop]
        at_us = (old or new)[0][0]
        yield Difference(0, at_us, about, "\n".join(t for _, t in old), "\n".join(t for _, t in new))


def stories(before: Journal, after: Journal, today: SessionRules | None = None) -> tuple[Story, Story]:
    """Returns both stories as today's code tells them."""
    return tell(before, today), tell(after, today)
