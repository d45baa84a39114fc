"""The session's heart: turns, text and voice together."""

import pytest

from orchestrator.errors import WireError
from orchestrator.scheduling.work import Reply, Speak
from orchestrator.sessions import events as on
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Talk, view

TEXT = {"output_modalities": ["text"]}
TYPED = {**TEXT, "chorale": {"typed_turns": True}}


def test_session_tells_a_new_link_about_itself_before_anything_else() -> None:
    """`session.created` goes to the link alone, first."""
    talk = Talk()
    assert [(link, event["type"]) for link, event in talk.told] == [("link", "session.created")]
    assert talk.log == []


def test_session_answers_a_text_turn_in_the_protocols_order() -> None:
    """A typed item and response.create give exactly the events of one text response."""
    talk = Talk()
    talk.update(**TEXT)
    talk.typed("Hello")
    talk.client("response.create", response={"metadata": {"k": "v"}})
    talk.writes("Hi ")
    talk.writes("there.")
    talk.finishes()
    assert talk.types() == [
        "session.updated",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    done = talk.last("response.done")["response"]
    assert done["status"] == "completed"
    assert done["metadata"] == {"k": "v"}
    assert done["output"][0]["content"] == [{"type": "output_text", "text": "Hi there."}]
    assert done["usage"]["total_tokens"] == 15
    assert talk.history() == [("user", "Hello"), ("assistant", "Hi there.")]


def test_session_answers_a_spoken_turn_in_the_protocols_order() -> None:
    """Speech gives started, stopped, committed, added, done, the transcript and one spoken response."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "default"}}})
    talk.speak()
    item_id = talk.last("input_audio_buffer.speech_started")["item_id"]
    assert talk.types(since=1) == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    talk.transcribed("What is the time?")
    assert talk.last("conversation.item.input_audio_transcription.completed")["item_id"] == item_id
    assert talk.prompt() == [("system", "Be kind."), ("user", "What is the time?")]
    talk.answer("It is noon. Time to eat.")
    assert len(talk.sound) == 2
    types = talk.types()
    assert types.index("response.output_audio.done") < types.index("response.output_audio_transcript.done")
    assert types[-1] == "response.done"
    assert types.count("response.done") == types.count("response.created") == 1


def test_session_gives_one_answer_to_two_finals_of_one_turn() -> None:
    """F-T1: the voice detector splits an utterance: the first reply is taken back, one answer hears both."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Book a table")
    talk.writes("Sure")
    talk.hear(600, 0.95)
    cancelled = talk.last("response.done")["response"]
    assert cancelled["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    assert talk.all("conversation.item.deleted"), "an unheard reply leaves the conversation"
    talk.hear(700, 0.01)
    talk.transcribed("for two.")
    assert talk.prompt() == [("system", "Be kind."), ("user", "Book a table\nfor two.")]
    talk.answer("Done.")
    statuses = [event["response"]["status"] for event in talk.all("response.done")]
    assert statuses == ["cancelled", "completed"]


def test_session_answers_again_when_noise_took_its_reply_back() -> None:
    """A cough inside the window takes the unheard reply back; the turn still gets its answer."""
    talk = Talk()
    talk.speak()
    talk.transcribed("What time is it?")
    talk.hear(300, 0.95)
    talk.hear(700, 0.01)
    talk.transcribed("")
    assert talk.prompt()[-1] == ("user", "What time is it?")


def test_session_stays_silent_where_nothing_was_said() -> None:
    """Noise that was taken for speech gets an empty transcript and no answer."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "default"}}})
    talk.speak()
    talk.transcribed("")
    assert talk.last("conversation.item.input_audio_transcription.completed")["transcript"] == ""
    assert not talk.open_jobs(Reply)


def test_session_writes_down_what_was_said_before_a_hang_up() -> None:
    """F-T2: the caller leaves in the middle of the sentence's end; its transcript still reaches the conversation."""
    talk = Talk(rules=SessionRules(grace_us=0))
    talk.hear(900, 0.95)
    talk.step(on.LinkLeft("link"))
    talk.wait(1)
    waited = talk.closed
    talk.transcribed("Good bye")
    assert talk.history() == [("user", "Good bye")]
    assert (waited, talk.heart.deadline) == (None, None), "closed once the transcript was in"
    assert not talk.open_jobs(Reply), "nobody is there to be answered"


def test_session_commit_waits_for_its_own_final() -> None:
    """F-T3: push-to-talk: response.create right behind commit answers with that turn's words."""
    talk = Talk()
    talk.update(audio={"input": {"turn_detection": None}})
    talk.position = 16_000
    talk.client("input_audio_buffer.commit")
    talk.client("response.create")
    assert talk.types()[-1] == "response.created"
    assert not talk.open_jobs(Reply), "the model waits for the words"
    talk.transcribed("Turn on the light")
    assert talk.prompt()[-1] == ("user", "Turn on the light")


def test_session_drops_the_words_of_a_cleared_buffer() -> None:
    """F-T3: what was cleared leaks into no later turn."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "default"}}})
    talk.hear(1_500, 0.95)
    talk.client("input_audio_buffer.clear")
    assert not talk.jobs, "its drafts are taken back"
    talk.speak()
    talk.transcribed("second")
    assert talk.history() == [("user", "second")]


def test_session_orders_history_by_when_speech_began() -> None:
    """F-T5: a message typed while the user speaks stands behind the speech that began earlier."""
    talk = Talk()
    talk.update(**TYPED)
    talk.hear(600, 0.95)
    talk.typed("at Luigi's")
    talk.hear(600, 0.95)
    talk.hear(700, 0.01)
    typed = talk.all("conversation.item.added")[0]["item"]["id"]
    committed = talk.last("input_audio_buffer.committed")
    assert committed["previous_item_id"] is None
    talk.transcribed("Book a table")
    assert talk.prompt() == [("system", "Be kind."), ("user", "Book a table\nat Luigi's")]
    assert talk.heart.conversation.previous_of(typed) == committed["item_id"]


@pytest.mark.parametrize("turn_detection", [None, {"type": "server_vad"}])
def test_session_refuses_a_commit_without_sound(turn_detection: dict[str, str] | None) -> None:
    """F-T7: an empty commit is an error of its own; the session lives."""
    talk = Talk()
    talk.update(audio={"input": {"turn_detection": turn_detection}})
    talk.position = 800
    talk.client("input_audio_buffer.commit", event_id="mine")
    assert talk.errors()[0]["code"] == "input_audio_buffer_commit_empty"
    assert talk.errors()[0]["event_id"] == "mine"
    talk.typed("still there?")
    assert talk.history() == [("user", "still there?")]


def test_session_ends_an_endless_utterance_and_joins_its_parts() -> None:
    """F-T7: speech without an end is cut at the bound; its parts are one turn with one answer."""
    talk = Talk(rules=SessionRules(max_utterance_s=5))
    talk.hear(8_000, 0.95)
    talk.hear(700, 0.01)
    first, second = talk.finals()
    talk.transcribed("one", first)
    assert not talk.open_jobs(Reply)
    talk.transcribed("two", second)
    assert talk.prompt()[-1] == ("user", "one\ntwo")
    assert len(talk.all("response.created")) == 1


def test_session_reports_a_lost_transcription_as_failed() -> None:
    """A recogniser that fails gives transcription.failed and a failed response, no `error` event."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "default"}}})
    talk.speak()
    talk.failed(talk.finals()[0])
    assert talk.last("conversation.item.input_audio_transcription.failed")["error"]["code"] == "worker_failed"
    assert talk.last("response.done")["response"]["status"] == "failed"
    assert talk.errors() == []
    talk.speak()
    talk.transcribed("again")
    assert talk.prompt()[-1] == ("user", "again")


def test_session_takes_a_typed_turn_during_speech_output() -> None:
    """F-M1: with typed turns on, a message stops the voice and is answered."""
    talk = Talk()
    talk.update(chorale={"typed_turns": True})
    talk.speak()
    talk.transcribed("Tell me a story")
    talk.writes("Once upon a time there was a king. ")
    talk.writes("He had a cat.")
    talk.sounds(2_000)
    talk.wait(1_000)
    talk.typed("shorter please")
    assert talk.last("response.done")["response"]["status_details"]["reason"] == "turn_detected"
    assert not talk.open_jobs(Speak)
    history = talk.prompt()
    assert history[-1] == ("user", "shorter please")
    assert history[-2][0] == "assistant"
    assert "Once upon a time there was a king.".startswith(history[-2][1])


def test_session_leaves_plain_clients_items_unanswered() -> None:
    """Without typed turns, item.create neither interrupts nor answers."""
    talk = Talk()
    talk.speak()
    talk.transcribed("Hello")
    talk.typed("sync")
    assert len(talk.open_jobs(Reply)) == 1
    assert talk.all("response.done") == []


@pytest.mark.parametrize("gap_ms", [5, 50, 2_000])
def test_session_alternates_typed_and_spoken_turns(gap_ms: int) -> None:
    """F-M2: 20 alternating turns: one entry per input, one answer per turn window, roles never mixed."""
    talk = Talk()
    talk.update(chorale={"typed_turns": True}, **TEXT)
    said: list[str] = []
    for turn in range(10):
        talk.typed(f"typed {turn}")
        talk.wait(gap_ms)
        if talk.open_jobs(Reply) and gap_ms > 1_000:
            talk.answer(f"to typed {turn}.")
            talk.wait(gap_ms)
        talk.speak(500)
        talk.transcribed(f"spoken {turn}")
        talk.answer(f"to spoken {turn}.")
        talk.wait(2_000)
        said += [f"typed {turn}", f"spoken {turn}"]
    entries = [line for role, text in talk.history() if role == "user" for line in text.split("\n")]
    assert sorted(entries) == sorted(said)
    completed = [e for e in talk.all("response.done") if e["response"]["status"] == "completed"]
    assert len(completed) == (20 if gap_ms > 1_000 else 10)
    assert all(text.startswith("to ") for role, text in talk.history() if role == "assistant")


def test_session_puts_a_reply_behind_what_it_answers() -> None:
    """F-M1: a message that comes while the reply is thought out is not in its context: it stands behind the reply, and
    the next response answers it."""
    talk = Talk()
    talk.update(**TEXT)
    talk.typed("one", id="one")
    talk.client("response.create")
    talk.wait(10)
    talk.typed("two", id="two")
    talk.writes("Answer to one.")
    assert talk.last("conversation.item.added")["previous_item_id"] == "one"
    talk.finishes()
    talk.client("response.create")
    assert talk.prompt()[1:] == [("user", "one"), ("assistant", "Answer to one."), ("user", "two")]


def test_session_answers_nothing_that_the_client_deleted() -> None:
    """The words come after the item has gone: they are told, and nobody answers them."""
    talk = Talk()
    talk.speak()
    talk.client("conversation.item.delete", item_id=talk.last("conversation.item.added")["item"]["id"])
    talk.transcribed("Never mind")
    assert not talk.open_jobs(Reply)


def test_session_refuses_a_second_response_and_keeps_the_first() -> None:
    """One response at a time: the error echoes the event's id, nothing else happens."""
    talk = Talk()
    talk.update(**TEXT)
    talk.client("response.create")
    before = len(talk.log)
    talk.client("response.create", event_id="second")
    assert talk.errors()[0]["code"] == "conversation_already_has_active_response"
    assert talk.errors()[0]["event_id"] == "second"
    assert len(talk.log) == before
    talk.writes("Hi.")
    talk.finishes()
    assert talk.last("response.done")["response"]["status"] == "completed"


def test_session_runs_an_out_of_band_response_beside_another() -> None:
    """`conversation: none` touches no history, sends no item events and may run beside the default response."""
    talk = Talk()
    talk.update(**TEXT)
    talk.typed("Hello")
    talk.client("response.create")
    talk.client(
        "response.create",
        response={"conversation": "none", "input": [], "instructions": "Classify.", "metadata": {"a": "b"}},
    )
    main, aside = talk.open_jobs(Reply)
    work = talk.jobs[aside].work
    assert isinstance(work, Reply)
    assert [m.content for m in work.messages] == ["Classify."]
    created = talk.last("response.created")["response"]
    assert created["conversation_id"] is None
    del talk.jobs[main]
    before = len(talk.log)
    talk.writes("greeting")
    talk.finishes()
    assert not any(t.startswith("conversation.") for t in talk.types(since=before))
    assert talk.history() == [("user", "Hello")]


def test_session_is_not_interrupted_by_a_message_that_it_refuses() -> None:
    """A typed turn behind an unknown item is an error and nothing else: the reply goes on."""
    talk = Talk()
    talk.update(**TYPED)
    talk.typed("Hello")
    before = len(talk.log)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "more"}]}
    talk.client("conversation.item.create", item=item, previous_item_id="nobody")
    assert talk.errors()[0]["param"] == "previous_item_id"
    assert len(talk.log) == before


