"""Interruption: what the user heard is what history keeps."""

import pytest

from orchestrator.clock import US_PER_MS
from orchestrator.scheduling.work import Reply, Speak, SpeechPiece
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Talk

STORY = "Once there was a king. He had a black cat. The cat had a hat."


def spoken_reply(kind: LinkKind = LinkKind.WEBSOCKET) -> Talk:
    """A reply of three sentences with 2 s of sound each, all sent; the model has finished."""
    talk = Talk(kind=kind)
    talk.speak()
    talk.transcribed("Tell me a story")
    talk.answer(STORY, ms=2_000)
    return talk


def playing_response(talk: Talk) -> str:
    return str(talk.last("response.created")["response"]["id"])


def play(talk: Talk, ms: int) -> None:
    talk.step(on.PlayoutMoved(playing_response(talk), ms * 24))


def assistant(talk: Talk) -> list[str]:
    return [text for role, text in talk.history() if role == "assistant"]


def test_speaker_keeps_unplayed_sentences_out_of_history() -> None:
    """F-I1: cut after the first sentence: the others are not in the model's history."""
    talk = spoken_reply(LinkKind.CALL)
    play(talk, 2_000)
    talk.hear(300, 0.95)
    assert assistant(talk) == ["Once there was a king."]
    assert talk.last("conversation.item.truncated")["audio_end_ms"] == 2_000
    assert any(isinstance(effect, do.FlushPlayout) for effect in talk.effects)
    assert talk.all("output_audio_buffer.cleared")
    assert not talk.all("output_audio_buffer.stopped")


@pytest.mark.parametrize(
    ("played_ms", "heard"),
    [
        (0, []),
        (40, []),
        (400, ["Once"]),
        (1_999, ["Once there was a"]),
        (6_000, [STORY]),
    ],
)
def test_speaker_keeps_exactly_the_heard_prefix(played_ms: int, heard: list[str]) -> None:
    """F-I2: cut at 0, 40, 400 ms and at the very end: whole words heard, no item when nothing was heard."""
    talk = spoken_reply(LinkKind.CALL)
    item_id = talk.last("response.output_item.added")["item"]["id"]
    play(talk, played_ms)
    talk.hear(300, 0.95)
    assert assistant(talk) == heard
    assert (talk.heart.conversation.get(item_id) is None) == (not heard)
    assert bool(talk.all("conversation.item.deleted")) == (not heard)


