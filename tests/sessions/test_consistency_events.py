"""What a client is told of a turn, and in which order: nothing twice, nothing out of turn."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from orchestrator.scheduling.work import Transcribe
from tests.sessions.agreeing import (
    EVENTS,
    FIFTEEN,
    FIFTY,
    conflict,
    fits,
    recognised_again,
    scores,
    talk,
)
from tests.sessions.talk import Talk

EIGHT = {"name": "time", "value": "8"}
DEADLINE_MS = 1_500


def told(one: Talk) -> list[str]:
    """Chorale's own events of a session, verdicts by their names."""
    found = []
    for event in one.log:
        if event["type"] == "chorale.verdict":
            found.append(
                event["verdict"] if event["verified"] or event["verdict"] != "accept" else "unverified"
            )
        elif event["type"] in EVENTS:
            found.append(event["type"].removeprefix("chorale."))
    return found


def spoken(one: Talk, text: str) -> None:
    one.hear(1_000, 0.95)
    one.hear(700, 0.01)
    one.transcribed(text)


def plain(one: Talk) -> None:
    spoken(one, "hello there")


def mended_by_the_sound(one: Talk) -> None:
    conflict(one)
    fits(one, -1.0)


def denied_by_the_sound(one: Talk) -> None:
    conflict(one)
    fits(one, -20.0)


def frozen_until_the_policy_decides(one: Talk) -> None:
    conflict(one)
    fits(one, -6.0)
    recognised_again(one, FIFTY)
    recognised_again(one, FIFTY)


def frozen_until_it_is_heard(one: Talk) -> None:
    conflict(one)
    fits(one, -6.0)
    recognised_again(one, FIFTY)
    recognised_again(one, FIFTEEN)


def frozen_with_more_typed_meanwhile(one: Talk) -> None:
    conflict(one)
    fits(one, -6.0)
    one.typed("thanks")
    recognised_again(one, FIFTEEN)


def frozen_for_too_long(one: Talk) -> None:
    conflict(one)
    fits(one, -6.0)
    one.wait(DEADLINE_MS + 100)
    recognised_again(one, FIFTEEN)


def suspect_for_too_long(one: Talk) -> None:
    conflict(one)
    one.wait(DEADLINE_MS + 100)
    fits(one, -1.0)


def recogniser_that_fails(one: Talk) -> None:
    conflict(one)
    one.failed(scores(one)[0])
    for _ in range(2):
        (job_id,) = one.open_jobs(Transcribe)
        one.failed(job_id)


def loose_form(one: Talk) -> None:
    one.client("chorale.token", slots=[{"name": "time", "value": "loose"}])


def loose_form_and_more(one: Talk) -> None:
    loose_form(one)
    one.typed("hello")
    one.typed("hello again")


def form_against_speech(one: Talk) -> None:
    one.client("chorale.token", slots=[EIGHT])
    spoken(one, "a table at seven")
    fits(one, -6.0)
    recognised_again(one, "a table at seven")
    recognised_again(one, "a table at seven")


def form_that_the_sound_bears_out(one: Talk) -> None:
    one.client("chorale.token", slots=[EIGHT])
    spoken(one, "a table at seven")
    fits(one, -1.0)


def caption(one: Talk) -> None:
    one.hear(1_000, 0.95)
    item_id = one.last("input_audio_buffer.speech_started")["item_id"]
    one.client("chorale.caption", item_id=item_id, text=FIFTEEN)
    one.hear(700, 0.01)
    one.transcribed(FIFTY)
    fits(one, -1.0)


def the_same_typed_again(one: Talk) -> None:
    spoken(one, FIFTY)
    one.typed(FIFTY)


TABLE: list[tuple[Callable[[Talk], None], list[str]]] = [
    (plain, ["accept"]),
    (the_same_typed_again, ["accept", "accept"]),
    (mended_by_the_sound, ["accept", "suspect", "accept", "realigned"]),
    (denied_by_the_sound, ["accept", "suspect", "accept"]),
    (frozen_until_the_policy_decides, ["accept", "suspect", "freeze", "frozen", "accept"]),
    (frozen_until_it_is_heard, ["accept", "suspect", "freeze", "frozen", "accept", "realigned"]),
    (
        frozen_with_more_typed_meanwhile,
        ["accept", "suspect", "freeze", "frozen", "freeze", "accept", "realigned"],
    ),
    (frozen_for_too_long, ["accept", "suspect", "freeze", "frozen", "unverified", "accept", "realigned"]),
    (suspect_for_too_long, ["accept", "suspect", "unverified", "accept", "realigned"]),
    (recogniser_that_fails, ["accept", "suspect", "freeze", "frozen", "accept"]),
    (loose_form, ["roll_back", "rolled_back"]),
    (loose_form_and_more, ["roll_back", "rolled_back", "roll_back", "roll_back"]),
    (form_against_speech, ["accept", "suspect", "freeze", "frozen", "accept"]),
    (form_that_the_sound_bears_out, ["accept", "suspect", "accept", "realigned"]),
    (caption, ["accept", "suspect", "accept", "realigned"]),
]


@pytest.mark.parametrize(("story", "expected"), TABLE, ids=[story.__name__ for story, _ in TABLE])
def test_client_is_told_each_thing_once_and_in_order(
    story: Callable[[Talk], None], expected: list[str]
) -> None:
    """The verdict first, then what it means: frozen once, rolled back once, realigned behind the verdict that did it. A
    verdict comes again only where something else stands, or about something more that was said."""
    one = talk()
    story(one)
    assert told(one) == expected
    verdicts = [event for event in one.log if event["type"] == "chorale.verdict"]
    assert all(x != y for x, y in pairwise(verdicts))


def test_question_is_a_verdict_of_its_own() -> None:
    """Suspect, then asked; the answer settles another turn, and nothing is taken back."""
    asking = talk("ask", asks=True)
    conflict(asking)
    fits(asking, -20.0)
    assert told(asking) == ["accept", "suspect", "ask"]
