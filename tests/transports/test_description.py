"""What ``/openapi.json`` says is what the routes do."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import jsonschema
import pytest

from tests.transports.asking import Asked, asking
from tests.transports.running import build
from tests.transports.test_media import encoded, tone

Ask = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]
HI = {"messages": [{"role": "user", "content": "hi"}]}
OFFER = "v=0\r\n"
FILE = {"file": ("a.wav", encoded("wav", "pcm_s16le", tone(0.5)))}
TRANSCRIPTIONS = "/v1/audio/transcriptions"
CHAT = "/v1/chat/completions"


def post(path: str, **how: Any) -> Ask:
    return lambda client: client.post(path, **how)


def get(path: str) -> Ask:
    return lambda client: client.get(path)


async def opened(client: httpx.AsyncClient) -> dict[str, str]:
    """Opens a session; returns its id and the headers that it is spoken to with."""
    made = (await client.post("/v1/sessions", json={})).json()
    return {"id": made["id"], "chorale-session-secret": made["secret"]}


async def shown(client: httpx.AsyncClient) -> httpx.Response:
    session = await opened(client)
    return await client.get(f"/v1/sessions/{session.pop('id')}", headers=session)


async def ended(client: httpx.AsyncClient) -> httpx.Response:
    session = await opened(client)
    return await client.delete(f"/v1/sessions/{session.pop('id')}", headers=session)


async def said(client: httpx.AsyncClient) -> httpx.Response:
    session = await opened(client)
    event = {"type": "response.create"}
    return await client.post(f"/v1/sessions/{session.pop('id')}/events", headers=session, json=[event])


async def hung_up(client: httpx.AsyncClient) -> httpx.Response:
    call = await client.post("/v1/realtime/calls", content=OFFER, headers={"content-type": "application/sdp"})
    return await client.post(f"{call.headers['location']}/hangup")


ASKED: list[tuple[str, str, int, Ask]] = [
    ("get", "/v1/models", 200, get("/v1/models")),
    ("get", "/v1/models/{name}", 200, get("/v1/models/words")),
    ("get", "/v1/models/{name}", 404, get("/v1/models/none")),
    ("post", CHAT, 200, post(CHAT, json=HI)),
    ("post", CHAT, 200, post(CHAT, json={**HI, "stream": True})),
    ("post", CHAT, 400, post(CHAT, json={**HI, "n": 2})),
    ("post", CHAT, 400, post(CHAT, json={"messages": 5})),
    ("post", CHAT, 415, post(CHAT, content="x", headers={"content-type": "text/plain"})),
    ("post", CHAT, 415, post(CHAT, content=json.dumps(HI))),
    ("post", "/v1/embeddings", 200, post("/v1/embeddings", json={"input": ["a", "b"]})),
    (
        "post",
        "/v1/embeddings",
        200,
        post("/v1/embeddings", json={"input": "a", "encoding_format": "base64"}),
    ),
    ("post", "/v1/audio/speech", 200, post("/v1/audio/speech", json={"input": "Hello."})),
    (
        "post",
        "/v1/audio/speech",
        200,
        post("/v1/audio/speech", json={"input": "Hello.", "stream_format": "sse"}),
    ),
    *(
        ("post", TRANSCRIPTIONS, 200, post(TRANSCRIPTIONS, files=FILE, data={"response_format": format}))
        for format in ("json", "text", "srt", "vtt", "verbose_json")
    ),
    (
        "post",
        TRANSCRIPTIONS,
        200,
        post(
            TRANSCRIPTIONS,
            files=FILE,
            data={"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]},
        ),
    ),
    ("post", TRANSCRIPTIONS, 200, post(TRANSCRIPTIONS, files=FILE, data={"stream": "true"})),
    ("post", TRANSCRIPTIONS, 400, post(TRANSCRIPTIONS, files={"file": b"no sound"})),
    ("post", TRANSCRIPTIONS, 415, post(TRANSCRIPTIONS, json={})),
    ("get", "/v1/realtime", 426, get("/v1/realtime")),
    ("post", "/v1/realtime/client_secrets", 200, post("/v1/realtime/client_secrets", json={})),
    (
        "post",
        "/v1/realtime/calls",
        201,
        post("/v1/realtime/calls", content=OFFER, headers={"content-type": "application/sdp"}),
    ),
    ("post", "/v1/realtime/calls", 415, post("/v1/realtime/calls", json={})),
    ("post", "/v1/realtime/calls/{call_id}/hangup", 200, hung_up),
    ("post", "/v1/realtime/calls/{call_id}/hangup", 404, post("/v1/realtime/calls/none/hangup")),
    ("get", "/healthz", 200, get("/healthz")),
    ("get", "/readyz", 200, get("/readyz")),
    ("post", "/v1/sessions", 201, post("/v1/sessions", json={})),
    ("get", "/v1/sessions/{session_id}", 200, shown),
    ("get", "/v1/sessions/{session_id}", 404, get("/v1/sessions/none")),
    ("delete", "/v1/sessions/{session_id}", 204, ended),
    ("post", "/v1/sessions/{session_id}/events", 202, said),
    ("get", "/v1/sessions/{session_id}/events", 404, get("/v1/sessions/none/events")),
]


@pytest.mark.parametrize(
    ("method", "path", "status", "ask"), ASKED, ids=[f"{one[0]} {one[1]} {one[2]}" for one in ASKED]
)
def test_answers_are_as_they_are_described(method: str, path: str, status: int, ask: Ask) -> None:
    """The status, the media type, and every JSON body by its schema."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            described = (await client.get("/openapi.json")).json()
            answer = await ask(client)
        assert answer.status_code == status
        told = described["paths"][path][method]["responses"][str(status)]
        kind = answer.headers.get("content-type", "").partition(";")[0]
        assert kind in told["content"] if "content" in told else not answer.content
        if kind == "application/json":
            schema = {**told["content"][kind]["schema"], "components": described["components"]}
            jsonschema.Draft202012Validator(schema).validate(answer.json())

    asking(test)


