"""What the slot-intent graph remembers of a conversation: a bounded window, as an immutable value. Pure.

A snapshot of a conversation holds its `Context`; rolling back is using the older one again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

from consistency.observation import Token
from consistency.ontology import Ontology
from consistency.reading import Reading

_Item = TypeVar("_Item")

RECENT_TURNS = 6
KEPT_VALUES = 96
KEPT_INTENTS = 12
KEPT_SERVICES = 6


class Shown(NamedTuple):
    """A value that was given or shown under a slot, at which turn, and whether the assistant showed it."""

    service: str
    slot: str
    value: str
    turn: int
    by_assistant: bool


@dataclass(frozen=True)
class Turn:
    """What one side said at a time. `reading`: its text. `tokens`: a user's claims; what an assistant's reply asks for
    (`act` request), shows (inform) or offers to do (an intent without a slot). `likeness`: see `rules.Likeness`."""

    speaker: Literal["user", "assistant"]
    reading: Reading
    tokens: tuple[Token, ...] = ()
    likeness: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """The committed conversation as far as verdicts look back. `asked` and `proposed`: slots and intents of the
    assistant's last turn."""

    service: str = ""
    intent: str = ""
    turn: int = 0
    recent: tuple[Reading, ...] = ()
    values: tuple[Shown, ...] = ()
    intents: tuple[tuple[str, str], ...] = ()
    services: tuple[str, ...] = ()
    asked: tuple[tuple[str, str], ...] = ()
    proposed: tuple[tuple[str, str], ...] = ()

    def knows(self, service: str, slot: str) -> bool:
        """Whether the slot was asked for, given or shown lately."""
        return (service, slot) in self.asked or any(
            one.slot == slot and one.service == service for one in self.values
        )

    def after(self, turn: Turn, ontology: Ontology) -> "Context":
        """Returns the context after a turn; of a user's turn that was rolled back, pass the text without its tokens."""
        index = self.turn + 1
        is_assistant = turn.speaker == "assistant"
        values, intents, services = list(self.values), list(self.intents), list(self.services)
        service, intent = self.service, self.intent
        asked: list[tuple[str, str]] = []
        proposed: list[tuple[str, str]] = []
        for token in sorted(
            turn.tokens, key=lambda one: (one.service, one.intent, one.slot, one.value, one.act)
        ):
            spec = ontology.service_of(token.service, token.intent, self.service)
            home = spec.name if spec else token.service
            if token.slot and token.act == "request" and is_assistant:
                asked.append((home, token.slot))
            elif token.slot and token.value:
                values.append(Shown(home, token.slot, token.value.lower(), index, is_assistant))
            if token.intent:
                intents.append((home, token.intent))
                if is_assistant:
                    proposed.append((home, token.intent))
            services.append(home)
            if not is_assistant:
                service, intent = home, token.intent or intent
        return replace(
            self,
            service=service,
            intent=intent,
            turn=index,
            recent=(*self.recent, turn.reading)[-RECENT_TURNS:],
            values=tuple(values[-KEPT_VALUES:]),
            intents=_latest(intents, KEPT_INTENTS),
            services=_latest(services, KEPT_SERVICES),
            asked=tuple(asked) if is_assistant else (),
            proposed=tuple(proposed) if is_assistant else (),
        )


def _latest(items: list[_Item], most: int) -> tuple[_Item, ...]:
    """The last different items, oldest first."""
    return tuple(reversed(list(dict.fromkeys(reversed(items)))[:most]))