def test_speaker_lets_no_sound_of_an_old_turn_out() -> None:
    """F-I3: the user goes on speaking while the reply is thought: nothing of it is played 170 ms later."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Tell me")
    talk.writes("Once there was a king. And")
    speech = talk.open_jobs(Speak)[0]
    talk.hear(170, 0.95)
    assert talk.jobs == {} or not talk.open_jobs(Speak)
    before = len(talk.sound), len(talk.log)
    talk.report(SpeechPiece(speech, 0, 24_000, 4_800))
    assert (len(talk.sound), len(talk.log)) == before


def test_speaker_refuses_a_truncate_beyond_the_sound_and_lives_on() -> None:
    """F-I4: an offset by wall clock beyond the audio is an error; the session goes on and speaks again."""
    talk = spoken_reply()
    item_id = talk.last("response.output_item.added")["item"]["id"]
    talk.client("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=60_000)
    assert talk.errors()[0]["param"] == "audio_end_ms"
    assert assistant(talk) == [STORY]
    talk.wait(10_000)
    talk.speak()
    talk.transcribed("more")
    talk.answer("More.")
    assert talk.last("response.done")["response"]["status"] == "completed"


@pytest.mark.parametrize(
    ("end_ms", "heard"), [(0, []), (2_000, ["Once there was a king."]), (6_000, [STORY])]
)
def test_speaker_truncates_history_for_the_client(end_ms: int, heard: list[str]) -> None:
    """`conversation.item.truncate` really cuts the history and the item, and is echoed."""
    talk = spoken_reply()
    item_id = talk.last("response.output_item.added")["item"]["id"]
    talk.client("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=end_ms)
    assert talk.last("conversation.item.truncated") == {
        "type": "conversation.item.truncated",
        "item_id": item_id,
        "content_index": 0,
        "audio_end_ms": end_ms,
    }
    assert assistant(talk) == heard
    talk.client("conversation.item.retrieve", item_id=item_id)
    assert talk.last("conversation.item.retrieved")["item"]["content"][0]["transcript"] == "".join(heard)


def test_speaker_answers_a_truncate_of_what_it_took_back_itself() -> None:
    """A client that truncates an item which nobody heard gets its echo, no error: some clients die of one."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Tell me")
    talk.writes("Once there was a king. And")
    item_id = talk.last("response.output_item.added")["item"]["id"]
    talk.hear(300, 0.95)
    assert talk.all("conversation.item.deleted")
    talk.client("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=0)
    talk.client("conversation.item.retrieve", item_id=item_id)
    talk.client("conversation.item.delete", item_id=item_id)
    assert talk.errors() == []
    assert talk.types()[-3:] == [
        "conversation.item.truncated",
        "conversation.item.retrieved",
        "conversation.item.deleted",
    ]


def test_speaker_estimates_what_a_socket_client_heard_until_it_says_so() -> None:
    """WebSocket: heard is min(sent, elapsed); the client's own truncate replaces the estimate."""
    talk = spoken_reply()
    item_id = talk.last("response.output_item.added")["item"]["id"]
    talk.wait(2_050)
    talk.hear(64, 0.95)
    assert assistant(talk) == ["Once there was a king."]
    assert talk.all("conversation.item.truncated") == []
    talk.client("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=4_000)
    assert assistant(talk) == ["Once there was a king. He had a black cat."]


def test_speaker_cancel_leaves_what_was_said() -> None:
    """`response.cancel`: one done with client_cancelled, no delta after it, the session is usable."""
    talk = Talk()
    talk.update(output_modalities=["text"])
    talk.typed("Hello")
    talk.client("response.create")
    talk.writes("Hi the")
    job = talk.reply_job()
    talk.client("response.cancel")
    done = talk.last("response.done")["response"]
    assert done["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert done["output"][0]["status"] == "incomplete"
    assert job not in talk.jobs
    assert talk.types()[-1] == "response.done"
    talk.client("response.cancel", event_id="late")
    assert talk.errors()[0]["code"] == "response_cancel_not_active"
    assert talk.errors()[0]["message"].startswith("Cancellation failed")
    talk.client("response.create")
    assert talk.prompt()[-1] == ("assistant", "Hi the")


def test_speaker_cancel_announces_no_broken_call() -> None:
    """Clients run a call once its arguments are done: a cancelled one is never announced as done."""
    talk = Talk()
    talk.update(output_modalities=["text"])
    talk.client("response.create")
    talk.calls("get_weather", '{"ci')
    talk.client("response.cancel")
    assert not talk.all("response.function_call_arguments.done")
    assert talk.last("response.output_item.done")["item"]["status"] == "incomplete"
    talk.client("response.create")
    assert talk.prompt() == [("system", "Be kind.")]


def test_speaker_plays_out_after_the_response_is_done() -> None:
    """A call hears `output_audio_buffer.started` behind the part, `stopped` after response.done."""
    talk = spoken_reply(LinkKind.CALL)
    types = talk.types()
    assert types.index("response.content_part.added") < types.index("output_audio_buffer.started")
    assert any(isinstance(effect, do.FinishPlayout) for effect in talk.effects)
    talk.step(on.PlayoutEnded(playing_response(talk)))
    assert talk.types()[-2:] == ["response.done", "output_audio_buffer.stopped"]
    talk.hear(300, 0.95)
    assert assistant(talk) == [STORY]
    assert not talk.all("output_audio_buffer.cleared")


def test_speaker_clear_stops_the_sound_and_cuts_history() -> None:
    """`output_audio_buffer.clear` after a cancel: cleared, and history ends where the sound did."""
    talk = spoken_reply(LinkKind.CALL)
    play(talk, 4_000)
    talk.client("output_audio_buffer.clear")
    assert talk.all("output_audio_buffer.cleared")
    assert assistant(talk) == ["Once there was a king. He had a black cat."]
    talk.client("output_audio_buffer.clear")
    assert talk.errors() == []


def test_speaker_reads_text_as_heard_after_its_grace_time() -> None:
    """Text delivered for less than 300 ms was not read: a typed turn inside it takes the reply back."""
    talk = Talk()
    talk.update(output_modalities=["text"], chorale={"typed_turns": True})
    talk.typed("Hello")
    talk.writes("Hi, how are you?")
    talk.wait(200)
    talk.typed("I mean good bye")
    assert talk.all("conversation.item.deleted")
    assert talk.prompt() == [("system", "Be kind."), ("user", "Hello\nI mean good bye")]
    talk.writes("Good bye.")
    talk.wait(500)
    talk.typed("wait")
    assert talk.prompt()[-2:] == [("assistant", "Good bye."), ("user", "wait")]


def test_speaker_is_not_interrupted_where_the_client_forbids_it() -> None:
    """`interrupt_response: false`: the reply goes on, the new turn is answered afterwards."""
    talk = Talk()
    vad = {"type": "server_vad", "interrupt_response": False}
    talk.update(audio={"input": {"turn_detection": vad}})
    talk.speak()
    talk.transcribed("one")
    talk.writes("First answer.")
    talk.speak()
    talk.transcribed("two")
    assert len(talk.open_jobs(Reply)) == 1
    talk.answer("")
    assert talk.prompt()[-1] == ("user", "two")
    assert [e["response"]["status"] for e in talk.all("response.done")] == ["completed"]


def test_speaker_leaves_the_answer_to_a_client_that_wants_it() -> None:
    """`create_response: false`: the turn is committed, nothing is answered before response.create."""
    talk = Talk()
    talk.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    talk.speak()
    talk.transcribed("Hello")
    assert not talk.open_jobs(Reply)
    talk.client("response.create")
    assert talk.prompt()[-1] == ("user", "Hello")


def test_speaker_fails_a_response_whose_model_failed() -> None:
    """Open parts are closed, response.done says failed with a code; no `error` event."""
    talk = Talk()
    talk.update(output_modalities=["text"])
    talk.client("response.create")
    talk.writes("Hal")
    talk.failed(talk.reply_job(), "deadline_exceeded")
    done = talk.last("response.done")["response"]
    assert done["status"] == "failed"
    assert done["status_details"]["error"]["code"] == "deadline_exceeded"
    assert talk.errors() == []
    talk.client("response.create")
    assert talk.open_jobs(Reply)


def test_speaker_writes_where_no_voice_is_installed() -> None:
    """Without a synthesiser replies are text, and say so."""
    talk = Talk(rules=SessionRules(speech_output=False))
    talk.speak()
    talk.transcribed("Hello")
    talk.answer("Hi.")
    assert talk.last("response.done")["response"]["output_modalities"] == ["text"]
    assert talk.last("response.output_text.done")["text"] == "Hi."


def test_speaker_keeps_what_a_lost_call_had_played() -> None:
    """The call drops in the middle of the sound and does not come back: history ends there."""
    talk = spoken_reply(LinkKind.CALL)
    play(talk, 2_000)
    talk.step(on.LinkLeft("link"))
    talk.wait(talk.heart.deadline / US_PER_MS - talk.now_ms if talk.heart.deadline else 0)
    assert assistant(talk) == ["Once there was a king."]


def test_speaker_says_so_when_the_client_limit_cut_the_reply() -> None:
    """`max_output_tokens` reached: status incomplete with its reason."""
    talk = Talk()
    talk.update(output_modalities=["text"])
    talk.client("response.create", response={"max_output_tokens": 5})
    talk.writes("One two")
    talk.finishes("length")
    assert talk.last("response.done")["response"]["status_details"] == {
        "type": "incomplete",
        "reason": "max_output_tokens",
    }


def test_speaker_sends_sound_in_the_format_of_the_response() -> None:
    """A format asked for one response holds for its sound and for no other."""
    talk = Talk()
    talk.client("response.create", response={"audio": {"output": {"format": {"type": "audio/pcmu"}}}})
    talk.answer("Hi.")
    talk.client("response.create")
    talk.answer("Hi.")
    assert [piece.format.type for piece in talk.sound] == ["audio/pcmu", "audio/pcm"]


def test_speaking_later_sentences_are_due_when_the_sound_before_them_ends() -> None:
    """The first sentence is missed at once, the next once what is being made and what was made have been heard."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Tell me.")
    talk.writes("It is a fine day. ")
    talk.writes("There will be rain tomorrow. ")
    talk.writes("Then")
    first, second = talk.open_jobs(Speak)
    assert talk.jobs[first].due_us == talk.jobs[first].created_us
    assert talk.jobs[second].due_us - talk.jobs[second].created_us == len("It is a fine day.") * 60_000
    talk.sounds(3_000, first)
    talk.spoke(first)
    talk.wait(1_000)
    talk.writes(" the sun comes out. Good bye.")
    third = talk.open_jobs(Speak)[-1]
    assert (
        talk.jobs[third].due_us - talk.jobs[third].created_us
        == 2_000_000 + len("There will be rain tomorrow.") * 60_000
    )
