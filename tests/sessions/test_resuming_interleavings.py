"""Clients that come, read slowly, break off and come back, in any order, against one that misses nothing."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.runner import SessionRunner
from orchestrator.transports.outbox import Outbox, Told
from tests.fakes.links import FakeLink
from tests.sessions.running import ASK, House, client, in_house
from tests.sessions.test_resuming import Returning, item, numbers

CLIENTS = 3

steps = st.one_of(
    st.tuples(st.just("says"), st.integers(1, 4)),
    st.tuples(st.just("reads"), st.integers(0, CLIENTS - 1), st.integers(1, 9)),
    st.tuples(st.just("breaks"), st.integers(0, CLIENTS - 1)),
    st.tuples(st.just("comes"), st.integers(0, CLIENTS - 1)),
    st.tuples(st.just("begins anew"), st.integers(0, CLIENTS - 1)),
    st.tuples(st.just("clears"), st.none()),
    st.tuples(st.just("tells"), st.integers(0, CLIENTS - 1)),
)


class Client:
    """Keeps what it has over its connections; reads when it is let."""

    def __init__(self, session: SessionRunner, name: str) -> None:
        self._session = session
        self._name = name
        self._count = 0
        self.link: FakeLink | None = None
        self._outbox = Outbox(session)
        self.entries: list[tuple[int, Any]] = []
        self.gaps: list[tuple[int, int]] = []
        self.last = 0
        self.fell_behind = 0

    def comes(self, after: int) -> None:
        """Opens a connection, in place of one that may still be there. What it has above `after` it forgets."""
        self.breaks()
        self._count += 1
        self.entries = [entry for entry in self.entries if entry[0] <= after]
        self.gaps = [gap for gap in self.gaps if gap[1] - 1 <= after]
        self.last = after
        link = self.link = FakeLink(f"{self._name} {self._count}")
        outbox = self._outbox = Outbox(self._session)
        link.tell = outbox.tell  # type: ignore[method-assign]
        outbox.start(self._session.attach(link, after))

    def breaks(self) -> None:
        if self.link is not None:
            self._session.detach(self.link.id)
            self.link = None

    def reads(self, most: int) -> bool:
        """Reads so many entries; says whether there was anything. One that has fallen behind is sent away, as doors do
        it, and comes back."""
        try:
            taken = self._outbox.take_numbered(most)
        except LookupError:
            self.fell_behind += 1
            self.comes(self.last)
            return True
        for number, entry in taken:
            if number:
                self.entries.append((number, entry))
                self.last = number
            elif isinstance(entry, Told) and b'"chorale.gap"' in entry.data:
                gap = _gap(entry.data)
                assert gap[0] == self.last, "a gap is told from where this client stands"
                self.gaps.append(gap)
        return bool(taken)

    def check(self, unbroken: dict[int, Any]) -> None:
        """What it has is what the unbroken client has, but for the gaps that it was told of; each once, in order."""
        missing = {number for after, first in self.gaps for number in range(after + 1, first)}
        assert [number for number, _ in self.entries] == [
            number for number in range(1, max(unbroken) + 1) if number not in missing
        ]
        assert all(unbroken[number] is entry for number, entry in self.entries)


def _gap(data: bytes) -> tuple[int, int]:
    told = json.loads(data)
    return told["after"], told["first"]


class Unbroken(Returning):
    """Keeps the very entries, by number."""

    def __init__(self, session: SessionRunner) -> None:
        self.held: dict[int, Any] = {}
        super().__init__("unbroken", session, 0)

    def wake(self) -> None:
        for number, entry in self.outbox.take_numbered(1_000):
            if number:
                self.held[number] = entry


@given(st.lists(steps, max_size=60), st.integers(9, 40))
@settings(max_examples=100, deadline=None)
def test_clients_have_what_the_log_had_however_they_come_and_go(
    script: list[tuple[str, Any]], kept: int
) -> None:
    """F-C1, for any interleaving of entries, private messages, losses of the log and connections: in the end each
    client has every entry once and in order, the very one that the others have, or was told of the gap. Joining twice
    under one name, or at a number of long ago, is the same."""

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.WEBSOCKET)
        unbroken = Unbroken(session)
        clients = [Client(session, str(number)) for number in range(CLIENTS)]
        for one in clients:
            one.comes(0)
        for what, *arguments in script:
            if what == "says":
                for _ in range(arguments[0]):
                    await client(session, "conversation.item.create", item=item("hello"))
                await asyncio.sleep(0.01)
            elif what == "clears":
                unbroken.wake()
                session.forget_log()
            else:
                one = clients[arguments[0]]
                if what == "reads" and one.link is not None:
                    one.reads(arguments[1])
                elif what == "breaks":
                    one.breaks()
                elif what == "comes":
                    one.comes(one.last)
                elif what == "begins anew":
                    one.comes(0)
                elif what == "tells" and one.link is not None:
                    session.refuse(one.link.id, RuntimeError("no"), None)
                    await asyncio.sleep(0.01)
        await client(session, "conversation.item.create", item=item("at last"))
        await asyncio.sleep(0.01)
        assert sorted(unbroken.held) == list(range(1, session.last + 1))
        for one in clients:
            if one.link is None:
                one.comes(one.last)
            while one.reads(7):
                pass
            one.check(unbroken.held)

    in_house(test, log_events=kept)


def test_a_client_that_falls_behind_again_and_again_still_knows_what_it_missed() -> None:
    """A log of three entries and a client that reads one at a time: every number is either there or in a gap."""

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.WEBSOCKET)
        unbroken, slow = Unbroken(session), Client(session, "slow")
        slow.comes(0)
        for _ in range(20):
            await client(session, "conversation.item.create", item=item("hello"))
            await asyncio.sleep(0.01)
            slow.reads(1)
        while slow.reads(1):
            pass
        assert slow.fell_behind > 1
        assert slow.gaps
        slow.check(unbroken.held)

    in_house(test, log_events=3)


def test_numbers_are_those_of_the_event_ids() -> None:
    """What a client counts by (`event_<tag>_<n>`) is what the log counts by."""

    async def test(house: House) -> None:
        session, _ = house.open()
        back = Returning("back", session, 0)
        await client(session, "conversation.item.create", item=item("hello"))
        await asyncio.sleep(0.1)
        assert numbers(back.logged()) == list(range(1, session.last + 1))

    in_house(test)