def test_every_route_of_the_api_is_described_and_asked_here() -> None:
    """Nothing is said that no test has seen, and no route answers 422: what is wrong with a body is 400 everywhere."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            described = (await client.get("/openapi.json")).json()
        operations = {
            (method, path): operation
            for path, methods in described["paths"].items()
            for method, operation in methods.items()
        }
        events = ("get", "/v1/sessions/{session_id}/events")
        assert {(method, path) for method, path, status, _ in ASKED if status < 300} | {
            events,
            ("get", "/v1/realtime"),
        } == set(operations)
        for (method, path), operation in operations.items():
            assert "422" not in operation["responses"], path
            if method == "post" and "hangup" not in path:
                assert operation["requestBody"]["content"], path
            if "/v1/" in path and path != "/v1/realtime":
                error = operation["responses"]["401"]["content"]["application/json"]["schema"]
                assert error == {"$ref": "#/components/schemas/ErrorBody"}
        for status in ("400", "404", "413", "429", "503", "504"):
            assert status in operations["post", CHAT]["responses"]
        form = operations["post", TRANSCRIPTIONS]["requestBody"]["content"]
        assert list(form) == ["multipart/form-data"]
        assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
        unknown = [ref for ref in _refs(described) if ref not in described["components"]["schemas"]]
        assert unknown == []

    asking(test)


def _refs(told: Any) -> list[str]:
    """Returns the names of all schemas that are referred to."""
    if isinstance(told, dict):
        here = [told["$ref"].rpartition("/")[2]] if isinstance(told.get("$ref"), str) else []
        return here + [ref for one in told.values() for ref in _refs(one)]
    return [ref for one in told for ref in _refs(one)] if isinstance(told, list) else []


def test_server_without_requests_describes_none() -> None:
    """Where there is nobody to do the work there are no such routes."""

    async def main() -> None:
        async with build().client() as client:
            described = (await client.get("/openapi.json")).json()
        assert not [path for path in described["paths"] if "chat" in path or "audio" in path]
        assert "/v1/realtime/calls" in described["paths"]
        json.dumps(described)

    asyncio.run(main())
