"""What was let in before its body came is looked at again, and a use is taken only by what begins."""

from collections.abc import AsyncIterator

import httpx
import pytest

from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.sessions_http import SESSIONS
from tests.transports.asking import Asked, asking
from tests.transports.fake_sessions import FakeSession
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


STAYS = {"Authorization": "Bearer sk-stays"}
KEYS = [Key(digest_of(key), Principal("lab", Tier.GOLD)) for key in ("sk-lab", "sk-stays")]


async def lived(house: House, client: httpx.AsyncClient) -> FakeSession:
    """A session by another key of the tenant: it goes on, so that nothing else would end what begins in it."""
    await client.post(SESSIONS, headers=STAYS)
    return house.directory.sessions[-1]


async def slowly(house: House, *pieces: bytes) -> AsyncIterator[bytes]:
    """A body in the middle of which the key is withdrawn."""
    for number, piece in enumerate(pieces):
        if number:
            house.entrance.gate.replace(KeyRing(KEYS[1:]))
        yield piece


@pytest.mark.parametrize("method", ["Watch", "Send"])
def test_rpc_whose_key_is_withdrawn_while_its_request_comes_is_refused(method: str) -> None:
    """A stream is no link, a request says nothing, over gRPC-Web."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session = await lived(house, client)
        kind = pb.WatchRequest if method == "Watch" else pb.SendRequest
        message = kind(session_id=session.id, secret=session.secret).SerializeToString()
        body = slowly(house, b"\0" + len(message).to_bytes(4, "big"), message)
        headers = {"Content-Type": "application/grpc-web+proto", **LAB}
        answer = await client.post(f"/chorale.v1.Sessions/{method}", content=body, headers=headers)
        assert "grpc-status: 16" in answer.text.lower() or answer.headers.get("grpc-status") == "16"
        assert session.links == {}

    with_client(test, lambda: build(KeyRing(KEYS)))


def test_events_whose_key_is_withdrawn_while_they_come_are_not_handled() -> None:
    """401, and the session hears nothing of them."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session = await lived(house, client)
        body = slowly(house, b'{"type": ', b'"response.cancel"}')
        headers = {**LAB, "Chorale-Session-Secret": session.secret}
        answer = await client.post(f"{SESSIONS}/{session.id}/events", content=body, headers=headers)
        assert (answer.status_code, session.submitted) == (401, [])

    with_client(test, lambda: build(KeyRing(KEYS)))


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/v1/embeddings", "application/json", b'{"input": "one", "model": "m"}'),
        (
            "/v1/audio/transcriptions",
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--x--\r\n',
        ),
    ],
    ids=["vectors", "file"],
)
def test_request_whose_key_is_withdrawn_while_its_body_comes_is_not_begun(
    path: str, kind: str, body: bytes
) -> None:
    """Of the OpenAI API too: a file may come for minutes. No work is done for it."""

    async def test(asked: Asked) -> None:
        house = asked.running.house

        async with house.client(**LAB) as client:
            content = slowly(house, body[:9], body[9:])
            answer = await client.post(path, content=content, headers={"Content-Type": kind})
        assert (answer.status_code, error_of(answer)["message"]) == (401, "The key has been withdrawn.")
        assert asked.workers.jobs == []

    asking(test, ring=RING)
