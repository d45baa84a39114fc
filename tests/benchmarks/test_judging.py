from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.hearing import Heard
from benchmarks.judging import Played, judge_odd, judge_spoken
from benchmarks.outcome import Outcome
from benchmarks.recordings import Recording

HEARD = Heard("turn it off", 1, "Done.", "reply", (), 0.4, 0.9)
CLIP = Recording(Path("a.wav"), "a.wav", "command", "turn it off", "provided", "en", 1.0, None, "")


def played(
    heard: Heard = HEARD, category: str = "command", alive: bool = True, has_speech: bool = True
) -> Played:
    return Played("a.wav", category, has_speech, heard, alive)


def verdicts(outcome: Outcome) -> list[bool]:
    return [claim.holds for claim in outcome.claims]


def test_a_path_that_hears_what_the_recogniser_hears_holds_every_claim() -> None:
    """Equal transcripts, replies everywhere and living sessions bear out all four claims, with figures."""
    outcome = Outcome("speech", {})
    rows = judge_spoken([(CLIP, "Turn it off.", played())], outcome)
    assert verdicts(outcome) == [True] * 4
    assert outcome.figures["wer_path_percent"] == 0
    assert [row["category"] for row in rows] == ["command", "all"]


@pytest.mark.parametrize(
    ("spoilt", "claims"),
    [
        (played(replace(HEARD, transcript="turn it on")), [False, False, True, True]),
        (played(replace(HEARD, transcript="it off")), [False, False, True, True]),
        (played(replace(HEARD, outcome="words", reply="")), [True, True, False, True]),
        (played(alive=False), [True, True, True, False]),
    ],
)
def test_each_fault_of_a_spoken_clip_fails_its_own_claim(spoilt: Played, claims: list[bool]) -> None:
    """Wrong words, lost ends, a missing reply and a dead session are told apart."""
    outcome = Outcome("speech", {})
    judge_spoken([(CLIP, "turn it off", spoilt)], outcome)
    assert verdicts(outcome) == claims


@pytest.mark.parametrize(
    ("one", "sensible"),
    [
        (played(), True),
        (played(replace(HEARD, outcome="no words")), True),
        (played(replace(HEARD, outcome="nothing")), False),
        (played(replace(HEARD, outcome="error invalid_value")), False),
        (played(alive=False), False),
        (played(replace(HEARD, outcome="nothing"), has_speech=False), True),
        (played(has_speech=False), False),
        (replace(played(has_speech=False), refused="no samples"), True),
        (replace(played(replace(HEARD, outcome="transcript missing")), refused="no samples"), False),
    ],
)
def test_an_odd_file_must_be_answered_as_fits_it(one: Played, sensible: bool) -> None:
    """Speech is to be heard, noise is not to be answered, raw bytes may be either, and nothing may fail."""
    outcome = Outcome("speech", {})
    rows = judge_odd([one], outcome)
    assert verdicts(outcome) == [sensible]
    assert rows[0]["files"] == 1
