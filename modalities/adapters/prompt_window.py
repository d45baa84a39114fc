"""What of a conversation fits into a model's context: the oldest turns go first, the question never does."""

from collections.abc import Sequence
from dataclasses import replace

from modalities.ports import ChatMessage

_CUT = " … "
_LEAST_CHARACTERS = 64


def shortened(messages: Sequence[ChatMessage], keep: float) -> tuple[ChatMessage, ...] | None:
    """Returns `messages` with about the share `keep` of their length, None where nothing more can be left out.

    Whole turns leave from the old end; the leading system messages and everything from the last user message on
    stay. Only where those alone are too long, the inside of the longest message is cut out. Each call
    that does not answer None makes the prompt shorter.
    """
    if not messages:
        return None
    budget = sum(_weight(message) for message in messages) * keep
    head, turns, tail = _parts(messages)
    kept = list(turns)
    fixed = sum(_weight(message) for message in (*head, *tail))
    dropped = False
    while kept and (not dropped or fixed + sum(_weight(message) for message in kept) > budget):
        kept = _without_oldest_turn(kept)
        dropped = True
    if dropped and fixed + sum(_weight(message) for message in kept) <= budget:
        return (*head, *kept, *tail)
    return _cut_longest((*head, *kept, *tail), budget) or ((*head, *tail) if dropped else None)


def _parts(messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[ChatMessage], list[ChatMessage]]:
    start = 0
    while start < len(messages) and messages[start].role == "system":
        start += 1
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
        len(message.content) + sum(len(call.name) + len(call.arguments) for call in message.tool_calls) + 20
    )
