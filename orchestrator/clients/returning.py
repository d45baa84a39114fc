"""How a client comes back to its session when its connection broke: when it tries, and where it reads on (a heart)."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.clients.address import Event
from orchestrator.ids import event_tag

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 20.0

ID_HEADER = "Chorale-Session-Id"
SECRET_HEADER = "Chorale-Session-Secret"

STEADY_S = 5.0
"""A connection that held for so long counts as a real one."""

PASSING = (429, 502, 503, 504)
"""HTTP statuses after which another attempt may help …"""

GONE = 404
"""… and the one that says that the session has ended."""

MOST_UNCONFIRMED = 256
"""Items that are followed until the server has them; of more, the oldest are not said again."""

_LONGEST_NUMBER = 15


@dataclass(frozen=True, slots=True)
class Rules:
    """How a session is come back to: for how long it is tried, who is told, and where chance comes from."""

    give_up_s: float = 60.0
    notice: Callable[[str], None] = lambda text: None
    random: Callable[[], float] = random.random


class Backoff:
    """How long to wait before each attempt: from half a second, doubling, to 20 s, of which the upper half is left to
    chance, so that the clients of a restarted server do not all return in one instant. The page's own law
    (``web/connection.js``). `random` gives numbers in [0, 1)."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._attempts = 0

    def next_s(self, retry_after_s: float = 0.0) -> float:
        """Returns how long to wait before the next attempt. A server that named a time is asked no sooner."""
        chance = self._random()
        ceiling = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(self._attempts, 32))
        self._attempts += 1
        return max(ceiling / 2 + ceiling / 2 * chance, retry_after_s + FIRST_DELAY_S * chance)

    def steady(self) -> None:
        """The connection has held for a while: the next break is the first again."""
        self._attempts = 0


@dataclass(slots=True)
class Cursor:
    """Where a client stands: in which session, with which secret, and the number of the newest event that it has."""

    session_id: str = ""
    secret: str = ""
    last: int = 0

    @property
    def may_return(self) -> bool:
        """Whether the server has given what is needed for it."""
        return bool(self.session_id and self.secret)

    @property
    def place(self) -> dict[str, str]:
        """What stands in the address of a client that comes back."""
        return {"session_id": self.session_id, "after": str(self.last)}

    def given(self, headers: Mapping[str, str]) -> None:
        """Takes what an answer to a new session's client holds, if it is that."""
        if headers.get(SECRET_HEADER):
            self.session_id, self.secret, self.last = headers.get(ID_HEADER, ""), headers[SECRET_HEADER], 0

    def receive(self, event: Event) -> bool:
        """Takes note of an event. False: this one came before."""
        number = self._number(event.get("event_id"))
        if number is None:
            return True
        if number <= self.last:
            return False
        self.last = number
        return True

    def _number(self, event_id: Any) -> int | None:
        prefix = f"event_{event_tag(self.session_id)}_"
        if not self.session_id or not isinstance(event_id, str) or not event_id.startswith(prefix):
            return None
        digits = event_id.removeprefix(prefix)
        return (
            int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER else None
        )


class Unconfirmed:
    """What a client has said, and does not know to have arrived: it says it again when it is back.

    An item is known by its own id: a server that has it says so by ``item_create_duplicate_item_id``, and that is as
    good. Of ``session.update`` the last one counts. Other events are not repeated: what they ask for may have been
    done.
    """

    def __init__(self) -> None:
        self._items: dict[str, Event] = {}
        self._update: Event | None = None
        self._repeated: set[str] = set()

    def __len__(self) -> int:
        return len(self._items) + (self._update is not None)

    def said(self, event: Event) -> None:
        """An event goes out. Items without an id, and without an ``event_id``, are not followed."""
        if event["type"] == "session.update":
            self._update = event
        elif event["type"] == "conversation.item.create" and event["item"].get("id") and "event_id" in event:
            self._items[event["item"]["id"]] = event
            if len(self._items) > MOST_UNCONFIRMED:
                del self._items[next(iter(self._items))]

    def heard(self, event: Event) -> bool:
        """Takes an event of the server. False: it answers what was said twice, and is news to nobody."""
        match event["type"]:
            case "session.updated":
                self._update = None
            case "conversation.item.added":
                self._items.pop(str(event["item"].get("id")), None)
            case "error":
                about, code = event["error"].get("event_id"), event["error"].get("code")
                self._items = {id: said for id, said in self._items.items() if said["event_id"] != about}
                return not (about in self._repeated and code == "item_create_duplicate_item_id")
            case _:
                pass
        return True

    def again(self) -> list[Event]:
        """Returns what is to be said again, in order."""
        self._repeated = {event["event_id"] for event in self._items.values()}
        update = [] if self._update is None else [self._update]
        return [*update, *self._items.values()]
