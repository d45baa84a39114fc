"""What gRPC clients are told while no server can be had, and how soon they are served again."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from benchmarks.nginx_front import Ports, free_port
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.rpc.door import GrpcOptions
from orchestrator.transports.rpc.grpc_server import GrpcServer
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.nginx.opening import stub_of
from tests.nginx.proxying import Stand, against, nginx
from tests.nginx.test_border import few
from tests.transports.rpc.calling import Conversation, build, refused

pytestmark = pytest.mark.needs("nginx")

TRIES = 12
"""More than any number of failures after which a server might be taken for gone."""


def test_streams_are_served_as_soon_as_there_is_a_server(tmp_path: Path) -> None:
    """However many were refused before, and though those that are served first do not end; each that is refused is told
    so as gRPC has it."""

    async def main() -> None:
        ports = Ports(free_port(), free_port()), Ports(free_port(), free_port())
        async with asyncio.timeout(120), nginx(tmp_path, *ports) as front, AsyncExitStack() as talks:
            stub = stub_of(Stand(front, ()))  # type: ignore[arg-type]  # there are none
            for _ in range(TRIES):
                for call in (stub.Converse().read(), stub.Get(pb.GetRequest())):
                    name, text, trailers = await refused(call)
                    assert (name, text) == ("UNAVAILABLE", "No server answers.")
                    assert trailers["retry-after-ms"] == "5000"
            house = build(proxies=("127.0.0.1",))
            for one in ports:
                server = GrpcServer(
                    GrpcOptions(port=one.grpc),
                    house.door,
                    house.entrance,
                    house.directory,
                    house.readiness,
                    None,
                    Proxies(["127.0.0.1"]),
                )
                await server.start()
                talks.push_async_callback(server.stop, 5)
            for _ in range(TRIES):
                talk = await talks.enter_async_context(Conversation(stub.Converse()))
                await talk.open()

    asyncio.run(main())


def test_connection_too_many_is_told_as_grpc_has_it(tmp_path: Path) -> None:
    """With the time to come back."""

    async def test(stand: Stand) -> None:
        async with AsyncExitStack() as talks:
            for _ in range(2):
                talk = await talks.enter_async_context(Conversation(stub_of(stand).Converse()))
                await talk.open()
            for call in (stub_of(stand).Converse().read(), stub_of(stand).Get(pb.GetRequest())):
                name, text, trailers = await refused(call)
                assert (name, trailers["retry-after-ms"]) == ("RESOURCE_EXHAUSTED", "5000"), text

    against(tmp_path, test, few)
