"""Items in the order in which they began."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WireError
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.truncation import Truncation
from orchestrator.wire.items import (
    FunctionCall,
    FunctionCallOutput,
    InputText,
    Item,
    Message,
    OutputText,
    Role,
)


def message(id: str, text: str, role: Role = "user") -> Item:
    part = OutputText(text) if role == "assistant" else InputText(text)
    return Message(role=role, content=(part,), id=id)


def entry(id: str, began_us: int = 0, role: Role = "user") -> Entry:
    return Entry(message(id, f"text of {id}", role), began_us)


@given(st.lists(st.integers(0, 50), max_size=30))
def test_conversation_stands_in_the_order_of_beginnings(times: list[int]) -> None:
    """Whatever arrives when, items stand by when they began; equal times keep their order of arrival."""
    conversation = Conversation()
    for number, began in enumerate(times):
        previous = conversation.add(entry(f"i{number}", began))
        assert previous == conversation.previous_of(f"i{number}")
    assert [e.id for e in conversation] == [
        f"i{number}" for number, _ in sorted(enumerate(times), key=lambda pair: (pair[1], pair[0]))
    ]


def test_conversation_puts_an_item_where_the_client_says() -> None:
    """`root` is the top, an id is behind that item, and later items by time stay behind both."""
    conversation = Conversation()
    conversation.add(entry("a", 10))
    conversation.add(entry("c", 20))
    assert conversation.add(entry("b", 99), "a") == "a"
    assert conversation.add(entry("first", 99), "root") is None
    assert conversation.add(entry("d", 100)) == "c"
    assert [e.id for e in conversation] == ["first", "a", "b", "c", "d"]


def test_conversation_lets_nothing_before_what_stands_at_the_root() -> None:
    """Speech that began before a client put its instructions at the top stands behind them all the same."""
    conversation = Conversation()
    conversation.add(entry("instructions", 100, "system"), "root")
    assert conversation.add(entry("speech", 50)) == "instructions"


def test_conversation_places_by_time_what_names_an_item_just_taken_back() -> None:
    """The client cannot know yet that the item is gone: its own is taken, and stands where its time puts it."""
    conversation = Conversation()
    conversation.add(entry("a", 10))
    conversation.add(entry("reply", 20, "assistant"))
    conversation.remove("reply", remember=True)
    assert conversation.add(entry("b", 30), "reply") == "a"


@pytest.mark.parametrize(
    ("id", "after", "param"), [("a", None, "item.id"), ("b", "nobody", "previous_item_id")]
)
def test_conversation_refuses_what_has_no_place(id: str, after: str | None, param: str) -> None:
    """A used id and an unknown neighbour are named; nothing is added."""
    conversation = Conversation()
    conversation.add(entry("a"))
    with pytest.raises(WireError) as refused:
        conversation.add(entry(id), after)
    assert refused.value.param == param
    assert len(conversation) == 1


def test_conversation_remembers_what_was_taken_back_for_a_while() -> None:
    """Late questions about an unheard reply are answered; of thousands only the last are remembered."""
    conversation = Conversation()
    for number in range(1_000):
        conversation.add(entry(f"i{number}", number, "assistant"))
        conversation.remove(f"i{number}", remember=True)
    assert conversation.taken_back("i999") is not None
    assert conversation.taken_back("i0") is None


def test_conversation_stays_bounded() -> None:
    """The oldest items leave; a prompt takes the newest that fit and always the last."""
    conversation = Conversation(max_items=10, truncation=Truncation(60))
    for number in range(100):
        conversation.add(entry(f"i{number}", number, "assistant" if number % 2 else "user"))
    assert len(conversation) == 10
    assert conversation.get("i89") is None
    assert [m.content for m in conversation.prompt("Be kind.")] == ["Be kind.", "text of i98", "text of i99"]
    long = Conversation(truncation=Truncation(5))
    long.add(Entry(message("x", "far longer than five"), 0))
    assert len(long.prompt("")) == 1


@pytest.mark.parametrize("length", [1, 40, 150])
def test_conversation_loses_old_turns_in_blocks(length: int) -> None:
    """In a long talk prompts begin as the one before for a whole block, with a user's message, and hold two thirds of
    what they may at least."""
    conversation = Conversation(truncation=Truncation(2_000))
    firsts: list[str] = []
    for number in range(400):
        role: Role = "assistant" if number % 2 else "user"
        conversation.add(Entry(message(f"i{number}", f"{number} ".ljust(length, "x"), role), number))
        prompt = conversation.prompt("")
        held = sum(len(one.content) + 16 for one in prompt)
        assert prompt[0].role == "user"
        assert held <= 2_000
        assert held >= 1_320 or prompt[0].content.startswith("0 ")
        firsts.append(prompt[0].content)
    moves = sum(first != second for first, second in itertools.pairwise(firsts))
    said = sum(max(len(f"{number} "), length) + 16 for number in range(400))
    assert 1 <= moves <= said // 500 + 1


def test_conversation_prompt_with_what_is_foreseen_is_the_prompt_that_comes() -> None:
    """Over the edge of a block too: work begun early is for the very prompt that is asked for later."""
    conversation = Conversation(truncation=Truncation(2_000))
    for number in range(200):
        coming = entry(f"i{number:03}", number, "assistant" if number % 2 else "user")
        early = conversation.prompt("", coming)
        conversation.add(coming)
        assert conversation.prompt("") == early


def test_conversation_prompts_hold_calls_only_with_their_outputs() -> None:
    """Endpoints refuse a call without an output and an output without a call: both are left out."""
    conversation = Conversation()
    conversation.add(entry("u"))
    conversation.add(Entry(FunctionCall("f", "c1", "{}", id="x"), 1))
    conversation.add(Entry(FunctionCall("f", "c2", "", id="y", status="incomplete"), 2))
    conversation.add(Entry(FunctionCallOutput("c3", "lost", id="z"), 3))
    assert [m.role for m in conversation.prompt("")] == ["user"]
    conversation.add(Entry(FunctionCallOutput("c1", "done", id="o"), 4))
    prompt = conversation.prompt("")
    assert [m.role for m in prompt] == ["user", "assistant", "tool"]
    assert prompt[1].tool_calls[0].call_id == prompt[2].tool_call_id == "c1"


def test_conversation_joins_neighbours_of_a_user_and_mixes_no_roles() -> None:
    """Two says of a user are one message; what the assistant said stays its own."""
    conversation = Conversation()
    for number, role in enumerate(("user", "user", "assistant", "user")):
        conversation.add(entry(f"i{number}", number, role))  # type: ignore[arg-type]
    assert [(m.role, m.content) for m in conversation.prompt("")] == [
        ("user", "text of i0\ntext of i1"),
        ("assistant", "text of i2"),
        ("user", "text of i3"),
    ]
