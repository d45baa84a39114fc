"""gRPC by reflection: services, methods and messages are what the server describes; nothing generated is used."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.third_party.converse import SERVICE, Refused, Shown, over
from tests.third_party.stage import Complaints, play


@dataclass
class Described:
    """What the server says of itself, and an open channel."""

    channel: grpc.aio.Channel
    services: Mapping[str, ServiceDescriptor]

    def method(self, name: str) -> tuple[str, Callable[[Any], bytes], Callable[[bytes], Any]]:
        """Returns a method's path, and how its messages are written and read."""
        method = self.services[SERVICE].methods_by_name[name]
        asks, answers = GetMessageClass(method.input_type), GetMessageClass(method.output_type)

        def write(message: Shown) -> bytes:
            return ParseDict(message, asks()).SerializeToString()

        def read(data: bytes) -> Shown:
            return MessageToDict(answers.FromString(data))

        return f"/{SERVICE}/{name}", write, read


class Converse:
    """A call in both directions."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._writing = asyncio.Lock()

    async def send(self, message: Shown) -> None:
        async with self._writing:  # gRPC takes one at a time
            await self._call.write(message)

    async def receive(self) -> Shown:
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as why:
            raise _refused(why) from None
        if message is grpc.aio.EOF:
            raise EOFError
        shown: Shown = message
        return shown


class Reflected:
    """What is at an address, by what it says of itself."""

    def __init__(self, address: str) -> None:
        self._address = address

    @asynccontextmanager
    async def _described(self) -> AsyncIterator[Described]:
        services = await asyncio.to_thread(_explored, self._address)
        async with grpc.aio.insecure_channel(self._address) as channel:
            yield Described(channel, services)

    async def services(self) -> Mapping[str, set[str]]:
        async with self._described() as described:
            return {name: set(one.methods_by_name) for name, one in described.services.items()}

    async def call(self, method: str, request: Shown) -> Shown:
        async with self._described() as described:
            path, write, read = described.method(method)
            try:
                answer: Shown = await described.channel.unary_unary(path, write, read)(request)
            except grpc.aio.AioRpcError as why:
                raise _refused(why) from None
            return answer

    @asynccontextmanager
    async def converse(self) -> AsyncIterator[Converse]:
        async with self._described() as described:
            path, write, read = described.method("Converse")
            call = described.channel.stream_stream(path, write, read)()
            try:
                yield Converse(call)
            finally:
                call.cancel()


def _refused(why: grpc.aio.AioRpcError) -> Refused:
    return Refused(f"{why.code().name.replace('_', '').lower()}: {why.details()}")


def _explored(address: str) -> Mapping[str, ServiceDescriptor]:
    with grpc.insecure_channel(address) as channel:
        database: Any = ProtoReflectionDescriptorDatabase(channel)
        pool = DescriptorPool(database)
        return {name: pool.FindServiceByName(name) for name in database.get_services()}


if __name__ == "__main__":
    play(("grpcio", "grpcio-reflection", "protobuf"), over(Reflected), Complaints())
