"""``idle_timeout_ms``: what is a silence, from when it is counted, and what comes of it."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.clock import US_PER_MS
from orchestrator.recording.written_rules import recorded_rules
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Talk

LIMIT_MS = 6_000
TEXT: dict[str, Any] = {"output_modalities": ["text"]}


def vad(**fields: Any) -> dict[str, Any]:
    detection = {"type": "server_vad", "idle_timeout_ms": LIMIT_MS, **fields}
    return {"audio": {"input": {"turn_detection": detection}}}


def answered(kind: LinkKind = LinkKind.WEBSOCKET, ms: int = 2_000, **session: Any) -> Talk:
    """A session whose client has just got an answer, of `ms` of sound where it is spoken."""
    talk = Talk(kind=kind)
    talk.update(**{**vad(), **session})
    talk.typed("Hello")
    talk.client("response.create")
    talk.answer("Hi there.", ms)
    assert talk.last("response.done")["response"]["status"] == "completed"
    return talk


def timeouts(talk: Talk) -> int:
    return len(talk.all("input_audio_buffer.timeout_triggered"))


def test_a_silence_after_an_answer_in_text_is_told_and_answered() -> None:
    """In the protocol's order: timed out, committed, the item of the silence, then a response of the server's own."""
    talk = answered(**TEXT)
    since = len(talk.log)
    talk.wait(LIMIT_MS - 1)
    assert talk.log[since:] == []
    talk.wait(1)
    assert talk.types(since=since) == [
        "input_audio_buffer.timeout_triggered",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    item = talk.last("conversation.item.added")["item"]
    assert (item["role"], item["content"]) == ("user", [{"type": "input_audio", "transcript": ""}])
    assert talk.last("input_audio_buffer.timeout_triggered")["item_id"] == item["id"]
    assert talk.prompt()[-1] == ("user", "(The user says nothing.)")
    talk.answer("Are you there?")
    talk.wait(LIMIT_MS)
    assert timeouts(talk) == 2, "behind the next answer it is counted again"
    talk.answer("Hello?")
    talk.strict.end()


def test_a_silence_is_counted_from_the_end_of_the_sound() -> None:
    """On a WebSocket from when the sound that was sent has been heard, made faster or not."""
    talk = answered(ms=4_000)
    talk.wait(4_000 + LIMIT_MS - 1)
    assert timeouts(talk) == 0
    talk.wait(1)
    assert timeouts(talk) == 1


def test_a_silence_on_a_call_is_counted_from_the_end_of_its_playout() -> None:
    """Only the track knows when that is."""
    talk = answered(LinkKind.CALL)
    talk.wait(60_000)
    assert timeouts(talk) == 0
    response_id = talk.last("response.done")["response"]["id"]
    talk.step(on.PlayoutEnded(response_id))
    talk.wait(LIMIT_MS - 1)
    assert timeouts(talk) == 0
    talk.wait(1)
    assert timeouts(talk) == 1


def test_the_extent_of_a_silence_is_in_the_sound_that_came() -> None:
    """Sound of a silent microphone goes on; a muted one sends none, which is a silence, too."""
    talk = answered(**TEXT)
    talk.hear(LIMIT_MS, 0.01)
    talk.wait(100)
    event = talk.last("input_audio_buffer.timeout_triggered")
    assert 0 < event["audio_end_ms"] - event["audio_start_ms"] <= LIMIT_MS
    assert abs(event["audio_end_ms"] - LIMIT_MS) <= 100
    muted = answered(**TEXT)
    muted.wait(LIMIT_MS)
    event = muted.last("input_audio_buffer.timeout_triggered")
    assert event["audio_start_ms"] == event["audio_end_ms"] == 0


def _speaks(talk: Talk) -> None:
    talk.hear(300, 0.95)
    talk.hear(700, 0.01)
    talk.transcribed("")


def _types(talk: Talk) -> None:
    talk.typed("One moment.")


def _edits(talk: Talk) -> None:
    talk.client("conversation.item.delete", item_id=talk.all("conversation.item.added")[0]["item"]["id"])


@pytest.mark.parametrize("sign", [_speaks, _types, _edits])
def test_whatever_the_user_does_begins_the_silence_anew(sign: Callable[[Talk], None]) -> None:
    """Be it a noise in which no word was heard."""
    talk = answered(**TEXT)
    talk.wait(LIMIT_MS - 1_500)
    sign(talk)
    talk.wait(LIMIT_MS - 1)
    assert timeouts(talk) == 0
    talk.wait(1)
    assert timeouts(talk) == 1


def test_there_is_no_silence_while_a_response_is_made() -> None:
    """However long the model takes; nor before the first answer, when the assistant has said nothing."""
    talk = Talk(SessionRules())
    talk.update(**vad(), **TEXT)
    talk.wait(10 * LIMIT_MS)
    assert timeouts(talk) == 0
    talk.client("response.create")
    talk.wait(10 * LIMIT_MS)
    talk.writes("So.")
    talk.wait(10 * LIMIT_MS)
    assert timeouts(talk) == 0
    talk.finishes()
    talk.wait(LIMIT_MS)
    assert timeouts(talk) == 1


def test_an_answer_that_failed_is_no_beginning_of_a_silence() -> None:
    """A model that cannot answer is not asked again and again of nothing."""
    talk = answered(**TEXT)
    talk.wait(LIMIT_MS)
    talk.failed(talk.reply_job())
    talk.wait(10 * LIMIT_MS)
    assert timeouts(talk) == 1


def test_nobody_is_silent_who_is_not_there() -> None:
    """A client that lost its connection gets its time again when it is back; with a sideband alone nobody is there."""
    talk = answered(**TEXT)
    talk.wait(LIMIT_MS - 1_000)
    talk.step(on.LinkJoined("side", LinkKind.SIDEBAND))
    talk.step(on.LinkLeft("link"))
    talk.wait(20_000)
    assert timeouts(talk) == 0
    talk.step(on.LinkJoined("link", LinkKind.WEBSOCKET))
    talk.wait(LIMIT_MS - 1)
    assert timeouts(talk) == 0
    talk.wait(1)
    assert timeouts(talk) == 1


def test_a_silence_without_automatic_answers_is_told_and_not_answered() -> None:
    """``create_response: false`` leaves the answer to the client; it is told once."""
    talk = answered(**vad(create_response=False), **TEXT)
    talk.wait(10 * LIMIT_MS)
    assert timeouts(talk) == 1
    assert len(talk.all("response.created")) == 1


def test_a_silence_has_a_transcript_where_clients_wait_for_one() -> None:
    """Every item with sound has an end of its transcription."""
    session = vad()
    session["audio"]["input"]["transcription"] = {"model": "whisper-1"}
    talk = answered(**session, **TEXT)
    talk.wait(LIMIT_MS)
    completed = talk.last("conversation.item.input_audio_transcription.completed")
    assert (completed["transcript"], completed["usage"]["type"]) == ("", "duration")
    talk.answer("Still there?")
    talk.strict.end()


@pytest.mark.parametrize("detection", [None, {"type": "semantic_vad"}, {"type": "server_vad"}])
def test_without_a_limit_no_silence_is_too_long(detection: dict[str, Any] | None) -> None:
    """The field belongs to server VAD, and is off unless it is set."""
    talk = answered(**TEXT)
    talk.update(audio={"input": {"turn_detection": detection}})
    talk.wait(10 * LIMIT_MS)
    assert timeouts(talk) == 0


def test_the_limit_may_change_while_it_is_silent() -> None:
    """A new one holds for the silence that goes on."""
    talk = answered(**TEXT)
    talk.wait(5_500)
    talk.update(**vad(idle_timeout_ms=5_000))
    assert timeouts(talk) == 0
    deadline = talk.heart.deadline
    assert deadline is not None
    assert deadline <= talk.now_ms * US_PER_MS
    talk.wait(1)
    assert timeouts(talk) == 1


def test_sessions_that_were_recorded_before_stay_silent() -> None:
    """What they were recorded to do is what they do again."""
    talk = Talk(recorded_rules({}))
    talk.update(**vad(), **TEXT)
    talk.client("response.create")
    talk.answer("Hi there.")
    talk.wait(10 * LIMIT_MS)
    assert timeouts(talk) == 0
