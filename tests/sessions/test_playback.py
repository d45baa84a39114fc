"""A call's sound: two responses may wait to be played at once, and speech silences both."""

import pytest

from orchestrator.scheduling.work import Reply, ReplyText, Speak
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from tests.sessions.talk import Talk


def response(talk: Talk, number: int = -1) -> str:
    return str(talk.all("response.created")[number]["response"]["id"])


def flushes(talk: Talk) -> int:
    return sum(isinstance(effect, do.FlushPlayout) for effect in talk.effects)


def call_that_looks_something_up() -> Talk:
    """A call whose first response says so and calls a function; its 4 s still sound while the second is thought out."""
    talk = Talk(kind=LinkKind.CALL)
    talk.speak()
    talk.transcribed("How is the weather?")
    talk.writes("Let me look that up for you.")
    talk.calls("get_weather", "{}")
    talk.finishes("tool_calls")
    talk.sounds(4_000)
    talk.spoke()
    call_id = talk.last("response.function_call_arguments.done")["call_id"]
    output = {"type": "function_call_output", "call_id": call_id, "output": "sunny"}
    talk.client("conversation.item.create", item=output)
    talk.client("response.create")
    return talk


def test_playback_is_silenced_by_speech_while_the_next_response_is_still_thought_out() -> None:
    """F-I5: the sound of the response before is flushed too, told as cleared, and cut in the history."""
    talk = call_that_looks_something_up()
    talk.step(on.PlayoutMoved(response(talk, 0), 2_000 * 24))
    talk.hear(300, 0.95)
    assert flushes(talk) == 1
    assert [e["response_id"] for e in talk.all("output_audio_buffer.cleared")] == [response(talk, 0)]
    assert talk.last("response.done")["response"]["status_details"]["reason"] == "turn_detected"
    assert talk.last("conversation.item.truncated")["audio_end_ms"] == 2_000
    assert ("assistant", "Let me look") in talk.history()


def test_playback_is_followed_for_every_response_that_sounds() -> None:
    """Both are asked for how far they have come; each is told as stopped when it was played."""
    talk = call_that_looks_something_up()
    talk.writes("It is sunny.")
    talk.finishes()
    talk.sounds(1_000)
    first, second = both = response(talk, 0), response(talk, 1)
    assert list(talk.heart.sounding) == [first, second]
    talk.step(on.PlayoutEnded(first))
    assert list(talk.heart.sounding) == [second]
    talk.spoke()
    talk.step(on.PlayoutEnded(second))
    assert tuple(e["response_id"] for e in talk.all("output_audio_buffer.stopped")) == both


def test_playback_of_a_response_that_still_runs_does_not_end() -> None:
    """A track that has run dry between two sentences says nothing of the response: it is not told as stopped, and
    speech cuts what follows."""
    talk = Talk(kind=LinkKind.CALL)
    talk.client("response.create")
    talk.writes("One two three. Four")
    talk.sounds(1_000)
    talk.step(on.PlayoutEnded(response(talk)))
    assert not talk.all("output_audio_buffer.stopped")
    assert list(talk.heart.sounding) == [response(talk)]
    talk.hear(300, 0.95)
    assert flushes(talk) == 1


def test_playback_that_makes_room_for_what_has_no_sound_completes_its_response() -> None:
    """A line break held back behind 40 s of sound is passed over once the track has come nearer: nothing else would end
    the response."""
    talk = Talk(kind=LinkKind.CALL)
    talk.client("response.create")
    talk.writes("Here is a long story. <br>")
    talk.sounds(40_000)
    talk.finishes()
    talk.spoke()
    assert not talk.all("response.done")
    talk.step(on.PlayoutMoved(response(talk), 20_000 * 24))
    assert talk.last("response.done")["response"]["status"] == "completed"


def test_playback_of_a_finished_response_with_a_smiley_is_not_cut() -> None:
    """What has no sound at the end of a message was heard with the rest of it: no event, no cut."""
    talk = Talk(kind=LinkKind.CALL)
    talk.speak()
    talk.transcribed("Thanks")
    talk.answer("You are welcome. 😊")
    talk.step(on.PlayoutEnded(response(talk)))
    talk.hear(300, 0.95)
    assert not talk.all("conversation.item.truncated")
    assert talk.history()[-1] == ("assistant", "You are welcome. 😊")


