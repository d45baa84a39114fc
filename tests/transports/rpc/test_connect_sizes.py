"""How large messages of Connect and gRPC-Web are at most, and how they are written."""

import json

import httpx
import pytest
from google.protobuf import json_format
from msgspec import structs

from orchestrator.sessions.links import LoggedEvent
from tests.transports.rpc.connecting import WAYS, Caller
from tests.transports.rpc.test_connect import each_way, leave, newest, read
from tests.transports.running import Running, against


@pytest.mark.parametrize("way", WAYS)
def test_message_that_shows_a_long_session_stays_below_a_megabyte(way: str) -> None:
    """Cut where it is more, as events are, and written so that what is no ASCII takes no more than it does."""
    sizes: list[int] = []

    async def test(running: Running, caller: Caller) -> None:
        opened = await caller.create()
        session = newest(running)
        words = '語"' * 400_000
        session.view = structs.replace(session.view, instructions=words)
        session.emit(LoggedEvent(json.dumps({"event_id": "event_1", "type": "a", "text": words}).encode()))
        shown = await caller.get(opened.session_id, opened.secret)
        messages = caller.watch(opened, after=0)
        first, _, event = await read(messages, 3)
        await leave(messages)
        for message, said in (
            (shown, json.loads(shown.session)["instructions"]),
            (first, json.loads(first.opened.session)["instructions"]),
            (event, json.loads(event.event.json)["text"]),
        ):
            assert words.startswith(said)
            assert len(said) > 100_000
            as_json = json_format.MessageToJson(message, indent=None, ensure_ascii=False)
            sizes.append(len(as_json.encode()) if "JSON" in way else message.ByteSize())

    each_way(test, way)
    assert max(sizes) <= 2**20


def test_json_is_written_as_it_is() -> None:
    """Escapes for all that is no ASCII would take twice the room."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            body = {"session": json.dumps({"type": "realtime", "instructions": "語"})}
            answer = await client.post("/chorale.v1.Sessions/Create", json=body)
            assert "語".encode() in answer.content

    against(test)
