"""What of a conversation fits into a model's context: the oldest turns go first, the question never does."""

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from modalities.ports import ChatMessage

REMEMBERED = 256
"""Conversations whose beginning is known; many more than an engine has places for."""

_CUT = " … "
_LEAST_CHARACTERS = 64
_OVERHEAD = 20
"""Characters that a template adds to a message, about."""


def shortened(messages: Sequence[ChatMessage], keep: float) -> tuple[ChatMessage, ...] | None:
    """Returns `messages` with at most the share `keep` of their length, None where nothing more can be left out.

    Whole turns leave from the old end; the leading system messages and everything from the last user message on
    stay. Only where those alone are too long, the inside of the longest message is cut out.

    Turns leave in blocks, counted from the conversation's beginning: as it grows, successive prompts begin alike for a
    while, so that an engine can reuse what it has computed. Each answer but None is shorter than `messages`.
    """
    if not messages:
        return None
    weight = sum(map(_weight, messages))
    budget = weight * min(keep, 1.0)
    block = 2 ** int(math.log2(max(budget * 0.4, 1)))
    excess = max(weight - budget, 1)
    wanted = -(-excess // block) * block
    head, turns, tail = _parts(messages)
    dropped = 0
    while turns and dropped < wanted:
        rest = _without_oldest_turn(turns)
        dropped += sum(map(_weight, turns)) - sum(map(_weight, rest))
        turns = rest
    kept = (*head, *turns, *tail)
    if dropped >= excess:
        return kept
    return _cut_longest(kept, budget) or (kept if dropped else None)


class Windows:
    """Remembers where the prompts of conversations began that had outgrown their context. Safe for several threads.

    The next prompt of a conversation begins there too, so that the engine is never sent the turns that have left: it
    would look for a state that holds them, and put the newest one aside. Bounded at `count` conversations, the one that
    spoke longest ago is forgotten first; without a memory a prompt is shortened from its beginning, as the first was.
    """

    def __init__(self, count: int = REMEMBERED) -> None:
        self._count = count
        self._beginnings: OrderedDict[str, tuple[int, tuple[ChatMessage, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def opened(self, key: str, messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
        """Returns `messages` without the turns that had left the last prompt of this conversation."""
        with self._lock:
            at, beginning = self._beginnings.get(key, (0, ()))
        head = _length_of_head(messages)
        # Turns may have left at the old end in the meantime: the beginning is where it was, or nearer to the front.
        for start in range(head + at, head, -1):
            if beginning and tuple(messages[start : start + len(beginning)]) == beginning:
                return (*messages[:head], *messages[start:])
        return tuple(messages)

    def remember(self, key: str, whole: Sequence[ChatMessage], kept: Sequence[ChatMessage]) -> None:
        """A prompt of this conversation was `kept` of `whole`. "" is a conversation that will not come back."""
        if not key or len(kept) == len(whole):
            return
        beginning = tuple(kept[_length_of_head(kept) :][:2])
        with self._lock:
            self._beginnings[key] = (len(whole) - len(kept), beginning)
            self._beginnings.move_to_end(key)
            while len(self._beginnings) > self._count:
                self._beginnings.popitem(last=False)


def _length_of_head(messages: Sequence[ChatMessage]) -> int:
    """Counts the system messages in front."""
    return next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))


def _parts(messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[ChatMessage], list[ChatMessage]]:
    start = _length_of_head(messages)
    users = [n for n, message in enumerate(messages) if message.role == "user" and n >= start]
    last = users[-1] if users else max(start, len(messages) - 1)
    return list(messages[:start]), list(messages[start:last]), list(messages[last:])


def _without_oldest_turn(messages: list[ChatMessage]) -> list[ChatMessage]:
    """A turn begins with a user's message; calls and their results leave together with it."""
    for n, message in enumerate(messages[1:], 1):
        if message.role == "user":
            return messages[n:]
    return []


def _cut_longest(messages: tuple[ChatMessage, ...], budget: float) -> tuple[ChatMessage, ...] | None:
    longest = max(range(len(messages)), key=lambda n: len(messages[n].content))
    content = messages[longest].content
    excess = sum(_weight(message) for message in messages) - budget
    keep = max(_LEAST_CHARACTERS, int(len(content) - max(excess, 1)) - len(_CUT))
    if keep + len(_CUT) >= len(content):
        return None
    cut = content[: keep // 2] + _CUT + content[len(content) - (keep - keep // 2) :]
    return (*messages[:longest], replace(messages[longest], content=cut), *messages[longest + 1 :])


def _weight(message: ChatMessage) -> int:
    """Length as a prompt counts it: the template adds to every message."""
    return (
        len(message.content)
        + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
        + _OVERHEAD
    )
