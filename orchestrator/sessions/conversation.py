"""The conversation's items in the order in which they began, and the prompt that is made of them.

Order (design §4): an item stands where its speech *began* or its text was *sent*, not where its result arrived, unless
the client named its place. Bounded: over `max_items` the oldest leave (they had left every prompt long before).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec import UNSET, structs

from modalities.text.facts.standing import as_corrected
from orchestrator.errors import WireError
from orchestrator.scheduling.work import CallSpec, Picture, PromptMessage
from orchestrator.sessions.truncation import AUTO, Truncation, too_long
from orchestrator.wire.items import (
    HELD_IMAGE,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    Message,
    OutputAudio,
    OutputText,
)

_TOMBSTONES = 256


_IMAGE_CHARACTERS = 1_500
"""What an image takes of a prompt: so that all that are held fit in beside words."""


@dataclass(slots=True)
class Entry:
    """One item with what the wire does not show.

    `pending`: user speech whose final transcript is not in yet. `unsettled`: words of the user that are not committed
    yet. `left_out`: words that count no more, since others contradict them and won. `reads`: how a
    user's words read since he has corrected something of them. `heard`: what counts as said of an
    assistant's message; None is all of it, "" keeps it out of prompts. `offset`: how many characters had been said
    before.
    """

    item: Item
    began_us: int
    pending: bool = False
    unsettled: bool = False
    left_out: bool = False
    reads: str | None = None
    heard: str | None = None
    response_id: str | None = None
    offset: int = 0
    unseen: bool = False
    """Its images are held no longer."""
    size: int = 0
    """What a client gave of it, in characters."""
    changed: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Told of every change, by the conversation that holds it."""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        changed = getattr(self, "changed", None)  # the last to be set
        if changed is not None:
            changed()

    @property
    def id(self) -> str:
        return str(self.item.id)


