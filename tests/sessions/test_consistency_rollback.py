"""What was answered to words that turned out to be others is taken back, and answered anew by whoever began it."""

from typing import Any

from orchestrator.scheduling.work import Reply, Speak
from tests.sessions.agreeing import FIFTEEN, FIFTY, conflict, fits, recognised_again, scores, talk
from tests.sessions.talk import Talk

TOOL = {"type": "function", "name": "set_timer", "chorale": {"reversible": "cancel_timer"}}


def late(**changes: Any) -> tuple[Talk, str]:
    """A turn that was answered unverified, since there was no more time; returns it and the spoken item's id."""
    one = talk(**changes)
    spoken, _ = conflict(one)
    one.wait(1_501)
    assert one.open_jobs(Reply)
    return one, spoken


def test_rollback_cancels_a_response_that_runs_and_makes_a_fresh_one() -> None:
    """The response on the wire ends cancelled, by a turn; the fresh one is asked with the words that stand."""
    one, spoken = late()
    one.writes("Fifty it is")
    first = one.last("response.created")["response"]["id"]
    fits(one, -1.0)
    done = one.last("response.done")["response"]
    assert (done["id"], done["status"]) == (first, "cancelled")
    assert done["status_details"]["reason"] == "turn_detected"
    assert one.last("chorale.realigned")["item_id"] == spoken
    assert len(one.all("response.created")) == 2
    assert one.prompt()[-1] == ("user", f"{FIFTEEN}\n{FIFTEEN}")
    one.answer("Fifteen it is.")
    assert one.last("response.done")["response"]["status"] == "completed"


def test_rollback_deletes_what_was_done_and_not_yet_read() -> None:
    """A complete reply that nobody has seen yet leaves the conversation; it is not done twice."""
    one, spoken = late()
    one.answer("Fifty it is.")
    reply = one.last("response.done")["response"]["output"][0]["id"]
    fits(one, -1.0)
    assert [event["item_id"] for event in one.all("conversation.item.deleted")] == [reply]
    assert len(one.all("response.done")) == 1
    assert one.prompt()[-1] == ("user", f"{FIFTEEN}\n{FIFTEEN}")
    assert one.heart.conversation.get(spoken) is not None


def test_rollback_keeps_what_was_heard() -> None:
    """Sound that was played is history: the message is cut there, and the fresh answer follows it."""
    one, _ = late(modality="audio")
    one.writes("Fifty minutes it is. I shall ring then. Anything else?")
    while one.open_jobs(Speak):
        one.sounds(2_000)
        one.spoke()
    one.wait(2_200)
    one.finishes()
    fits(one, -1.0)
    assert one.all("conversation.item.deleted") == []
    heard = [content for role, content in one.prompt() if role == "assistant"]
    assert len(heard) == 1
    assert heard[0].startswith("Fifty minutes it is.")
    assert "else" not in heard[0]
    assert one.prompt()[-1][0] == "assistant"


def test_rollback_repeats_the_clients_own_request_with_its_metadata() -> None:
    """Where the client had asked for the response, the fresh one is made as it had asked."""
    one = talk(typed_turns=False)
    one.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    one.speak()
    one.transcribed(FIFTY)
    one.typed(FIFTEEN)
    one.client("response.create", response={"metadata": {"a": "b"}, "instructions": "Be short."})
    one.wait(1_501)
    one.writes("Fifty")
    fits(one, -1.0)
    created = [event["response"]["metadata"] for event in one.all("response.created")]
    assert created == [{"a": "b"}, {"a": "b"}]
    assert one.prompt()[0] == ("system", "Be short.")


def test_late_answer_that_changes_nothing_takes_nothing_back() -> None:
    """What the policy had decided in time is confirmed: the reply goes on."""
    one, _ = late()
    one.writes("Fifteen it is")
    fits(one, -20.0)
    assert one.all("response.done") == []
    assert len(one.all("response.created")) == 1


def test_rollback_leaves_a_response_that_has_not_been_asked_for_yet() -> None:
    """While a turn waits, nothing has been answered to it: there is nothing to take back."""
    one = talk()
    conflict(one)
    fits(one, -1.0)
    assert len(one.all("response.created")) == 1
    assert one.all("response.done") == []


def test_rollback_undoes_what_can_be_undone() -> None:
    """A tool that names its opposite has it called with the same arguments; the client goes on from there."""
    one, _ = late()
    tools = [TOOL, {"type": "function", "name": "cancel_timer"}]
    one.update(tools=tools)
    assert one.last("session.updated")["session"]["tools"][0]["chorale"] == {"reversible": "cancel_timer"}
    one.calls("set_timer", '{"minutes": 50}')
    one.finishes("tool_calls")
    fits(one, -1.0)
    calls = [(e["name"], e["arguments"]) for e in one.all("response.function_call_arguments.done")]
    assert calls == [("set_timer", '{"minutes": 50}'), ("cancel_timer", '{"minutes": 50}')]
    assert one.last("response.done")["response"]["status"] == "completed"
    assert one.open_jobs(Reply) == []


def test_rollback_of_tools_that_cannot_be_undone_answers_anew() -> None:
    """What a tool has done stays in the conversation, and so does its call."""
    one, _ = late()
    one.calls("set_timer", '{"minutes": 50}')
    one.finishes("tool_calls")
    call = one.last("response.done")["response"]["output"][0]
    fits(one, -1.0)
    assert one.heart.conversation.get(call["id"]) is not None
    assert one.open_jobs(Reply)


def test_session_calls_no_tool_before_the_turn_is_settled() -> None:
    """With tools even a turn that stands alone is understood first."""
    one = talk()
    one.update(tools=[TOOL])
    one.meaning = lambda text: None
    one.typed(FIFTEEN)
    one.calls("set_timer", "{}")
    assert one.all("response.created") == []
    (job_id,) = one.thoughts
    one.meaning = talk().meaning
    one.think()
    assert job_id not in one.thoughts
    assert one.types()[-1] == "response.function_call_arguments.delta"


def test_rollback_of_an_earlier_turn_leaves_the_answer_to_a_later_one_to_come() -> None:
    """A later message that shows what was misheard before is answered itself, with both turns mended."""
    one = talk()
    one.speak()
    spoken = one.last("input_audio_buffer.committed")["item_id"]
    one.transcribed(FIFTY)
    one.answer("Fifty it is.")
    one.wait(3_000)
    one.typed(FIFTEEN)
    assert len(scores(one)) == 1
    fits(one, -6.0)
    recognised_again(one, FIFTEEN)
    assert one.last("chorale.realigned")["item_id"] == spoken
    assert len(one.all("response.created")) == 2
    assert one.prompt() == [
        ("system", "Be kind."),
        ("user", FIFTEEN),
        ("assistant", "Fifty it is."),
        ("user", FIFTEEN),
    ]
