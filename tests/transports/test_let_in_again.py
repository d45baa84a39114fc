"""What was let in before its body came is looked at again, and a use is taken only by what begins."""

from collections.abc import AsyncIterator

import httpx

from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.sessions_http import SESSIONS
from tests.transports.running import House, build
from tests.transports.test_http import CALLS, LAB, OFFER, RING, SDP, SECRETS, error_of, keyed, with_client


def test_client_secret_that_asks_for_another_keeps_its_use() -> None:
    """403, and what it is for still begins."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        made = (await client.post(SECRETS, json={"chorale": {"uses": 1}}, headers=LAB)).json()
        bearer = {"Authorization": f"Bearer {made['value']}"}
        assert (await client.post(SECRETS, headers=bearer)).status_code == 403
        called = await client.post(CALLS, content=OFFER, headers={**SDP, **bearer})
        assert called.status_code == 201

    with_client(test, keyed)


def test_call_whose_key_is_withdrawn_while_its_offer_comes_is_not_opened() -> None:
    """A body may come slowly: what was let in before is looked at again when it is there."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        async def offer() -> AsyncIterator[bytes]:
            yield OFFER[:3].encode()
            house.entrance.gate.replace(KeyRing([Key(digest_of("sk-new"), Principal("lab", Tier.GOLD))]))
            yield OFFER[3:].encode()

        answer = await client.post(CALLS, content=offer(), headers={**SDP, **LAB})
        assert (answer.status_code, error_of(answer)["message"]) == (401, "The key has been withdrawn.")
        assert house.directory.sessions == []
        house.entrance.gate.replace(RING)
        await client.post(CALLS, content=OFFER, headers={**SDP, **LAB})
        (session,) = house.directory.sessions
        back = f"{CALLS}?session_id={session.id}&secret={session.secret}"
        answer = await client.post(back, content=offer(), headers={**SDP, **LAB})
        assert (answer.status_code, house.calls.returned) == (401, [])

    with_client(test, keyed)


def test_stream_whose_key_is_withdrawn_while_its_request_comes_is_no_link() -> None:
    """Watch over gRPC-Web: by another key of the tenant its session lives on, so that nothing else would end it."""
    keys = [Key(digest_of(key), Principal("lab", Tier.GOLD)) for key in ("sk-lab", "sk-stays")]

    async def test(house: House, client: httpx.AsyncClient) -> None:
        await client.post(SESSIONS, headers={"Authorization": "Bearer sk-stays"})
        (session,) = house.directory.sessions
        message = pb.WatchRequest(session_id=session.id, secret=session.secret).SerializeToString()

        async def asked() -> AsyncIterator[bytes]:
            yield b"\0" + len(message).to_bytes(4, "big")
            house.entrance.gate.replace(KeyRing(keys[1:]))
            yield message

        kind = {"Content-Type": "application/grpc-web+proto"}
        answer = await client.post("/chorale.v1.Sessions/Watch", content=asked(), headers={**kind, **LAB})
        assert "grpc-status: 16" in answer.text.lower() or answer.headers.get("grpc-status") == "16"
        assert session.links == {}

    with_client(test, lambda: build(KeyRing(keys)))