class Conversation:
    """Keeps entries in order and finds them by id. Every method's cost depends on the distance from the end, not on
    the length of the session."""

    def __init__(self, max_items: int = 2_000, truncation: Truncation = AUTO) -> None:
        self._entries: list[Entry] = []
        self._by_id: dict[str, Entry] = {}
        self._gone: OrderedDict[str, Item] = OrderedDict()
        self._max_items = max_items
        self._truncation = truncation
        self._offset = 0
        self.given = 0
        """What clients gave, of items that are here, in characters."""
        self.changes = 0
        """Counts what happened to any entry, or to their order: as long as it stands, prompts are what they were."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def get(self, item_id: str) -> Entry | None:
        """Returns the entry, or None where there is none (any more)."""
        return self._by_id.get(item_id)

    def taken_back(self, item_id: str) -> Item | None:
        """Returns the last state of an item that the server itself removed (an unheard reply), while remembered."""
        return self._gone.get(item_id)

    @property
    def last_id(self) -> str | None:
        return self._entries[-1].id if self._entries else None

    def previous_of(self, item_id: str) -> str | None:
        """Returns the id of the item before this one, None for the first."""
        at = self._index(item_id)
        return self._entries[at - 1].id if at > 0 else None

    def place(self, item_id: str, after: str | None) -> str | None:
        """Returns where a new item goes that is to stand behind `after`: behind that id, at the ``root``, or (None)
        where its time puts it. That the server took `after` back a moment ago is no fault of the client: time decides.
        Raises `WireError` for an `after` that never was and for an id in use."""
        if item_id in self._by_id:
            raise WireError(
                "item_create_duplicate_item_id", f"An item with the id '{item_id}' already exists", "item.id"
            )
        if after is None or after == "root" or after in self._by_id:
            return after
        if after not in self._gone:
            raise WireError(
                "invalid_value", f"There is no item '{after}' to put it behind", "previous_item_id"
            )
        return None

    def add(self, entry: Entry, after: str | None = None) -> str | None:
        """Puts an entry in its place and returns the id before it.

        `after` as in `place`. Raises `WireError` for an unknown `after` or an id in use; nothing is changed then.
        """
        after = self.place(entry.id, after)
        if after is None:
            at = self._place_by_time(entry)
        elif after == "root":
            at = 0
        else:
            at = self._index(after) + 1
        if after is not None:
            # A client's placement is a statement about order: times must not contradict it later.
            entry.began_us = max(entry.began_us, self._entries[at - 1].began_us) if at > 0 else 0
        self._offset = entry.offset = self._next_offset()
        self._entries.insert(at, entry)
        entry.changed = self._note_change
        self._by_id[entry.id] = entry
        self.given += entry.size
        self._gone.pop(entry.id, None)
        while len(self._entries) > self._max_items:
            self._let_go(self._by_id.pop(self._entries.pop(0).id))
        return self.previous_of(entry.id) if entry.id in self._by_id else None

    def _note_change(self) -> None:
        self.changes += 1

    def _let_go(self, entry: Entry) -> None:
        self._note_change()
        entry.changed = None
        self.given -= entry.size

    def _place_by_time(self, entry: Entry) -> int:
        at = len(self._entries)
        while at > 0 and self._entries[at - 1].began_us > entry.began_us:
            at -= 1
        return at

    def remove(self, item_id: str, remember: bool = False) -> bool:
        """Takes an item out; says whether it was there. `remember` keeps its last state for late questions."""
        entry = self._by_id.pop(item_id, None)
        if entry is None:
            return False
        del self._entries[self._index_of(entry)]
        self._let_go(entry)
        if remember:
            self._gone[item_id] = entry.item
            while len(self._gone) > _TOMBSTONES:
                self._gone.popitem(last=False)
        return True

    def has_call(self, call_id: str) -> bool:
        """Whether a function call with this id stands in the conversation."""
        return any(
            isinstance(e.item, FunctionCall) and e.item.call_id == call_id for e in reversed(self._entries)
        )

    def pending(self) -> bool:
        """Whether a final transcript is still missing among the recent items."""
        return any(entry.pending for entry in self._entries[-64:])

    def is_complete(self) -> bool:
        """Whether a prompt may be made: no transcript is missing, and all words of the recent items are committed."""
        return not any(entry.pending or entry.unsettled for entry in self._entries[-64:])

    def realign(self, item_id: str, text: str) -> None:
        """Writes another transcript on a spoken item, if the item is still there."""
        entry = self._by_id.get(item_id)
        if entry is not None and isinstance(entry.item, Message):
            parts = tuple(
                structs.replace(part, transcript=text) if isinstance(part, InputAudio) else part
                for part in entry.item.content
            )
            entry.item = structs.replace(entry.item, content=parts)

    def reword(self, item_id: str, text: str | None) -> None:
        """Has a user's item read otherwise in prompts, since something of it was corrected later; None: as it was said.
        The item stays what the user said."""
        entry = self._by_id.get(item_id)
        if entry is not None:
            entry.reads = text

    def set_transcript(self, item_id: str, transcript: str) -> None:
        """Writes the final transcript of a spoken item, if the item is still there."""
        entry = self._by_id.get(item_id)
        if entry is None or not isinstance(entry.item, Message):
            return
        entry.pending = False
        parts = tuple(
            structs.replace(part, transcript=transcript)
            if isinstance(part, InputAudio) and part.transcript is None
            else part
            for part in entry.item.content
        )
        entry.item = structs.replace(entry.item, content=parts)

    def cut(self, item_id: str, heard: str) -> None:
        """Cuts an assistant's message to what was heard: on the item itself, where it was taken back too, and in every
        later prompt."""
        entry = self._by_id.get(item_id)
        if entry is not None:
            entry.heard = heard
            entry.item = _cut(entry.item, heard)
        elif item_id in self._gone:
            self._gone[item_id] = _cut(self._gone[item_id], heard)

    def prompt(
        self, instructions: str, foreseen: Entry | None = None, truncation: Truncation | None = None
    ) -> tuple[PromptMessage, ...]:
        """Returns the instructions and the newest items that fit a prompt, oldest first; with `foreseen` as it
        will be once that entry has been added in its time's place. Older ones leave in blocks (`Truncation`), and
        what is left begins with a user's message, unless hardly a block fits. Raises `WireError` where none may leave.

        Items without words (silence, unheard replies, speech still pending) are left out; the outputs of calls whose
        call fell off the edge too, since models refuse an answer to nothing.
        """
        entries = self._entries
        if foreseen is not None:
            at = self._place_by_time(foreseen)
            foreseen.offset = self._next_offset()
            entries = [*entries[:at], foreseen, *entries[at:]][-self._max_items :]
        return as_prompt(instructions, self._newest(entries, truncation or self._truncation))

    def _newest(self, entries: list[Entry], truncation: Truncation) -> list[Entry]:
        budget = truncation.characters
        chosen: list[Entry] = []
        for entry in reversed(entries):
            budget -= _length(entry)
            if budget < 0 and truncation.share is None:
                raise too_long(truncation)
            if budget < 0 and chosen:
                return _whole_blocks(chosen[::-1], entry, truncation.block)
            chosen.append(entry)
        return chosen[::-1]

    def _next_offset(self) -> int:
        """Counts what the newest item holds now: when it came, its words were mostly still to be said."""
        return self._offset + (_length(self._entries[-1]) if self._entries else 0)

    def _index(self, item_id: str) -> int:
        return self._index_of(self._by_id[item_id])

    def _index_of(self, entry: Entry) -> int:
        for at in range(len(self._entries) - 1, -1, -1):
            if self._entries[at] is entry:
                return at
        raise KeyError(entry.id)


def _cut(item: Item, heard: str) -> Item:
    if not isinstance(item, Message):
        return item
    parts = tuple(
        structs.replace(part, transcript=heard)
        if isinstance(part, OutputAudio)
        else structs.replace(part, text=heard)
        if isinstance(part, OutputText)
        else part
        for part in item.content
    )
    return structs.replace(item, content=parts)


def _whole_blocks(entries: list[Entry], cut: Entry, block: int) -> list[Entry]:
    """Returns the entries behind the block of `cut`, which is the first to leave, from a user's message on."""
    for at, entry in enumerate(entries):
        item = entry.item
        if entry.offset // block != cut.offset // block and isinstance(item, Message) and item.role == "user":
            return entries[at:]
    return entries