def test_playback_keeps_a_reply_that_has_no_sound_at_all() -> None:
    """A thumb alone cannot be spoken, but it was the answer: noise afterwards does not ask for another."""
    talk = Talk(kind=LinkKind.CALL)
    talk.speak()
    talk.transcribed("Thanks")
    talk.answer("👍")
    talk.wait(3_000)
    talk.speak(300)
    talk.transcribed("")
    assert not talk.open_jobs(Reply)
    assert talk.history()[-1] == ("assistant", "👍")


def test_playback_cleared_by_the_client_ends_the_response_that_was_making_it() -> None:
    """`output_audio_buffer.clear` without a cancel: no sound of it follows, its words end there."""
    talk = Talk(kind=LinkKind.CALL)
    talk.client("response.create")
    talk.writes("Once there was a king. He had a cat. And")
    talk.sounds(2_000)
    talk.step(on.PlayoutMoved(response(talk), 2_000 * 24))
    talk.client("output_audio_buffer.clear")
    assert talk.last("response.done")["response"]["status_details"]["reason"] == "client_cancelled"
    assert not talk.open_jobs(Speak)
    assert talk.all("output_audio_buffer.cleared")
    assert talk.history() == [("assistant", "Once there was a king.")]


def test_playback_of_an_out_of_band_response_is_silenced_too() -> None:
    """Its sound is on the same track: speech flushes it and it says no more."""
    talk = Talk(kind=LinkKind.CALL)
    talk.client("response.create", response={"conversation": "none", "input": []})
    talk.writes("One two three. Four")
    talk.sounds(2_000)
    talk.hear(300, 0.95)
    assert flushes(talk) == 1
    assert talk.last("response.done")["response"]["status"] == "cancelled"
    assert not talk.jobs


@pytest.mark.parametrize("kind", [LinkKind.WEBSOCKET, LinkKind.CALL])
def test_playback_of_a_long_reply_fits_every_queue(kind: LinkKind) -> None:
    """A hundred sentences are made into sound a few at a time, and on a call not far ahead of what was played."""
    talk = Talk(kind=kind)
    talk.client("response.create")
    talk.writes("This is one more sentence. " * 100)
    talk.finishes()
    played = sent = 0
    for _ in range(1_000):
        if not (open := talk.open_jobs(Speak)):
            if talk.all("response.done"):
                break
            played += 10_000
            talk.step(on.PlayoutMoved(response(talk), min(played, sent) * 24))
            continue
        assert len(open) <= 4
        talk.sounds(2_000)
        sent += 2_000
        talk.spoke()
        assert kind is LinkKind.WEBSOCKET or sent - played <= 40_000
    assert talk.last("response.done")["response"]["status"] == "completed"
    assert sent == 200_000


def test_playback_is_asked_for_while_sentences_wait_for_it() -> None:
    """A call that sends no sound gives no other occasion to look: the session sets itself a time."""
    talk = Talk(kind=LinkKind.CALL)
    talk.client("response.create")
    talk.writes("This is one more sentence. " * 100)
    while talk.open_jobs(Speak):
        talk.sounds(5_000)
        talk.spoke()
    assert talk.heart.deadline == int(talk.now_ms * 1_000) + 1_000_000
    talk.step(on.PlayoutMoved(response(talk), len(talk.sound) * 5_000 * 24))
    assert talk.open_jobs(Speak)


def test_playback_ends_where_the_call_was_hung_up() -> None:
    """Hang-up in the middle of the sound: history ends there, and the session has nothing to wait for."""
    talk = Talk(kind=LinkKind.CALL)
    talk.speak()
    talk.transcribed("Tell me")
    talk.answer("Once there was a king. He had a cat.")
    talk.step(on.PlayoutMoved(response(talk), 2_000 * 24))
    talk.step(on.EndAsked("hung up"))
    assert talk.history()[-1] == ("assistant", "Once there was a king.")
    assert talk.heart.deadline is None


def test_playback_says_nothing_of_a_response_that_ended_without_sound() -> None:
    """Text on a call: no started, no stopped, no cleared."""
    talk = Talk(kind=LinkKind.CALL)
    talk.client("response.create", response={"output_modalities": ["text"]})
    talk.report(ReplyText(talk.reply_job(), "Hi."))
    talk.finishes()
    talk.hear(300, 0.95)
    assert not [type for type in talk.types() if type.startswith("output_audio_buffer")]
