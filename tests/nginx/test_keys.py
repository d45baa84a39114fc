"""What the server bounds by address and by tenant holds behind nginx, at every door: clients are told apart there."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from connectrpc.errors import ConnectError
from websockets.exceptions import InvalidStatus

from orchestrator.transports.attempts import ALLOWED
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.nginx.opening import stub_of
from tests.nginx.proxying import Front, Stand
from tests.nginx.test_served import behind
from tests.transports.rpc.calling import refused
from tests.transports.running import heard

pytestmark = pytest.mark.needs("nginx")

KEYS = """
keys:
  - {key: sk-acme-0123456789abcdef, tenant: acme, links: 2, sessions: 3}
  - {key: sk-lab-0123456789abcdef, tenant: lab}
"""
ACME, LAB = ({"authorization": f"Bearer sk-{name}-0123456789abcdef"} for name in ("acme", "lab"))
GUESSER, OTHER = {"x-came-from": "203.0.113.7"}, {"x-came-from": "203.0.113.8"}


def with_keys(folder: Path) -> dict[str, str]:
    """Writes the keys; returns what the server is told."""
    file = folder / "keys.yaml"
    file.write_text(KEYS)
    file.chmod(0o600)
    return {"CHORALE_SERVER__KEY_FILE": str(file)}


def behind_another(text: str) -> str:
    """Returns the configuration of an nginx that has a proxy of its own before it, as its comment says: who comes from
    this machine is told apart by what that one says."""
    line = "    limit_conn_status 429;\n"
    assert line in text
    return text.replace(line, f"{line}    set_real_ip_from 127.0.0.1;\n    real_ip_header X-Came-From;\n")


def grpc_of(front: Front) -> Any:
    return stub_of(Stand(front, ()))  # type: ignore[arg-type]  # its server is no fake


def test_wrong_keys_are_counted_by_the_clients_address_at_every_door(tmp_path: Path) -> None:
    """Guesses over HTTP, gRPC and a WebSocket add up; then this address has to wait at each of them, even with a right
    key, and nobody else has. What a client says of its address by itself changes nothing."""

    async def test(front: Front) -> None:
        wrong = {"authorization": "Bearer wrong"}
        stub = grpc_of(front)
        async with front.client(**GUESSER) as client:
            for number in range(ALLOWED - 2):
                claim = {"x-forwarded-for": f"198.51.100.{number}"}
                assert (await client.get("/v1/models", headers={**wrong, **claim})).status_code == 401
            guess = stub.Get(pb.GetRequest(), metadata=tuple({**wrong, **GUESSER}.items()))
            assert (await refused(guess))[0] == "UNAUTHENTICATED"
            while (answer := await client.post("/v1/sessions", headers=wrong)).status_code == 401:
                pass
            assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (429, True)
            assert (await client.get("/v1/models", headers=ACME)).status_code == 429
        name, _, trailers = await refused(
            stub.Create(pb.CreateRequest(), metadata=tuple({**ACME, **GUESSER}.items()))
        )
        assert (name, int(trailers["retry-after-ms"]) > 0) == ("RESOURCE_EXHAUSTED", True)
        with pytest.raises(InvalidStatus) as caught:
            await front.connect("?model=m", **ACME, **GUESSER)
        assert caught.value.response.status_code == 429
        async with front.calling("connect", **ACME, **GUESSER) as caller:
            with pytest.raises(ConnectError):
                await caller.create()
        async with front.client(**OTHER, **ACME) as client:
            assert (await client.get("/v1/models")).status_code == 200
        assert (await stub.Create(pb.CreateRequest(), metadata=tuple({**ACME, **OTHER}.items()))).session_id

    behind(tmp_path, test, with_keys(tmp_path), behind_another)


def test_tenant_has_its_links_and_sessions_by_all_doors_together(tmp_path: Path) -> None:
    """Two links and no third, by whatever door; three sessions and no fourth; another tenant has its own."""

    async def test(front: Front) -> None:
        stub, key = grpc_of(front), tuple(ACME.items())
        async with AsyncExitStack() as open_links, front.client(**ACME) as client:
            socket = await open_links.enter_async_context(front.connect("?model=m", **ACME))
            session = (await heard(socket))["session"]["id"]
            made = (await client.post("/v1/sessions", json={})).json()
            where, shown = f"/v1/sessions/{made['id']}/events", {"chorale-session-secret": made["secret"]}
            stream = await open_links.enter_async_context(client.stream("GET", where, headers=shown))
            assert stream.status_code == 200
            chunks = stream.aiter_raw()  # kept: the stream is closed with it
            await anext(chunks)
            with pytest.raises(InvalidStatus) as caught:
                await front.connect("?model=m", **ACME)
            assert caught.value.response.status_code == 429
            assert (await client.get(where, headers=shown)).status_code == 429
            asked = pb.WatchRequest(session_id=made["id"], secret=made["secret"])
            name, _, trailers = await refused(stub.Watch(asked, metadata=key).read())
            assert (name, int(trailers["retry-after-ms"]) > 0) == ("RESOURCE_EXHAUSTED", True)
            async with front.calling("gRPC-Web", **ACME) as caller:
                with pytest.raises(ConnectError, match="links"):
                    await anext(caller.watch(pb.SessionOpened(session_id=made["id"], secret=made["secret"])))
            assert (await stub.Create(pb.CreateRequest(), metadata=key)).session_id != session
            assert (await client.post("/v1/sessions", json={})).status_code == 429
            assert (await refused(stub.Create(pb.CreateRequest(), metadata=key)))[0] == "RESOURCE_EXHAUSTED"
            async with front.connect("?model=m", **LAB) as other:
                assert (await heard(other))["session"]["id"]

    behind(tmp_path, test, with_keys(tmp_path))