def test_session_takes_a_typed_turn_behind_the_reply_that_it_interrupts() -> None:
    """The unheard reply goes, and the message that named it as its place stays."""
    talk = Talk()
    talk.update(**TYPED)
    talk.typed("Hello")
    talk.writes("Hi")
    reply = talk.last("response.output_item.added")["item"]["id"]
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Good bye"}]}
    talk.client("conversation.item.create", item=item, previous_item_id=reply)
    assert talk.errors() == []
    assert talk.prompt()[-1] == ("user", "Hello\nGood bye")


def test_session_becomes_a_transcription_session_by_its_first_update_only() -> None:
    """Speech is written down and never answered; later the type cannot change."""
    talk = Talk()
    talk.client(
        "session.update", session={"type": "transcription", "audio": {"input": {"transcription": {}}}}
    )
    talk.speak()
    talk.transcribed("Hello")
    assert talk.last("conversation.item.input_audio_transcription.completed")["transcript"] == "Hello"
    assert not talk.open_jobs(Reply)
    talk.update()
    assert talk.errors()[0]["param"] == "session.type"
    talk.client("session.update", session={"chorale": {"typed_turns": True}})
    talk.typed("typed")
    assert not talk.open_jobs(Reply)


def test_session_that_was_opened_for_transcription_stays_that() -> None:
    """By ``?intent=transcription`` or a client secret: not even its first update makes it one that answers."""
    talk = Talk(session=view(type="transcription", object="realtime.transcription_session"))
    talk.update()
    assert talk.errors()[0]["param"] == "session.type"
    assert talk.heart.view.type == "transcription"


def test_session_update_that_is_wrong_changes_nothing() -> None:
    """An invalid update is refused whole."""
    talk = Talk()
    before = talk.heart.view
    talk.update(
        instructions="new", audio={"input": {"turn_detection": {"type": "server_vad", "threshold": 7}}}
    )
    assert talk.errors()[0]["param"] == "session.audio.input.turn_detection.threshold"
    assert talk.heart.view == before


def test_session_puts_a_refused_message_in_order() -> None:
    """An invalid message is answered by an error on its link only."""
    talk = Talk()
    talk.step(on.ClientErred("link", WireError("invalid_json", "The message is not valid JSON."), None))
    assert talk.told[-1][0] == "link"
    assert talk.errors()[0]["code"] == "invalid_json"
    assert talk.log == []
