"""Bytes that nobody sends in good faith, at both ports: the client's fault each, and no harm to anybody else."""

import random
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.transports.rpc.calling import Running, against
from tests.transports.rpc.connecting import calling
from tests.transports.running import Running as Serving
from tests.transports.running import against as against_http

UNARY = ("Create", "Get", "End", "Send")
EXPECTED = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"}


def mutations(seed: int, count: int, opened: pb.SessionOpened) -> Iterator[bytes]:
    """Yields noise, and messages with some bytes changed, cut out or said twice."""
    chance = random.Random(seed)
    named: dict[str, Any] = {"session_id": opened.session_id, "secret": opened.secret}
    seeds = [
        pb.SendRequest(events=['{"type":"response.cancel"}'] * 3, sound=b"\1\0" * 50, **named),
        pb.ClientMessage(join=pb.Join(after=0, **named)),
        pb.ClientMessage(event=pb.Event(json='{"type":"response.cancel"}')),
        pb.ClientMessage(sound=pb.Sound(data=b"\1\0" * 50)),
        pb.WatchRequest(after=0, speech=True, **named),
        pb.CreateRequest(model="m", session='{"type":"realtime","instructions":"x"}'),
    ]
    good = [one.SerializeToString() for one in seeds]
    for _ in range(count):
        data = bytearray(
            chance.choice(good) if chance.random() < 0.8 else chance.randbytes(chance.randrange(80))
        )
        for _ in range(chance.randrange(4)):
            if not data:
                break
            at = chance.randrange(len(data))
            match chance.randrange(3):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randrange(1, 9)]
                case _:
                    data[at:at] = data[at : at + chance.randrange(1, 40)]
        yield bytes(data)


def test_changed_messages_harm_nobody_over_grpc(caplog: pytest.LogCaptureFixture) -> None:
    """In requests and in streams: a status that names the client's fault, and a session that goes on beside it."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            opened = await talk.open()
            session = running.session
            other = await running.create()
            for data in mutations(1, 300, other):
                for name in UNARY:
                    call: Any = running.channel.unary_unary(f"/chorale.v1.Sessions/{name}")
                    assert await _status(call(data)) in EXPECTED
                make: Any = running.channel.stream_stream("/chorale.v1.Sessions/Converse")
                stream = make(timeout=20)
                await stream.write(data)
                assert await _status(stream.read()) in EXPECTED
                stream.cancel()
            await talk.say("response.cancel")
            session.emit("still here")
            while (await talk.event())["type"] != "still here":
                pass
            assert opened.session_id == session.id
        assert not [one for one in caplog.records if one.exc_info]

    against(test)


async def _status(call: Any) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


@pytest.mark.parametrize("kind", ["application/proto", "application/grpc-web+proto", "application/json"])
def test_changed_messages_harm_nobody_over_http(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """As requests of Connect and gRPC-Web: never a fault of the server, be it of a frame or of a message."""

    async def test(running: Serving) -> None:
        async with calling(running.port, "connect") as caller:
            opened = await caller.create()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            for number, data in enumerate(mutations(2, 150, opened)):
                framed = b"\0" + len(data).to_bytes(4, "big") + data if number % 3 else data
                name = UNARY[number % len(UNARY)]
                body = framed if "grpc" in kind else data
                answer = await client.post(
                    f"/chorale.v1.Sessions/{name}", content=body, headers={"content-type": kind}
                )
                assert answer.status_code in (200, 400, 404, 429, 501), answer.text
                assert b"grpc-status: 2\r" not in answer.content  # UNKNOWN, which is nobody's fault
                assert b"grpc-status: 13" not in answer.content or b"compress" in answer.content
            assert (await client.get("/healthz")).status_code == 200
        assert not [one for one in caplog.records if one.exc_info]

    against_http(test)
