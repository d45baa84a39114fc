"""A client that knows nothing of the service but its address, as grpcurl is."""

import asyncio
import json
from typing import Any

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.transports.rpc.calling import Running, against


def explored(port: int) -> dict[str, Any]:
    """Finds the service, opens a session with it and talks in a stream: all by what reflection says."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        database: Any = ProtoReflectionDescriptorDatabase(channel)
        pool = DescriptorPool(database)
        (name,) = [one for one in database.get_services() if one.startswith("chorale.")]
        service = pool.FindServiceByName(name)

        def message(method: str, **fields: object) -> bytes:
            kind = GetMessageClass(service.methods_by_name[method].input_type)
            return ParseDict(fields, kind()).SerializeToString()

        def shown(method: str, data: bytes) -> dict[str, Any]:
            kind = GetMessageClass(service.methods_by_name[method].output_type)
            return MessageToDict(kind.FromString(data))

        create: Any = channel.unary_unary(f"/{name}/Create")
        opened = shown("Create", create(message("Create", model="m")))
        converse: Any = channel.stream_stream(f"/{name}/Converse")
        join = {"sessionId": opened["sessionId"], "secret": opened["secret"], "after": 0}
        event = {"json": '{"type":"nope"}'}
        call = converse(iter([message("Converse", join=join), message("Converse", event=event)]))
        heard = [shown("Converse", next(call)) for _ in range(3)]
        call.cancel()
        return {"opened": opened, "heard": heard}


def test_service_can_be_called_by_what_reflection_says_of_it() -> None:
    """Services, methods and messages are found by name and used: a request, and a stream in both directions."""

    async def test(running: Running) -> None:
        found = await asyncio.to_thread(explored, running.port)
        assert found["opened"]["sessionId"] == running.session.id
        first, created, error = found["heard"]
        assert first["opened"]["sessionId"] == running.session.id
        assert json.loads(created["event"]["json"])["type"] == "session.created"
        assert json.loads(error["event"]["json"])["error"]["code"] == "invalid_event"

    against(test)
