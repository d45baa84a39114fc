"""Keys in a running server: they come and go with their file, and take their tenants' links and limits with them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterable
from pathlib import Path

import grpc
import httpx
import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from orchestrator.app import Application
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from tests.configs.scraped import ask
from tests.test_app import readiness, running
from tests.transports.rpc.connecting import calling

ONE, TWO = "sk-one-0123456789", "sk-two-0123456789"
SECRETS = "/v1/realtime/client_secrets"


def entry(key: str, tenant: str, more: str = "") -> str:
    return f"- {{key: {key}, tenant: {tenant}{more}}}\n"


async def status(port: int, key: str) -> int:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        return (await client.post(SECRETS, headers={"Authorization": f"Bearer {key}"})).status_code


async def until_status(port: int, key: str, wanted: int) -> None:
    while await status(port, key) != wanted:  # noqa: ASYNC110 - a server tells nobody of its keys
        await asyncio.sleep(0.02)


async def end_of(link: ClientConnection) -> tuple[int, str]:
    try:
        while True:
            await link.recv()
    except ConnectionClosed as end:
        return (end.rcvd.code, end.rcvd.reason) if end.rcvd else (1006, "")


async def to_the_end(stream: AsyncIterable[object]) -> None:
    async for _ in stream:
        pass


def speaking(port: int, key: str) -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/v1/realtime",
        additional_headers={"Authorization": f"Bearer {key}"},
        proxy=None,
    )


def test_server_follows_its_key_file(tmp_path: Path) -> None:
    """A key is added, its limits hold, the other is withdrawn: its link is closed, a conversation by the new one goes
    on, and a file that is broken after that changes nothing."""
    file = tmp_path / "keys.yaml"
    file.write_text("keys:\n" + entry(ONE, "a"))

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with speaking(port, ONE) as first:
            assert (await ask(first, "hello"))["status"] == "completed"
            assert await status(port, TWO) == 401
            file.write_text("keys:\n" + entry(ONE, "a") + entry(TWO, "b", ", limits: {requests: 1}"))
            await until_status(port, TWO, 200)
            async with speaking(port, TWO) as second:
                assert (await ask(second, "hello"))["status"] == "completed"
                assert (await ask(second, "again"))["status"] == "failed"
                file.write_text("keys:\n" + entry(TWO, "b"))
                assert await end_of(first) == (1008, "The key has been withdrawn.")
                assert await status(port, ONE) == 401
                file.write_text("keys: [")
                os.kill(os.getpid(), signal.SIGHUP)
                assert (await ask(second, "and now without limits"))["status"] == "completed"
                assert await status(port, TWO) == 200

    running(test, {"CHORALE_SERVER__KEY_FILE": str(file), "CHORALE_SERVER__KEY_POLL_S": "0.05"})


def test_server_keeps_links_of_a_withdrawn_key_if_it_is_told_to(tmp_path: Path) -> None:
    """`revoke: keep`: the key opens nothing more, and the conversation goes on."""
    file = tmp_path / "keys.yaml"
    file.write_text("keys:\n" + entry(ONE, "a"))

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with speaking(port, ONE) as link:
            file.write_text("keys:\n" + entry(TWO, "a"))
            os.kill(os.getpid(), signal.SIGHUP)
            await until_status(port, ONE, 401)
            assert (await ask(link, "hello"))["status"] == "completed"

    running(
        test,
        {
            "CHORALE_SERVER__KEY_FILE": str(file),
            "CHORALE_SERVER__KEY_POLL_S": "3600",
            "CHORALE_SERVER__REVOKE": "keep",
        },
    )


def test_withdrawn_key_is_sent_away_from_every_door(tmp_path: Path) -> None:
    """A WebSocket, a stream of events that shows the key and one that shows the session's secret alone, a stream of
    gRPC and one of Connect: all end, and the session is not there for another key of the tenant."""
    file = tmp_path / "keys.yaml"
    file.write_text("keys:\n" + entry(ONE, "a") + entry(TWO, "a"))

    async def test(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        base = f"http://127.0.0.1:{port}"
        bearer, other = ({"Authorization": f"Bearer {key}"} for key in (ONE, TWO))
        async with (
            httpx.AsyncClient(base_url=base, trust_env=False, timeout=60) as client,
            calling(port, "connect", ONE) as connecting,
            grpc.aio.insecure_channel(f"127.0.0.1:{application.grpc_port}") as channel,
        ):
            stub = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated
            opened = await connecting.create()
            path = f"/v1/sessions/{opened.session_id}"
            secret = {"Chorale-Session-Secret": opened.secret}
            asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
            by_grpc = aiter(stub.Watch(asked, metadata=(("authorization", f"Bearer {ONE}"),)))
            by_connect = connecting.watch(opened)
            async with (
                speaking(port, ONE) as socket,
                client.stream("GET", path + "/events", headers={**bearer, **secret}) as by_key,
                client.stream("GET", path + f"/events?secret={opened.secret}") as by_secret,
            ):
                assert (by_key.status_code, by_secret.status_code) == (200, 200)
                await anext(by_grpc)
                await anext(by_connect)
                assert (await client.get(path, headers={**other, **secret})).status_code == 200
                file.write_text("keys:\n" + entry(TWO, "a"))
                os.kill(os.getpid(), signal.SIGHUP)
                assert await end_of(socket) == (1008, "The key has been withdrawn.")
                for stream in (by_key, by_secret):
                    await to_the_end(stream.aiter_bytes())
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await to_the_end(by_grpc)
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
                with pytest.raises(ConnectError) as refused:
                    await to_the_end(by_connect)
                assert refused.value.code is Code.UNAUTHENTICATED
            assert (await client.get(path, headers={**other, **secret})).status_code == 404

    running(
        test,
        {
            "CHORALE_SERVER__KEY_FILE": str(file),
            "CHORALE_SERVER__KEY_POLL_S": "3600",
            "CHORALE_SERVER__GRPC": "{port: 0}",
        },
    )


def test_key_file_that_is_half_written_changes_nothing_until_it_is_whole(tmp_path: Path) -> None:
    """However often it is asked for meanwhile: a key that is still to be written keeps its link."""
    file = tmp_path / "keys.yaml"
    whole = "keys:\n" + entry(TWO, "b") + entry(ONE, "a")
    file.write_text(whole)

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with speaking(port, ONE) as link:
            for cut in ("", "keys:\n", whole[:-3], "keys:\n" + entry(TWO, "b")[:-2]):
                file.write_text(cut)
                os.kill(os.getpid(), signal.SIGHUP)
                assert (await ask(link, "hello"))["status"] == "completed"
                assert [await status(port, key) for key in (ONE, TWO)] == [200, 200]
            file.write_text(whole + entry("sk-three-0123456789", "c"))
            await until_status(port, "sk-three-0123456789", 200)
            assert (await ask(link, "and still"))["status"] == "completed"

    running(test, {"CHORALE_SERVER__KEY_FILE": str(file), "CHORALE_SERVER__KEY_POLL_S": "0.05"})


@pytest.mark.parametrize("shared", [True, False])
def test_client_secret_outlives_the_server_where_its_signing_key_does(tmp_path: Path, shared: bool) -> None:
    """`server.secret_file`: with it the next server knows the secret, without it does not."""
    file, signing = tmp_path / "keys.yaml", tmp_path / "signing"
    file.write_text("keys:\n" + entry(ONE, "a"))
    signing.write_bytes(bytes(range(32)))
    options = {"CHORALE_SERVER__KEY_FILE": str(file)}
    if shared:
        options["CHORALE_SERVER__SECRET_FILE"] = str(signing)
    made: list[str] = []

    async def make(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            answer = await client.post(SECRETS, headers={"Authorization": f"Bearer {ONE}"})
            made.append(answer.json()["value"])

    async def show(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            answer = await client.post("/v1/sessions", headers={"Authorization": f"Bearer {made[0]}"})
            assert answer.status_code == (201 if shared else 401)

    running(make, options)
    running(show, options)
