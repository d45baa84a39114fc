"""What keys, client secrets and proxies mean for RPCs: the same as at every other door."""

from typing import Any

import pytest

from orchestrator.flow.tenants import Allowance
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.pace import Rate
from orchestrator.transports.rpc.interceptors import address_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.transports.rpc.calling import Conversation, House, Running, against, build, refused
from tests.transports.running import until

ALPHA = (("authorization", "Bearer key-a"),)


def keyed(proxies: tuple[str, ...] = ()) -> House:
    """A house whose one tenant may hold two links."""
    principal = Principal("alpha", Tier.PLATINUM, allowance=Allowance(sessions=None, links=2))
    return build(KeyRing([Key(digest_of("key-a"), principal)]), proxies=proxies)


def test_links_of_a_tenant_are_bounded_and_no_session_is_opened_in_vain() -> None:
    """Over its own number RESOURCE_EXHAUSTED, before anything is made; and room again once one has left."""

    async def test(running: Running) -> None:
        opened = await running.stub.Create(pb.CreateRequest(), metadata=ALPHA)
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        links = [running.stub.Watch(asked, metadata=ALPHA) for _ in range(2)]
        for one in links:
            await one.read()
        async with Conversation(running.stub.Converse(metadata=ALPHA)) as talk:
            assert (await refused(talk.call.read()))[0] == "RESOURCE_EXHAUSTED"
        assert len(running.house.directory.sessions) == 1
        links[0].cancel()
        await until(lambda: running.house.door.links == 1)
        again = running.stub.Watch(asked, metadata=ALPHA)
        assert (await again.read()).WhichOneof("message") == "opened"
        links[1].cancel()
        again.cancel()

    against(test, keyed)


def test_withdrawn_key_ends_its_streams() -> None:
    """UNAUTHENTICATED, after what there was to say; other streams would go on."""

    async def test(running: Running) -> None:
        opened = await running.stub.Create(pb.CreateRequest(), metadata=ALPHA)
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        call = running.stub.Watch(asked, metadata=ALPHA)
        await call.read()
        await call.read()
        running.session.emit("last words")
        running.house.entrance.withdraw(frozenset({Key(digest_of("key-a"), Principal("a", Tier.GOLD)).id}))
        assert (await call.read()).number == 1
        name, text, _ = await refused(call.read())
        assert (name, text) == ("UNAUTHENTICATED", "The key has been withdrawn.")

    against(test, keyed)


def test_client_secret_opens_what_it_was_made_for_as_often_as_it_may() -> None:
    """Its session comes with it; used up, it opens nothing more; and a use is not lost where nothing was opened."""

    async def test(running: Running) -> None:
        house = running.house
        maker = house.entrance.admit({"authorization": "Bearer key-a"})
        secret = house.entrance.make_secret(maker, b'{"instructions":"Be brief."}', 60, uses=1).value
        shown = (("authorization", f"Bearer {secret}"),)
        bad = pb.CreateRequest(session="[]")
        assert (await refused(running.stub.Create(bad, metadata=shown)))[0] == "INVALID_ARGUMENT"
        opened = await running.stub.Create(pb.CreateRequest(), metadata=shown)
        assert running.session.view.instructions == "Be brief."
        assert (await refused(running.stub.Create(pb.CreateRequest(), metadata=shown)))[
            0
        ] == "UNAUTHENTICATED"
        asked = pb.GetRequest(session_id=opened.session_id, secret=opened.secret)
        assert (await running.stub.Get(asked, metadata=shown)).last == 0

    against(test, keyed)


def test_wrong_keys_from_one_address_are_counted_behind_a_known_proxy_too() -> None:
    """RESOURCE_EXHAUSTED with the time to wait, for that address only: even a right key is not looked at."""

    async def test(running: Running) -> None:
        def get(address: str, key: str) -> Any:
            metadata = (("authorization", f"Bearer {key}"), ("x-forwarded-for", address))
            return running.stub.Get(pb.GetRequest(), metadata=metadata)

        names = [(await refused(get("203.0.113.7", "wrong")))[0] for _ in range(40)]
        assert (names[0], names[-1]) == ("UNAUTHENTICATED", "RESOURCE_EXHAUSTED")
        name, _, trailers = await refused(get("203.0.113.7", "key-a"))
        assert (name, int(trailers["retry-after-ms"]) > 0) == ("RESOURCE_EXHAUSTED", True)
        assert (await refused(get("203.0.113.8", "key-a")))[0] == "NOT_FOUND"

    against(test, lambda: keyed(proxies=("127.0.0.1",)))


def test_server_without_keys_does_not_serve_others_through_a_proxy() -> None:
    """What a proxy passes on is not this machine's own: FAILED_PRECONDITION."""

    async def test(running: Running) -> None:
        call = running.stub.Create(pb.CreateRequest(), metadata=(("x-forwarded-for", "203.0.113.7"),))
        assert (await refused(call))[0] == "FAILED_PRECONDITION"
        await running.create()

    against(test)


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:5000", "127.0.0.1"),
        ("ipv6:%5B::1%5D:5000", "::1"),
        ("ipv6:[2001:db8::7]:5000", "2001:db8::7"),
        ("unix:/tmp/x", ""),
        ("", ""),
    ],
)
def test_address_is_read_from_the_name_of_a_peer(peer: str, address: str) -> None:
    """Without port and brackets, as they are compared."""
    assert address_of(peer) == address


def test_requests_that_say_too_much_are_told_when_to_come_back() -> None:
    """RESOURCE_EXHAUSTED with the time to wait; nothing of what is over is handled."""

    async def test(running: Running) -> None:
        opened = await running.create()
        event = '{"type": "response.cancel"}'
        asked = pb.SendRequest(session_id=opened.session_id, secret=opened.secret, events=[event] * 64)
        assert (await running.stub.Send(asked)).accepted == 64
        name, _, trailers = await refused(running.stub.Send(asked))
        assert (name, trailers["chorale-code"]) == ("RESOURCE_EXHAUSTED", "rate_limit_exceeded")
        assert 0 < int(trailers["retry-after-ms"]) <= 60_000
        assert len(running.session.submitted) == 64

    against(test, lambda: build(rate=Rate(1, 1e9, 10**9, 10)))


def test_stream_whose_key_is_withdrawn_before_it_has_said_anything_joins_nothing() -> None:
    """UNAUTHENTICATED: there is no link yet that could be closed, and there is to be none."""

    async def test(running: Running) -> None:
        opened = await running.stub.Create(pb.CreateRequest(), metadata=ALPHA)
        async with Conversation(running.stub.Converse(metadata=ALPHA)) as talk:
            await until(lambda: running.house.entrance.links == 1)
            running.house.entrance.withdraw(
                frozenset({Key(digest_of("key-a"), Principal("a", Tier.GOLD)).id})
            )
            await talk.call.write(
                pb.ClientMessage(join=pb.Join(session_id=opened.session_id, secret=opened.secret))
            )
            name, text, _ = await refused(talk.call.read())
            assert (name, text) == ("UNAUTHENTICATED", "The key has been withdrawn.")
        assert running.session.links == {}

    against(test, keyed)
