"""Forms and captions: what clients know beside what is said."""

import json
from typing import Any

import pytest

from consistency.policy import Policy
from orchestrator.errors import WireError
from orchestrator.scheduling.work import Score
from orchestrator.sessions.checking import MOST_SOURCES
from orchestrator.wire import codec
from tests.sessions.agreeing import FIFTEEN, FIFTY, fits, recognised_again, scores, talk, verdicts
from tests.sessions.talk import Talk

SEVEN, EIGHT = ({"name": "time", "value": value} for value in "78")


def spoken(one: Talk, text: str) -> str:
    one.speak()
    one.transcribed(text)
    return str(one.last("input_audio_buffer.committed")["item_id"])


def test_form_becomes_an_item_that_is_answered_like_typing() -> None:
    """A form is shown as what it says, and answered where typed turns are."""
    one = talk()
    one.client("chorale.token", intent="book", slots=[SEVEN, {"name": "people", "value": "4"}])
    added = one.last("conversation.item.added")["item"]
    assert added["content"] == [{"type": "input_text", "text": "book: time = 7, people = 4"}]
    assert one.prompt()[-1] == ("user", "book: time = 7, people = 4")


def test_form_of_a_plain_client_neither_interrupts_nor_answers() -> None:
    """Without typed turns it waits for `response.create`."""
    one = talk(typed_turns=False)
    one.client("chorale.token", slots=[SEVEN])
    assert one.all("response.created") == []
    one.client("response.create")
    assert one.prompt()[-1] == ("user", "time = 7")


def test_form_that_contradicts_speech_takes_its_slot() -> None:
    """The later one wins; both stay readable, the spoken words with the form's value, and the tokens that hold are the
    form's."""
    one = talk()
    spoken(one, "a table at seven")
    one.client("chorale.token", slots=[EIGHT])
    fits(one, -20.0)
    verdict = one.last("chorale.verdict")
    assert verdict["verdict"] == "accept"
    assert [reason["about"] for reason in verdict["evidence"] if reason["name"] == "slot"] == [
        "time: 7 against 8"
    ]
    assert one.prompt()[-1] == ("user", "a table at 8\ntime = 8")
    assert [token.value for token in one.heart.checker.engine.snapshot.tokens if token.slot] == ["8"]


def test_form_that_loses_all_of_its_slots_is_left_out() -> None:
    """What is said later, in the same turn, stands against the form."""
    one = talk()
    one.client("chorale.token", slots=[EIGHT])
    one.hear(1_000, 0.95)
    one.hear(700, 0.01)
    one.transcribed("a table at seven")
    fits(one, -20.0)
    assert one.prompt()[-1] == ("user", "a table at seven")


def test_form_that_fits_the_sound_mends_what_was_misheard() -> None:
    """The utterance with the form's value in it is scored; where that is as likely, the recogniser was wrong: nobody is
    told of the other value, and nobody loses."""
    one = talk()
    one.client("chorale.token", slots=[EIGHT])
    one.hear(1_000, 0.95)
    one.hear(700, 0.01)
    one.transcribed("a table at seven")
    (job_id,) = scores(one)
    work = one.jobs[job_id].work
    assert isinstance(work, Score)
    assert work.texts == ("a table at 8",)
    assert len(one.all("response.created")) == len(one.all("response.done"))
    fits(one, -1.0)
    assert one.last("conversation.item.input_audio_transcription.completed")["transcript"] == "a table at 8"
    assert one.last("chorale.realigned")["previous"] == "a table at seven"
    assert {token.value for token in one.heart.checker.engine.snapshot.tokens if token.slot} == {"8"}
    assert one.prompt()[-1] == ("user", "time = 8\na table at 8")


