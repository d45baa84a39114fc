"""Messages in the form that a chat template can write down."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.chat_form import GREETING, TemplateSkills, chat_form, readable, strict_form
from modalities.ports import ChatMessage, ToolCall

PLAIN = TemplateSkills(tools=False, system=True)
CALL = ToolCall("c1", "get_weather", '{"city":"Oslo"}')
WITH_TOOL = (
    ChatMessage("system", "Be brief."),
    ChatMessage("user", "What is the weather in Oslo?"),
    ChatMessage("assistant", "", (CALL,)),
    ChatMessage("tool", '{"sky":"sunny","wind_speed":3,"rain":false}', tool_call_id="c1"),
)


def pairs(form: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(message["role"], message["content"]) for message in form]


def test_chat_form_tells_a_tools_output_with_the_question_to_templates_without_tools() -> None:
    """The call disappears, its output stands as words before the question that it answers."""
    assert pairs(chat_form(WITH_TOOL, PLAIN)) == [
        ("system", "Be brief."),
        ("user", "sky: sunny, wind speed: 3, rain: no.\nWhat is the weather in Oslo?"),
    ]


def test_chat_form_keeps_calls_and_outputs_for_templates_that_know_them() -> None:
    """A template with tools gets them as the endpoint's format has them."""
    form = chat_form(WITH_TOOL, TemplateSkills(tools=True))
    assert form[2]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
    ]
    assert form[3] == {"role": "tool", "content": WITH_TOOL[3].content, "tool_call_id": "c1"}


def test_chat_form_of_a_conversation_without_a_user_greets() -> None:
    """Where the assistant speaks first, a greeting stands for the user."""
    assert pairs(chat_form((), PLAIN)) == [("user", GREETING.content)]
    assert pairs(chat_form((ChatMessage("system", "Hi."),), PLAIN))[-1] == ("user", GREETING.content)


def test_chat_form_keeps_system_messages_in_their_place_where_the_template_can() -> None:
    """Instructions in the middle of a conversation stay there."""
    messages = (ChatMessage("user", "a"), ChatMessage("system", "now in rhymes"), ChatMessage("user", "b"))
    assert pairs(chat_form(messages, PLAIN)) == [("user", "a"), ("system", "now in rhymes"), ("user", "b")]


def test_chat_form_puts_system_messages_into_the_next_question_where_it_cannot() -> None:
    """A template without the role system still reads the instructions, in their order."""
    messages = (
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "a"),
        ChatMessage("assistant", "b"),
        ChatMessage("system", "In rhymes."),
    )
    form = chat_form(messages, TemplateSkills(system=False))
    assert pairs(form) == [("user", "Be brief.\na"), ("assistant", "b"), ("user", "In rhymes.")]


def test_chat_form_replaces_what_cannot_be_encoded() -> None:
    """Half a surrogate pair does not reach the engine."""
    assert pairs(chat_form([ChatMessage("user", "a\ud800b")], PLAIN)) == [("user", "a?b")]


def test_readable_reads_json_as_words_and_leaves_other_text() -> None:
    """Objects and lists become words; what is no JSON stays."""
    assert readable("18 degrees") == "18 degrees"
    assert readable('["a", null, true, {"b": [1, 2.5]}]') == "a, nothing, yes, b: 1, 2.5."
    assert readable("{}") == ""


MESSAGES = st.lists(
    st.builds(
        ChatMessage, st.sampled_from(["system", "user", "assistant", "tool"]), st.text("ab", max_size=3)
    ),
    max_size=8,
)


@given(MESSAGES)
def test_strict_form_alternates_user_and_assistant(messages: list[ChatMessage]) -> None:
    """Whatever the conversation, the form begins with the user, alternates, and loses no user's or system's text."""
    form = strict_form(messages)
    assert [message["role"] for message in form[:2]] in (["user"], ["user", "assistant"])
    assert all(one["role"] != other["role"] for one, other in itertools.pairwise(form))
    written = "\n".join(message["content"] for message in form)
    for message in messages:
        assert message.content in written
