"""What clients put into the conversation themselves (heart): messages, outputs of functions, forms, captions."""

from msgspec import UNSET, structs

from orchestrator.errors import WireError
from orchestrator.sessions.answering import Answering
from orchestrator.sessions.checking import Checker
from orchestrator.sessions.clips import without_name
from orchestrator.sessions.conversation import Conversation, Entry, words_of
from orchestrator.sessions.effects import ForgetClip
from orchestrator.sessions.events import ClientSaid
from orchestrator.sessions.listening import Listener
from orchestrator.sessions.observing import Source, given_tokens, written
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.pictures import Seen, names_of
from orchestrator.sessions.states import Ear
from orchestrator.sessions.turns import TurnWindow
from orchestrator.wire import client
from orchestrator.wire import server as wire
from orchestrator.wire.items import (
    HELD_IMAGE,
    OBJECT,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    Message,
)
from orchestrator.wire.limits import size_of
from orchestrator.wire.session import Session

_MOST_TYPED = 4
"""Messages that one `response.create` can be about."""


class Editor:
    """Changes the conversation by clients' events; what of it is a user's word, the checker is told. `view` follows the
    session's settings."""

    def __init__(
        self,
        out: Outbound,
        conversation: Conversation,
        turns: TurnWindow,
        listener: Listener,
        answering: Answering,
        checker: Checker,
        view: Session,
    ) -> None:
        self.view = view
        self._out = out
        self._conversation = conversation
        self._turns = turns
        self._listener = listener
        self._answering = answering
        self._checker = checker
        self._sent: dict[str, int] = {}
        self._clips: dict[str, str] = {}
        self._seen = Seen(out)
        self._captions = 0

    # -- items ------------------------------------------------------------------------------------------------------

    def create(self, event: client.CreateItem, said: ClientSaid, is_open: bool) -> None:
        """Puts an item in its place; a user's text is a turn of his where clients want that (`typed_turns`) and the
        session is open. Raises `WireError`."""
        item = event.item
        if isinstance(item, FunctionCallOutput) and not self._conversation.has_call(item.call_id):
            raise WireError(
                "invalid_value", f"There is no function call with the id '{item.call_id}'", "item.call_id"
            )
        size, most = size_of(item), self._out.rules.item_bytes
        if most and self._conversation.given + size > most:
            raise WireError(
                "invalid_value",
                f"The conversation holds {most} characters of items; delete some first.",
                "item",
            )
        sent = self._sent_at(said)
        item_id = self._out.ids.take("item") if item.id is UNSET or not item.id else str(item.id)
        self._conversation.place(item_id, event.previous_item_id)
        typed = is_open and self._takes_turns and _is_typed(item)
        if typed:
            self._interrupt(sent)
        item, clip = without_name(structs.replace(item, id=item_id, object=OBJECT, status="completed"))
        entry = self._add(item, sent, clip is not None, event.previous_item_id, size)
        self._seen.added(entry)
        if clip is not None:
            self._clips[item_id] = clip
            self._listener.transcribe_clip(item_id, clip, None)
        if typed:
            self._answer(entry)
            self._observe(entry, self._turns.turn.id, asks=True)

    def give(self, event: client.GiveTokens, said: ClientSaid, is_open: bool) -> None:
        """Makes an item of a client's form. It is a sign of the user; it is answered where typed turns are."""
        sent = self._sent_at(said)
        takes_turns = is_open and self._takes_turns
        if takes_turns:
            self._interrupt(sent)
        else:
            self._turns.sign(sent, speaking=self._listener.ear.state is not Ear.QUIET)
        text = written(event)
        item = Message(
            role="user",
            content=(InputText(text),),
            id=self._out.ids.take("item"),
            object=OBJECT,
            status="completed",
        )
        entry = self._add(item, sent, False, None)
        if takes_turns:
            self._answer(entry)
        source = Source(
            entry.id, entry.id, self._turns.turn.id, "form", sent, sent, text, given_tokens(event)
        )
        source.asks = takes_turns and self._may_ask
        self._checker.said(source)

    def caption(self, event: client.GiveCaption) -> None:
        """Holds a client's own transcript of an utterance against ours. Raises `WireError` where nobody spoke."""
        utterance = self._listener.said_as(event.item_id)
        if utterance is not None:
            unit = 0 if utterance.turn is None else utterance.turn.id
            start, stop = utterance.began_us, max(utterance.began_us, utterance.stop_us or self._out.now)
        else:
            place = self._checker.place(event.item_id)
            if place is None:
                raise WireError(
                    "invalid_value",
                    f"There is no item '{event.item_id}' that was spoken a moment ago",
                    "item_id",
                )
            unit, start, stop = place
        self._captions += 1
        name = f"{event.item_id}:caption:{self._captions}"
        self._checker.said(Source(name, event.item_id, unit, "caption", start, stop, event.text.strip()))

    def count_typed(self) -> None:
        """The client asks for an answer: the user's texts at the end of the conversation are what he typed now."""
        typed: list[Entry] = []
        for entry in reversed(list(self._conversation)[-2 * _MOST_TYPED :]):
            if not isinstance(entry.item, Message) or entry.item.role != "user":
                break
            if _is_typed(entry.item) and not self._checker.knows(entry.id):
                typed.append(entry)
        for entry in reversed(typed[:_MOST_TYPED]):
            turn = self._turns.sign(entry.began_us, speaking=self._listener.ear.state is not Ear.QUIET)
            self._observe(entry, turn.id, asks=False)

    def retrieve(self, item_id: str) -> None:
        entry = self._conversation.get(item_id)
        item = self._conversation.taken_back(item_id) if entry is None else entry.item
        if item is None:
            raise WireError("item_retrieve_invalid_item_id", f"There is no item '{item_id}'", "item_id")
        self._out.emit(wire.ItemRetrieved(item))

    def delete(self, item_id: str) -> None:
        known = self._conversation.remove(item_id) or self._conversation.taken_back(item_id) is not None
        if not known:
            raise WireError("item_delete_invalid_item_id", f"There is no item '{item_id}'", "item_id")
        self._seen.removed(item_id)
        self._out.emit(wire.ItemDeleted(item_id))

    # -- what ends ----------------------------------------------------------------------------------------------------

    def refused(self, event: client.CreateItem) -> None:
        """An item was not taken: its sound goes, and its images."""
        self._forget(without_name(event.item)[1])
        self._seen.refused(names_of(event.item))

    def transcribed(self, item_id: str) -> None:
        """The sound of an item is not needed any more."""
        self._forget(self._clips.pop(item_id, None))

    def left(self, link_id: str) -> None:
        self._sent.pop(link_id, None)

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _takes_turns(self) -> bool:
        extension = self.view.chorale
        return extension is not UNSET and extension.typed_turns and self.view.type != "transcription"

    @property
    def _may_ask(self) -> bool:
        return may_ask(self.view, self._out)

    def _sent_at(self, said: ClientSaid) -> int:
        sent = max(said.sent_us, self._sent.get(said.link_id, 0))
        self._sent[said.link_id] = sent
        return sent

    def _interrupt(self, sent: int) -> None:
        """Before the item is placed: what the user interrupts must not stand between his words."""
        self._turns.sign(sent, speaking=self._listener.ear.state is not Ear.QUIET)
        self._answering.interrupt()

    def _add(self, item: Item, sent: int, pending: bool, after: str | None, size: int = 0) -> Entry:
        entry = Entry(item, began_us=sent, pending=pending, size=size)
        previous = self._conversation.add(entry, after)
        self._out.emit(wire.ItemAdded(item, previous), wire.ItemDone(item, previous))
        return entry

    def _answer(self, entry: Entry) -> None:
        self._turns.turn.items.append(entry.id)
        self._answering.typed()

    def _observe(self, entry: Entry, unit: int, asks: bool) -> None:
        words = words_of(entry)
        source = Source(entry.id, entry.id, unit, "text", entry.began_us, entry.began_us, words)
        source.asks = asks and self._may_ask
        self._checker.said(source)

    def _forget(self, clip: str | None) -> None:
        if clip is not None:
            self._out.do(ForgetClip(clip))


def may_ask(view: Session, out: Outbound) -> bool:
    """Whether the user may be asked what he meant: by configuration, or by the client's leave."""
    extension = view.chorale
    return out.rules.consistency.asks or (extension is not UNSET and extension.ask is True)


def _is_typed(item: Item) -> bool:
    return (
        isinstance(item, Message)
        and item.role == "user"
        and any(
            (isinstance(part, InputImage) and part.image_url.startswith(HELD_IMAGE))
            or (isinstance(part, InputText) and part.text.strip())
            for part in item.content
        )
        and not any(isinstance(part, InputAudio) and part.transcript is None for part in item.content)
    )