def _length(entry: Entry) -> int:
    """Length as a prompt counts it: a model's template adds to every message."""
    return len(words_of(entry)) + 16 + _IMAGE_CHARACTERS * len(pictures_of(entry))


def words_of(entry: Entry) -> str:
    """Returns the words of an item that a model is to see."""
    item = entry.item
    if entry.left_out:
        return ""
    match item:
        case Message():
            if entry.heard is not None:
                return entry.heard
            if entry.reads is not None:
                return as_corrected(entry.reads)
            return "\n".join(words for words in map(_words_of_part, item.content) if words)
        case FunctionCall():
            return item.arguments
        case FunctionCallOutput():
            return item.output


def pictures_of(entry: Entry) -> tuple[Picture, ...]:
    """Returns the images of an item that a model is to see."""
    item = entry.item
    if entry.left_out or entry.unseen or not isinstance(item, Message):
        return ()
    return tuple(
        Picture(part.image_url, "" if part.detail is UNSET else part.detail)
        for part in item.content
        if isinstance(part, InputImage) and part.image_url.startswith(HELD_IMAGE)
    )


def _words_of_part(part: object) -> str:
    match part:
        case InputText(text=text) | OutputText(text=text):
            return text
        case InputAudio(transcript=transcript):
            return as_corrected(transcript or "")
        case OutputAudio(transcript=transcript):
            return transcript
        case _:
            return ""


def as_prompt(instructions: str, entries: list[Entry]) -> tuple[PromptMessage, ...]:
    """Returns the messages for a language model: instructions first, neighbours of one user joined by line breaks,
    calls of one response in one assistant message, outputs behind their call."""
    messages: list[PromptMessage] = []
    if instructions:
        messages.append(PromptMessage(role="system", content=instructions))
    answered = {e.item.call_id for e in entries if isinstance(e.item, FunctionCallOutput)}
    calls: set[str] = set()
    for entry in entries:
        item = entry.item
        match item:
            case Message():
                words, images = words_of(entry), pictures_of(entry)
                if not words.strip() and not images:
                    continue
                if messages and item.role == "user" and messages[-1].role == "user":
                    before = messages.pop()
                    words = "\n".join(one for one in (before.content, words) if one)
                    images = before.images + images
                messages.append(PromptMessage(role=item.role, content=words, images=images))
            case FunctionCall():
                if item.call_id not in answered or item.status == "incomplete":
                    continue  # endpoints refuse a call without its output
                calls.add(item.call_id)
                made: tuple[CallSpec, ...] = ()
                if messages and messages[-1].tool_calls:
                    made = messages.pop().tool_calls
                call = CallSpec(call_id=item.call_id, name=item.name, arguments=item.arguments or "{}")
                messages.append(PromptMessage(role="assistant", tool_calls=(*made, call)))
            case FunctionCallOutput():
                if item.call_id in calls:
                    messages.append(
                        PromptMessage(role="tool", content=item.output, tool_call_id=item.call_id)
                    )
    return tuple(messages)
