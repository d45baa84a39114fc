"""What leaves a prompt that is too long, and what never does."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.prompt_window import Windows, shortened
from modalities.ports import ChatMessage, ToolCall

SYSTEM = ChatMessage("system", "Be brief.")


def talk(turns: int, length: int = 40) -> list[ChatMessage]:
    """Returns a conversation with numbered turns of about `length` characters a message."""
    messages = [SYSTEM]
    for n in range(turns):
        messages.append(ChatMessage("user", f"question {n} ".ljust(length, "x")))
        messages.append(ChatMessage("assistant", f"answer {n} ".ljust(length, "x")))
    return [*messages, ChatMessage("user", "the last question")]


def size(messages: tuple[ChatMessage, ...] | list[ChatMessage]) -> int:
    return sum(len(message.content) + 20 for message in messages)


def test_shortened_leaves_out_the_oldest_turns_whole() -> None:
    """System message, newest turns and the question stay; turns leave together with their answers."""
    messages = talk(20)
    kept = shortened(messages, 0.5)
    assert kept is not None
    assert kept[0] == SYSTEM
    assert list(kept[1:]) == messages[-len(kept) + 1 :]
    assert kept[1].role == "user"
    assert size(kept) <= 0.5 * size(messages)


def test_shortened_takes_calls_and_their_outputs_along() -> None:
    """No tool's output stays behind without the call that it answers."""
    call = ToolCall("c1", "get_weather", '{"city":"Oslo"}')
    messages = [
        ChatMessage("user", "weather? " + "x" * 100),
        ChatMessage("assistant", tool_calls=(call,)),
        ChatMessage("tool", "sunny", tool_call_id="c1"),
        ChatMessage("assistant", "It is sunny."),
        ChatMessage("user", "thanks"),
    ]
    assert shortened(messages, 0.8) == (messages[-1],)


def test_shortened_keeps_what_follows_the_last_question() -> None:
    """A call that answers the last question and its output are needed for the reply."""
    tail = (
        ChatMessage("user", "q"),
        ChatMessage("assistant", "", (ToolCall("c", "f", "{}"),)),
        ChatMessage("tool", "r"),
    )
    kept = shortened([*talk(5)[:-1], *tail], 0.2)
    assert kept is not None
    assert kept[-3:] == tail


def test_shortened_cuts_inside_a_message_only_when_nothing_else_is_left() -> None:
    """The longest message loses its middle; beginning and end, where requests stand, stay."""
    long = "BEGIN " + "y" * 5000 + " END"
    kept = shortened([SYSTEM, ChatMessage("user", long)], 0.4)
    assert kept is not None
    assert kept[0] == SYSTEM
    assert kept[1].content.startswith("BEGIN")
    assert kept[1].content.endswith("END")
    assert size(kept) <= 0.4 * (len(long) + 60)


def test_shortened_gives_successive_prompts_the_same_beginning() -> None:
    """In a growing conversation the cut moves in blocks: most prompts begin as the one before, which can be reused."""
    firsts = []
    for turns in range(30, 60):
        messages = talk(turns)
        kept = shortened(messages, 2000 / size(messages))
        assert kept is not None
        firsts.append(kept[1].content)
    moves = sum(first != second for first, second in itertools.pairwise(firsts))
    assert 1 <= moves <= 10


def test_shortened_of_what_cannot_be_shorter_is_none() -> None:
    """Short messages that must stay are left to the caller."""
    assert shortened([], 0.5) is None
    assert shortened([SYSTEM, ChatMessage("user", "hi")], 0.1) is None


def test_windows_open_where_the_last_prompt_began() -> None:
    """What had left stays out, also when the conversation has lost turns at its old end; others are not touched."""
    windows, messages = Windows(), talk(20)
    kept = shortened(messages, 0.5)
    assert kept is not None
    windows.remember("ours", messages, kept)
    longer = [*messages, ChatMessage("assistant", "answer"), ChatMessage("user", "more")]
    assert windows.opened("ours", longer) == (*kept, *longer[-2:])
    assert windows.opened("ours", [SYSTEM, *longer[3:]]) == (*kept, *longer[-2:])
    assert windows.opened("theirs", longer) == tuple(longer)


def test_windows_of_a_conversation_that_was_rewritten_open_at_its_beginning() -> None:
    """Where the remembered turn is gone, or nothing was ever left out, the whole prompt is tried."""
    windows, messages = Windows(), talk(20)
    windows.remember("whole", messages, messages)
    assert windows.opened("whole", messages) == tuple(messages)
    kept = shortened(messages, 0.5)
    assert kept is not None
    windows.remember("ours", messages, kept)
    other = [SYSTEM, ChatMessage("user", "something else")]
    assert windows.opened("ours", other) == tuple(other)
    assert windows.opened("ours", []) == ()


def test_windows_are_bounded_and_forget_who_is_silent_for_longest() -> None:
    """The newest `count` conversations are remembered; one without a name is not."""
    windows, messages = Windows(2), talk(20)
    kept = shortened(messages, 0.5)
    assert kept is not None
    for key in ("a", "b", "a", "c", ""):
        windows.remember(key, messages, kept)
    assert [windows.opened(key, messages) == kept for key in ("a", "b", "c", "")] == [
        True,
        False,
        True,
        False,
    ]


MESSAGES = st.lists(
    st.builds(
        ChatMessage, st.sampled_from(["system", "user", "assistant", "tool"]), st.text("ab ", max_size=300)
    ),
    max_size=12,
)


@given(MESSAGES, st.floats(0.05, 1.5))
def test_shortened_always_gets_shorter_and_keeps_the_question(
    messages: list[ChatMessage], keep: float
) -> None:
    """Repeated calls end; the last user message is never left out, nor the system message in front."""
    users = [n for n, message in enumerate(messages) if message.role == "user"]
    current: tuple[ChatMessage, ...] = tuple(messages)
    while (fewer := shortened(current, keep)) is not None:
        assert size(fewer) < size(current)
        current = fewer
        assert sum(message.role == "user" for message in current) >= min(len(users), 1)
        assert not messages or messages[0].role != "system" or current[0].role == "system"