def test_form_against_speech_freezes_until_the_sound_was_heard_again() -> None:
    """Where the sound does not settle it, the utterance is recognised again, rung by rung, as against typed text; then
    the policy decides. What agrees with the form is adopted."""
    for second, stands in (
        ("a table at seven", ["time = 8", "a table at seven"]),
        ("a table at eight", None),
    ):
        one = talk()
        one.client("chorale.token", slots=[EIGHT])
        one.hear(1_000, 0.95)
        one.hear(700, 0.01)
        one.transcribed("a table at seven")
        fits(one, -6.0)
        assert len(one.all("chorale.frozen")) == 1
        recognised_again(one, "a table at seven")
        recognised_again(one, second)
        assert verdicts(one)[-3:] == ["suspect", "freeze", "accept"]
        assert len(one.all("chorale.frozen")) == 1
        if stands is None:
            assert one.prompt()[-1] == ("user", f"time = 8\n{second}")
        else:
            assert one.prompt()[-1] == ("user", "a table at seven")


@pytest.mark.parametrize(("policy", "value"), [("later", "7"), ("typed", "8"), ("confirmed", "7")])
def test_form_against_speech_follows_the_policy(policy: Policy, value: str) -> None:
    """A form is something written: under `typed` it stands, whatever was said later."""
    one = talk(policy)
    one.client("chorale.token", slots=[EIGHT])
    one.hear(1_000, 0.95)
    one.hear(700, 0.01)
    one.transcribed("a table at seven")
    fits(one, -20.0)
    assert [token.value for token in one.heart.checker.engine.snapshot.tokens if token.slot] == [value]


def test_form_against_speech_is_asked_about_where_the_user_may_be() -> None:
    """The question names the two values."""
    one = talk("ask", asks=True)
    one.client("chorale.token", slots=[EIGHT])
    one.hear(1_000, 0.95)
    one.hear(700, 0.01)
    one.transcribed("a table at seven")
    fits(one, -20.0)
    assert verdicts(one)[-1] == "ask"
    assert one.last("response.output_text.done")["text"] == "Sorry, 8 or 7?"


def test_form_against_typed_text_has_no_sound_to_ask() -> None:
    """The policy decides at once."""
    one = talk()
    one.typed("a table at seven")
    one.client("chorale.token", slots=[EIGHT])
    assert scores(one) == []
    assert verdicts(one)[-1] == "accept"
    assert [token.value for token in one.heart.checker.engine.snapshot.tokens if token.slot] == ["8"]


def test_form_whose_tokens_hang_loose_is_rolled_back() -> None:
    """Tokens below the threshold leave, and with them the form's words; the state is the one before."""
    one = talk()
    spoken(one, "a table at seven")
    one.answer("Fine.")
    one.wait(9_000)
    one.client("chorale.token", slots=[{"name": "time", "value": "loose"}])
    rolled = one.last("chorale.rolled_back")
    assert (rolled["unit"], rolled["to"]) == (2, 1)
    assert one.last("chorale.verdict")["verdict"] == "roll_back"
    assert ("user", "time = loose") not in one.prompt()
    assert one.all("conversation.item.deleted") == []


def test_speech_whose_tokens_are_rolled_back_keeps_its_text() -> None:
    """The words are answered; what was understood of them does not count."""
    one = talk()
    spoken(one, "a table loosely")
    assert one.last("chorale.rolled_back")["to"] == 0
    assert one.prompt()[-1] == ("user", "a table loosely")
    assert one.heart.checker.engine.snapshot.tokens == ()


def test_caption_is_held_against_our_own_transcript() -> None:
    """A client's recogniser is believed where the sound does; it is no item and gets no answer of its own."""
    one = talk()
    one.hear(1_000, 0.95)
    item_id = one.last("input_audio_buffer.speech_started")["item_id"]
    one.client("chorale.caption", item_id=item_id, text=FIFTEEN)
    one.hear(700, 0.01)
    one.transcribed(FIFTY)
    assert len(scores(one)) == 1
    assert one.all("response.created") == []
    fits(one, -1.0)
    assert one.prompt()[-1] == ("user", FIFTEEN)
    assert len(one.heart.conversation) == 1


