"""A session's inbox: the one place where its runner waits.

Clients' events wait for room (BLOCK: their socket is read no further). Reports and speech probabilities are never kept
waiting, since whoever brings them serves other sessions too; their number is bounded by the jobs and windows that the
session itself has under way, and `limit` is a backstop that only a fault of ours can reach.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

from orchestrator.clock import ms
from orchestrator.errors import Overloaded, SessionClosed
from orchestrator.sessions.events import Event

MOST_EVENTS = 8_192

TURN_US = ms(5)
"""After so long with what one inbox held others get their turn, though more of it is left."""


@dataclass(frozen=True, slots=True)
class InboxStatistics:
    """`put`, `waited` and `refused` (at the backstop) count since the start."""

    held: int
    put: int
    waited: int
    refused: int = 0


class Inbox:
    """Bounded, closable, counted. `capacity` holds clients back, `limit` everyone."""

    def __init__(self, capacity: int = 64, limit: int = MOST_EVENTS) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._capacity = capacity
        self._limit = limit
        self._arrival: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._came_back = asyncio.Event()
        self._fault: BaseException | None = None
        self._closed = False
        self._put = 0
        self._taken = 0
        self._handled = 0
        self._waited = 0
        self.refused = 0
        """Events that found no room at the backstop, since the start."""
        self._instead = Instead(self)

    def put_nowait(self, event: Event) -> None:
        """Adds an event. Raises `Overloaded` at the backstop; after `close` the event is dropped."""
        if self._closed:
            return
        held = len(self._events)
        if held >= self._limit:
            self.refused += 1
            raise Overloaded("the session's inbox is full", 1.0)
        self._events.append(event)
        self._put += 1
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
        if held + 1 >= self._capacity:
            self._room.clear()

    async def put(self, event: Event) -> None:
        """Adds an event once there is room. Cancelling loses the event only. Raises `SessionClosed`."""
        while not self._closed and len(self._events) >= self._capacity:
            self._waited += 1
            await self._room.wait()
        if self._closed:
            raise SessionClosed("The session has ended.")
        self.put_nowait(event)

    @property
    def held(self) -> int:
        """Events that nobody has taken yet."""
        return len(self._events)

    @property
    def is_awaited(self) -> bool:
        """Whether all that came has been handled, and its taker waits for more."""
        return self._arrival is not None and not self._arrival.done()

    def instead(self) -> "Instead":
        """Within this, somebody handles an event in the taker's place, while it `is_awaited`. What that raises is the
        taker's fault: it ends with it, and nothing is raised here."""
        return self._instead

    def fail(self, fault: BaseException) -> None:
        """The taker ends with this fault of somebody who handled an event in its place; others may have come in since
        that began."""
        self._fault = fault
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def take(self) -> list[Event]:
        """Returns everything that is there, at least one event. Cancelling loses nothing. Raises what it was `fail`ed
        with.

        To come for more is to have handled what was taken before.
        """
        self._handled = self._taken
        self._came_back.set()
        while not self._events:
            # A bare future: an Event's way through three calls would be taken for every token of a reply.
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
            self._arrival = None
            if self._fault is not None:
                raise self._fault
        events = list(self._events)
        self._events.clear()
        self._taken += len(events)
        self._room.set()
        return events

    async def handled(self) -> bool:
        """Waits until everything that is in now has been handled, or the inbox is closed: False then. Cancelling loses
        nothing."""
        wanted = self._put
        while not self._closed and self._handled < wanted:
            self._came_back.clear()
            await self._came_back.wait()
        return self._handled >= wanted

    def close(self) -> None:
        """Nothing comes in any more; whoever waits for room gets `SessionClosed`. Idempotent."""
        self._closed = True
        self._events.clear()
        self._room.set()
        self._came_back.set()

    def statistics(self) -> InboxStatistics:
        return InboxStatistics(len(self._events), self._put, self._waited, self.refused)


class Instead:
    """Hands what is raised within it to whoever takes from an inbox."""

    __slots__ = ("_inbox",)

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: object) -> bool:
        if not isinstance(fault, Exception):
            return False
        self._inbox.fail(fault)
        return True
