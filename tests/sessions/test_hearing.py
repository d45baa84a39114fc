"""What the client says it heard settles what was heard."""

from orchestrator.scheduling.work import Reply
from tests.sessions.talk import Talk

LINES = "One two three four five. Six seven eight nine ten. "


def talking() -> tuple[Talk, str]:
    """A reply that still runs; 3 s of it were sent 2.5 s ago."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Count")
    talk.writes(LINES)
    talk.sounds(3_000)
    talk.wait(2_500)
    return talk, talk.last("response.output_item.added")["item"]["id"]


def truncate(talk: Talk, item_id: str, ms: int) -> None:
    talk.client("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=ms)


def test_hearing_takes_the_clients_word_over_a_cancel_that_follows() -> None:
    """Truncate first, cancel second: the order is the client's choice, and history is the same."""
    talk, item_id = talking()
    truncate(talk, item_id, 1_000)
    talk.client("response.cancel")
    assert talk.history()[-1] == ("assistant", "One two")
    talk.client("conversation.item.retrieve", item_id=item_id)
    assert talk.last("conversation.item.retrieved")["item"]["content"][0]["transcript"] == "One two"


def test_hearing_takes_the_clients_word_over_its_own_estimate() -> None:
    """A client with a detector of its own truncates before the server hears the speech: 1 s was heard, not 2.5."""
    talk, item_id = talking()
    truncate(talk, item_id, 1_000)
    talk.hear(300, 0.95)
    assert talk.history()[-1] == ("assistant", "One two")


def test_hearing_makes_no_new_reply_for_one_that_the_client_cancelled() -> None:
    """The reply was not taken back by noise but by the client: noise afterwards brings no other."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Count")
    talk.writes("One two")
    talk.client("response.cancel")
    talk.speak(300)
    talk.transcribed("")
    assert not talk.open_jobs(Reply)


def test_hearing_makes_no_new_reply_once_the_client_asked_for_one_itself() -> None:
    """A cough takes the reply back, the client asks at once: that response is the answer, and the cough brings none."""
    talk = Talk()
    talk.speak()
    talk.transcribed("What time is it?")
    talk.hear(300, 0.95)
    talk.client("response.create")
    talk.answer("Noon.")
    talk.hear(700, 0.01)
    talk.transcribed("")
    assert not talk.open_jobs(Reply)
    assert [e["response"]["status"] for e in talk.all("response.done")] == ["cancelled", "completed"]


def test_hearing_keeps_a_finished_text_whole_though_its_end_was_hardly_read() -> None:
    """The user types while the last words arrive: a text that is complete on the screen is not cut."""
    talk = Talk()
    talk.update(output_modalities=["text"], chorale={"typed_turns": True})
    talk.typed("Hello")
    talk.writes("Hi. ")
    talk.wait(1_000)
    talk.writes("How are you?")
    talk.finishes()
    talk.wait(100)
    talk.typed("Fine")
    assert talk.prompt()[-2:] == [("assistant", "Hi. How are you?"), ("user", "Fine")]


def test_hearing_answers_a_turn_again_when_the_noise_could_not_be_transcribed() -> None:
    """What took the unheard reply back is never written down: the turn still gets its answer, and no failure."""
    talk = Talk()
    talk.speak()
    talk.transcribed("What time is it?")
    talk.speak(300)
    talk.failed(talk.finals()[0])
    assert talk.prompt()[-1] == ("user", "What time is it?")
    assert [e["response"]["status"] for e in talk.all("response.done")] == ["cancelled"]


def test_hearing_shows_nothing_of_a_reply_that_was_taken_back_once_the_client_cuts_it() -> None:
    """The user cuts in before a word was heard, and the reply is gone; clients truncate it all the same and retrieve it
    then: what they show is what was heard of it."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Count")
    talk.writes(LINES)
    item_id = talk.last("response.output_item.added")["item"]["id"]
    talk.hear(300, 0.95)
    assert talk.last("conversation.item.deleted")["item_id"] == item_id
    truncate(talk, item_id, 0)
    talk.client("conversation.item.retrieve", item_id=item_id)
    assert talk.last("conversation.item.retrieved")["item"]["content"][0]["transcript"] == ""