def test_caption_that_the_sound_denies_changes_nothing() -> None:
    """Ours stands."""
    one = talk()
    item_id = spoken(one, FIFTY)
    one.answer("Fine.")
    one.client("chorale.caption", item_id=item_id, text=FIFTEEN)
    fits(one, -20.0)
    assert one.history()[0] == ("user", FIFTY)
    assert len(one.all("response.created")) == 1


def test_caption_of_what_nobody_said_is_refused() -> None:
    """The error names the field."""
    one = talk()
    one.client("chorale.caption", item_id="nobody", text="x")
    assert one.errors()[-1]["param"] == "item_id"


def test_caption_may_come_while_ours_is_being_recognised() -> None:
    """A client's recogniser is done before ours: that is when captions come."""
    one = talk()
    one.speak()
    item_id = one.last("input_audio_buffer.committed")["item_id"]
    one.client("chorale.caption", item_id=item_id, text=FIFTEEN)
    assert one.errors() == []
    one.transcribed(FIFTY)
    assert len(scores(one)) == 1


def test_caption_of_a_noise_holds_nothing_up() -> None:
    """A client's recogniser hears words where ours hears none: the caption has nothing to stand beside, and what the
    user says next is answered."""
    one = talk(typed_turns=False)
    one.client("chorale.token", slots=[EIGHT])
    one.hear(1_000, 0.95)
    item_id = one.last("input_audio_buffer.speech_started")["item_id"]
    one.hear(700, 0.01)
    one.meaning = lambda text: None
    one.client("chorale.caption", item_id=item_id, text="hm")
    one.transcribed("")
    one.wait(5_000)
    one.client("response.create")
    one.answer("At eight.")
    assert one.last("response.done")["response"]["status"] == "completed"


def test_caption_belongs_to_the_turn_in_which_its_utterance_began() -> None:
    """A turn that `response.create` has closed meanwhile, and one that a form has opened, take nothing of it away."""
    one = talk(typed_turns=False)
    one.hear(1_000, 0.95)
    item_id = one.last("input_audio_buffer.speech_started")["item_id"]
    one.client("response.create")
    one.client("chorale.token", slots=[EIGHT])
    one.client("chorale.caption", item_id=item_id, text=FIFTEEN)
    one.hear(700, 0.01)
    one.transcribed(FIFTY)
    of_item = [event["unit"] for event in one.all("chorale.verdict") if item_id in event["item_ids"]]
    assert set(of_item) == {1}


def test_speech_that_waits_behind_a_flood_of_forms_is_settled() -> None:
    """Only so much is held against each other. What leaves for that stands as it is: its transcript is told, and
    answers may be made of it."""
    one = talk(typed_turns=False)
    one.meaning = lambda text: None
    one.client("chorale.token", slots=[EIGHT])
    item_id = spoken(one, "a table at seven")
    assert not one.all("conversation.item.input_audio_transcription.completed")
    for _ in range(MOST_SOURCES):
        one.client("chorale.token", slots=[EIGHT])
    completed = one.last("conversation.item.input_audio_transcription.completed")
    assert (completed["item_id"], completed["transcript"]) == (item_id, "a table at seven")
    one.wait(5_000)
    assert all(not entry.unsettled for entry in one.heart.conversation)


@pytest.mark.parametrize(
    ("event", "param"),
    [
        ({"type": "chorale.caption", "item_id": "item_1", "text": " "}, "text"),
        ({"type": "chorale.token", "slots": []}, "slots"),
        ({"type": "chorale.token", "slots": [{"name": "", "value": "x"}]}, "slots[0].name"),
        ({"type": "chorale.token", "slots": [{"name": "a", "value": "b"}] * 65}, "slots"),
    ],
)
def test_forms_and_captions_that_say_nothing_or_too_much_are_refused(
    event: dict[str, Any], param: str
) -> None:
    """The error names the field."""
    with pytest.raises(WireError) as refused:
        codec.decode_client(json.dumps(event))
    assert refused.value.param == param
