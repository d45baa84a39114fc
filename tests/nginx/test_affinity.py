"""Two servers behind one nginx: who comes back to a session comes to the server that has it, by whatever door."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchmarks.nginx_front import SHIPPED, Ports
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.nginx.opening import OPENED, over_http, stub_of
from tests.nginx.proxying import Stand, against, nginx, node
from tests.transports.fake_sessions import FakeSession
from tests.transports.rpc.calling import Conversation
from tests.transports.running import heard

pytestmark = pytest.mark.needs("nginx")


async def by_websocket(stand: Stand, session: FakeSession) -> None:
    """Comes back; the secret stands in a subprotocol, as browsers show it."""
    shown = ["realtime", f"chorale-session-secret.{session.secret}"]
    async with stand.front.connect(f"?session_id={session.id}", shown) as link:
        assert (await heard(link))["session"]["id"] == session.id


async def by_event_stream(stand: Stand, session: FakeSession) -> None:
    async with stand.front.client(**{"chorale-session-secret": session.secret}) as client:
        where = f"/v1/sessions/{session.id}"
        assert (await client.get(where)).status_code == 200
        assert (await client.post(f"{where}/events", json=[])).status_code in (202, 400)
        async with client.stream("GET", f"{where}/events") as stream:
            assert stream.status_code == 200


async def by_grpc(stand: Stand, session: FakeSession) -> None:
    """Comes back with the session's id in the metadata: what is in messages nginx cannot see."""
    call = stub_of(stand).Converse(metadata=(("chorale-session-id", session.id),))
    async with Conversation(call) as talk:
        await talk.join(pb.SessionOpened(session_id=session.id, secret=session.secret))


async def by_grpc_web(stand: Stand, session: FakeSession) -> None:
    async with stand.front.calling("gRPC-Web", **{"chorale-session-id": session.id}) as caller:
        assert (await caller.get(session.id, session.secret)).session


BACK: dict[str, Callable[[Stand, FakeSession], Awaitable[None]]] = {
    "WebSocket": by_websocket,
    "SSE": by_event_stream,
    "gRPC": by_grpc,
    "gRPC-Web": by_grpc_web,
}
"""Every way to come back; each fails where another server is asked, which knows no such session."""

ENOUGH = 6
"""Sessions of which not all happen to be on the right server."""


@pytest.mark.parametrize("door", OPENED)
def test_session_is_called_as_nginx_says_wherever_it_is_opened(tmp_path: Path, door: str) -> None:
    """`sess_` and 32 digits, of which the first says on which of the two it is; both get some."""

    async def test(stand: Stand) -> None:
        first, second = (one.house.directory.sessions for one in stand.nodes)
        while not (first and second):
            await OPENED[door](stand)
        for made, digits in ((first, "01234567"), (second, "89abcdef")):
            for session in made:
                assert re.fullmatch("sess_[0-9a-f]{32}", session.id)
                assert session.id[5] in digits

    against(tmp_path, test)


@pytest.mark.parametrize("door", OPENED)
def test_return_by_every_door_lands_on_the_maker(tmp_path: Path, door: str) -> None:
    """Also by another door than the session was opened by."""

    async def test(stand: Stand) -> None:
        sessions = [await OPENED[door](stand) for _ in range(ENOUGH)]
        for come_back in BACK.values():
            for session in sessions:
                await come_back(stand, session)

    against(tmp_path, test)


def test_client_cannot_choose_what_its_session_is_called(tmp_path: Path) -> None:
    """nginx overwrites what a client sends for itself: nobody waits in a session of another's choice."""

    async def test(stand: Stand) -> None:
        chosen = "0123456789abcdef" * 2
        async with stand.front.client(**{"chorale-new-session": chosen}) as client:
            made = (await client.post("/v1/sessions", json={})).json()
        assert made["id"] != f"sess_{chosen}"
        assert stand.session(made["id"]).id == made["id"]
        mine = (("chorale-new-session", chosen),)
        opened = await stub_of(stand).Create(pb.CreateRequest(model="m"), metadata=mine)
        assert opened.session_id != f"sess_{chosen}"

    against(tmp_path, test)


def test_session_that_is_opened_beside_another_is_found_again(tmp_path: Path) -> None:
    """A client that names the session that it has in all its requests opens the next one on the same server: its name
    has the digit of that server, and is new."""

    async def test(stand: Stand) -> None:
        sessions = [await over_http(stand)]
        for _ in range(ENOUGH):
            named = (("chorale-session-id", sessions[-1].id),)
            opened = await stub_of(stand).Create(pb.CreateRequest(model="m"), metadata=named)
            sessions.append(stand.session(opened.session_id))
            await by_event_stream(stand, sessions[-1])
        assert len({one.id[5] for one in sessions}) == 1
        assert len({one.id[6:] for one in sessions}) == len(sessions)

    against(tmp_path, test)


def test_server_that_is_gone_is_stood_in_for(tmp_path: Path) -> None:
    """Sessions of its digits are opened on the other one, by every door, and come back to there."""

    async def main() -> None:
        async with asyncio.timeout(120), node() as alone:
            async with node() as gone:
                dead = gone.ports
            async with nginx(tmp_path, alone.ports, dead) as front:
                stand = Stand(front, (alone, alone))
                for way in OPENED.values():
                    known = len(alone.house.directory.sessions)
                    while not any(one.id[5] in "89abcdef" for one in alone.house.directory.sessions[known:]):
                        await way_of(stand, way)
                lost = [one for one in alone.house.directory.sessions if one.id[5] in "89abcdef"]
                for come_back in BACK.values():
                    await come_back(stand, lost[0])

    async def way_of(stand: Stand, way: Callable[[Stand], Awaitable[FakeSession]]) -> None:
        await way(Stand(stand.front, stand.nodes[:1]))  # type: ignore[arg-type]  # both are the same one

    asyncio.run(main())


def test_both_doors_of_a_server_get_the_same_digits() -> None:
    """In the file as it ships: gRPC and HTTP of one upstream are of one server, and stand in for each other in the same
    way."""
    text = SHIPPED.read_text()
    found = dict(re.findall(r"upstream (\w+) \{\s+((?:.*\n)*?)    \}", text))
    ports = {name: re.findall(r"server 127.0.0.1:(\d+)", body) for name, body in found.items()}
    first, second = Ports(8080, 50051), Ports(8081, 50052)
    assert ports == {
        "chorale_a": [str(first.http), str(second.http)],
        "chorale_b": [str(second.http), str(first.http)],
        "chorale_a_grpc": [str(first.grpc), str(second.grpc)],
        "chorale_b_grpc": [str(second.grpc), str(first.grpc)],
    }
