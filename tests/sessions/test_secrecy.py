"""Who sees a session's secret, and where it stands."""

import asyncio
import json

from orchestrator.sessions.links import LinkKind, LoggedEvent
from tests.fakes.links import FakeLink
from tests.sessions.running import ASK, House, client, in_house


def updates(events: list[LoggedEvent], kind: LinkKind) -> list[str]:
    """The secrets that a link of this kind is shown."""
    shown = [json.loads(event.shown(kind)) for event in events]
    return [one["session"]["chorale"]["secret"] for one in shown if one["type"] == "session.updated"]


def test_secret_is_shown_to_its_holders_and_not_to_who_names_a_call() -> None:
    """What links of other kinds send of one `session.updated` is the same but for the secret; the numbers are equal."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(
            session, "session.update", session={"type": "realtime", "chorale": {"typed_turns": True}}
        )
        await asyncio.sleep(0.1)
        events = [entry for _, entry in session.read(0, 99) if isinstance(entry, LoggedEvent)]
        assert all(session.secret.encode() not in event.data for event in events)
        assert updates(events, LinkKind.SIDEBAND) == [""]
        for kind in (LinkKind.WEBSOCKET, LinkKind.CALL, LinkKind.EVENTS, LinkKind.RPC):
            assert updates(events, kind) == [session.secret]
        (event,) = (event for event in events if event.to_holders is not None)
        assert event.to_holders == event.data.replace(
            b'"secret":""', b'"secret":"%b"' % session.secret.encode()
        )

    in_house(test)


def test_secret_is_in_session_created_of_holders_alone() -> None:
    """A link that joins a session with Chorale's switches on is told the secret with them, a sideband is not."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(
            session, "session.update", session={"type": "realtime", "chorale": {"typed_turns": True}}
        )
        await asyncio.sleep(0.1)
        for kind, expected in ((LinkKind.WEBSOCKET, session.secret), (LinkKind.SIDEBAND, "")):
            link = FakeLink(kind.value, kind)
            link.attach(session)
            created = link.events[0]
            assert (created["type"], created["session"]["chorale"]["secret"]) == ("session.created", expected)

    in_house(test)


def test_plain_clients_are_shown_no_secret() -> None:
    """Who has none of Chorale's switches on gets the session without that part, as before."""

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.WEBSOCKET)
        link = FakeLink("plain")
        link.attach(session)
        await client(session, "session.update", session={"type": "realtime", "instructions": "x"})
        await asyncio.sleep(0.1)
        events = [entry for _, entry in session.read(0, 99) if isinstance(entry, LoggedEvent)]
        assert events
        assert all(event.to_holders is None for event in events)
        shown = [event["session"] for event in link.events if event["type"].startswith("session.")]
        assert len(shown) == 2
        assert all("chorale" not in one for one in shown)

    in_house(test)
