"""What would be asked is made once, and again as soon as it would be another."""

from collections.abc import Callable

import pytest
from msgspec import structs

from orchestrator.scheduling.work import PromptMessage
from orchestrator.sessions.asking import reply_work
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.foresight import Foresight
from orchestrator.sessions.head_start import Prospect
from orchestrator.sessions.truncation import Truncation
from orchestrator.wire.client import ResponseParams
from orchestrator.wire.items import InputAudio, InputText, Message, OutputAudio
from orchestrator.wire.session import FunctionTool, Session


class World:
    """A conversation of three items, and who foresees what is asked behind it."""

    def __init__(self) -> None:
        self.conversation = Conversation(max_items=4)
        self.view = Session(id="s", model="m", expires_at=0)
        self.params = ResponseParams()
        self.silence = ("item_9", 16_000)
        self.said = Entry(Message(role="user", content=(InputAudio(transcript="And you?"),)), 50)
        typed = Message(role="user", content=(InputText("Typed."),), id="typed")
        spoken = Message(role="user", content=(InputAudio(),), id="spoken")
        answer = Message(role="assistant", content=(OutputAudio("Well, yes."),), id="answer")
        self.conversation.add(Entry(typed, 10))
        self.conversation.add(Entry(spoken, 20, pending=True))
        self.conversation.add(Entry(answer, 30))
        self.foresight = Foresight(self.conversation, "conv", speech_output=True)

    def entry(self, item_id: str) -> Entry:
        entry = self.conversation.get(item_id)
        assert entry is not None
        return entry

    def foreseen(self, silence: tuple[str, int] | None = None, said: Entry | str | None = "") -> Prospect:
        """What is foreseen; `said` left out is what the user says in this world."""
        entry = self.said if isinstance(said, str) else said
        found = self.foresight.of(self.view, self.params, silence or self.silence, entry)
        assert found is not None
        return found

    def tell(self, **changes: object) -> None:
        self.view = structs.replace(self.view, **changes)


def _says_more(world: World) -> None:
    world.said = Entry(Message(role="user", content=(InputAudio(transcript="And you too?"),)), 50)


def _began_sooner(world: World) -> None:
    world.said = Entry(world.said.item, 15)


def _drops_the_oldest(world: World) -> None:
    for number in range(2):
        more = Message(role="user", content=(InputText("More."),), id=f"more{number}")
        world.conversation.add(Entry(more, 40 + number))


def _writes_an_item(world: World) -> None:
    world.entry("typed").item = Message(role="user", content=(InputText("Mended."),), id="typed")


CHANGES: dict[str, Callable[[World], object]] = {
    "instructions": lambda world: world.tell(instructions="Be brief."),
    "tools": lambda world: world.tell(tools=(FunctionTool(name="look"),)),
    "tool choice": lambda world: world.tell(tool_choice="none"),
    "length": lambda world: world.tell(max_output_tokens=7),
    "parameters": lambda world: setattr(world, "params", ResponseParams(instructions="Shout.")),
    "words so far": _says_more,
    "when they began": _began_sooner,
    "an item": _writes_an_item,
    "a transcript": lambda world: world.conversation.set_transcript("spoken", "Spoken."),
    "a mended transcript": lambda world: world.conversation.realign("spoken", "Said."),
    "what lost a conflict": lambda world: setattr(world.entry("typed"), "left_out", True),
    "what was heard": lambda world: setattr(world.entry("answer"), "heard", "Well"),
    "what was cut": lambda world: world.conversation.cut("answer", "Well"),
    "a deletion": lambda world: world.conversation.remove("typed"),
    "the oldest": _drops_the_oldest,
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_prompt_is_made_of_makes_it_anew(change: str) -> None:
    """What is foreseen is what would be asked now, whatever has changed since it was last looked at."""
    world = World()
    before = world.foreseen()
    CHANGES[change](world)
    after = world.foreseen()
    expected = reply_work(world.view, world.params, world.conversation, "conv", world.said)
    assert after.work == expected
    assert after.work != before.work


def test_nothing_new_makes_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long conversation is read once in a silence, not at each of its events; the next silence reads it again."""
    world, made = World(), 0
    prompt = Conversation.prompt

    def counted(
        self: Conversation,
        instructions: str,
        foreseen: Entry | None = None,
        truncation: Truncation | None = None,
    ) -> tuple[PromptMessage, ...]:
        nonlocal made
        made += 1
        return prompt(self, instructions, foreseen, truncation)

    monkeypatch.setattr(Conversation, "prompt", counted)
    for _ in range(5):
        said = Entry(Message(role="user", content=(InputAudio(transcript="And you?"),)), 50)
        first = world.foreseen(said=said)
        assert world.foreseen(said=said) is first
    assert made == 1
    other = world.foreseen(("item_9", 32_000))
    assert (other.silence, other.work) == (("item_9", 32_000), first.work)


def test_speech_and_speed_are_those_of_the_session() -> None:
    """They are part of what is foreseen, since a first sentence is made into sound."""
    world = World()
    assert world.foreseen(said=None).speaks
    world.tell(output_modalities=("text",))
    assert not world.foreseen(said=None).speaks


def test_what_has_left_a_conversation_tells_it_nothing() -> None:
    """Only what prompts are made of counts."""
    world = World()
    entry = world.entry("typed")
    world.conversation.remove("typed")
    changes = world.conversation.changes
    entry.left_out = True
    assert world.conversation.changes == changes


def test_a_conversation_that_is_too_long_to_be_asked_about_is_not_foreseen() -> None:
    """Where nothing may leave, and not all fits, no guess is begun."""
    world = World()
    world.said = Entry(Message(role="user", content=(InputAudio(transcript="x" * 30_000),)), 50)
    assert world.foreseen().work.messages
    world.tell(truncation="disabled")
    assert world.foresight.of(world.view, world.params, world.silence, world.said) is None
