"""What a response asks of the model: the session's settings, overridden for this one response."""

from typing import Any

from orchestrator.scheduling.work import Reply
from tests.sessions.talk import Talk

WEATHER = {"type": "function", "name": "get_weather", "description": "d", "parameters": {"type": "object"}}


def asked(talk: Talk) -> Reply:
    work = talk.jobs[talk.reply_job()].work
    assert isinstance(work, Reply)
    return work


def ask(talk: Talk, **params: Any) -> Reply:
    talk.client("response.create", response=params)
    return asked(talk)


def test_asking_follows_the_session_and_its_own_parameters() -> None:
    """Instructions, tools, choice and limit hold for one response only."""
    talk = Talk()
    talk.update(output_modalities=["text"], tools=[WEATHER], tool_choice="required", max_output_tokens=50)
    one = ask(
        talk,
        instructions="Be short.",
        tools=[],
        tool_choice={"type": "function", "name": "f"},
        max_output_tokens=7,
    )
    assert (one.messages[0].content, one.tools, one.tool_choice, one.max_tokens) == ("Be short.", (), "=f", 7)
    talk.finishes()
    other = ask(talk)
    assert (other.messages[0].content, other.tool_choice, other.max_tokens) == ("Be kind.", "required", 50)
    assert [(tool.name, tool.parameters) for tool in other.tools] == [("get_weather", '{"type":"object"}')]


def test_asking_gives_all_prompts_of_one_session_the_same_cache_key() -> None:
    """An engine reuses what it has already read of a conversation, and of no other's."""
    talk = Talk()
    keys = []
    for _ in range(2):
        keys.append(ask(talk, output_modalities=["text"]).cache_key)
        talk.finishes()
    assert keys[0] == keys[1] != ""


def test_asking_with_given_input_leaves_the_conversation_out() -> None:
    """Items and references replace the context; what is referred to has to be there."""
    talk = Talk()
    talk.typed("kept", id="kept")
    talk.typed("left out")
    text = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "given"}]}
    work = ask(talk, input=[text, {"type": "item_reference", "id": "kept"}])
    assert [m.content for m in work.messages] == ["Be kind.", "given\nkept"]
    talk.finishes()
    talk.client("response.create", response={"input": [{"type": "item_reference", "id": "nobody"}]})
    assert talk.errors()[-1]["param"] == "response.input"


def test_asking_for_another_voice_is_refused_once_there_was_sound() -> None:
    """The protocol fixes the voice at the first audio."""
    talk = Talk()
    talk.update(audio={"output": {"voice": "one"}})
    talk.client("response.create")
    talk.answer("Hi.")
    talk.update(audio={"output": {"voice": "two"}})
    assert talk.errors()[-1]["param"] == "session.audio.output.voice"
