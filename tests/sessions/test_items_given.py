"""How much a conversation holds of what clients put into it."""

from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Talk


def test_a_conversation_holds_so_much_of_what_clients_give() -> None:
    """Words, arguments and outputs count, what the assistant says does not; who deletes makes room."""
    talk = Talk(SessionRules(item_bytes=1_000))
    talk.update(output_modalities=["text"])
    talk.typed("a" * 600, id="first")
    talk.typed("b" * 401)
    (error,) = talk.errors()
    assert (error["code"], error["param"]) == ("invalid_value", "item")
    assert "1000 characters" in error["message"]
    talk.client("response.create")
    talk.answer("c" * 5_000)
    talk.typed("d" * 400)
    assert len(talk.errors()) == 1
    talk.typed("e")
    assert len(talk.errors()) == 2
    talk.client("conversation.item.delete", item_id="first")
    call = {"type": "function_call", "name": "f", "call_id": "c1", "arguments": "{" + " " * 298 + "}"}
    talk.client("conversation.item.create", item=call)
    output = {"type": "function_call_output", "call_id": "c1", "output": "x" * 301}
    talk.client("conversation.item.create", item=output)
    assert len(talk.errors()) == 3
    talk.client("conversation.item.create", item={**output, "output": "x" * 300})
    assert len(talk.errors()) == 3


def test_items_that_leave_a_long_conversation_make_room() -> None:
    """The oldest leave by themselves, and count no more."""
    talk = Talk(SessionRules(item_bytes=1_000, max_items=5))
    for _ in range(50):
        talk.typed("a" * 160)
    assert talk.errors() == []


def test_a_conversation_without_a_bound_takes_all() -> None:
    """As sessions that were recorded before there was one."""
    talk = Talk(SessionRules(item_bytes=0))
    for _ in range(30):
        talk.typed("a" * 200_000)
    assert talk.errors() == []
