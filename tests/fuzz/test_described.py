"""Schemathesis asks for everything that `/openapi.json` describes: what fits the description, and what does not."""

import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    CheckFunction,
    content_type_conformance,
    ignored_auth,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fuzz.serving import AUTHORIZED, keyed_server
from tests.real.serving import Served

EXAMPLES = int(os.environ.get("CHORALE_FUZZ_EXAMPLES", "0"))
"""0: the same few each time; else so many new ones."""

GONE_WITHIN_S = 200
"""Nobody is waited for longer, on however slow a machine."""

ALL = (
    ("/v1/realtime", "get"),
    ("/v1/realtime/client_secrets", "post"),
    ("/v1/realtime/calls", "post"),
    ("/v1/realtime/calls/{call_id}/hangup", "post"),
    ("/v1/sessions", "post"),
    ("/v1/sessions/{session_id}", "get"),
    ("/v1/sessions/{session_id}", "delete"),
    ("/v1/sessions/{session_id}/events", "get"),
    ("/v1/sessions/{session_id}/events", "post"),
    ("/v1/chat/completions", "post"),
    ("/v1/embeddings", "post"),
    ("/v1/audio/transcriptions", "post"),
    ("/v1/audio/speech", "post"),
    ("/v1/models", "get"),
    ("/v1/models/{name}", "get"),
    ("/healthz", "get"),
    ("/readyz", "get"),
    ("/metrics", "get"),
)
CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    ignored_auth,
]
NOT_OF: dict[tuple[str, str], tuple[CheckFunction, ...]] = {
    ("/readyz", "get"): (not_a_server_error,),
    ("/v1/sessions/{session_id}/events", "get"): (ignored_auth,),
}
"""503 of the first is told, not suffered; to the second a session's secret opens without a key."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    with keyed_server(folder) as server:
        yield server
    log = (folder / "server.log").read_text()
    assert "Traceback" not in log
    assert not re.search(r'"level": ?"(error|critical)"', log)


@pytest.fixture(scope="module")
def schema(server: Served) -> Any:
    """Typed loosely: what Schemathesis returns for OpenAPI has operations by path and method, which its base lacks."""
    found: Any = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    found.config.max_stream_events = 1  # the first says that the session is there; a stream has no end
    return found


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=AUTHORIZED, trust_env=False, timeout=60) as client:
        yield client


def opened(client: httpx.Client) -> dict[str, str]:
    answer = client.post("/v1/sessions", json={"session": {"output_modalities": ["text"]}})
    found: dict[str, str] = answer.json()
    return found


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda one: one.name)
@pytest.mark.parametrize(("path", "method"), ALL, ids=[f"{method} {path}" for path, method in ALL])
def test_what_is_described_is_answered_as_described(
    path: str, method: str, mode: GenerationMode, schema: Any, server: Served, client: httpx.Client
) -> None:
    """No fault of the server, the status, type and shape that the description promises, and nothing without a key.
    Every other request about a session is about one that there is, with its secret."""
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.headers):
        pytest.skip("there is nothing to get wrong")
    count = 0

    @settings(
        max_examples=EXAMPLES or 8,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),  # a request that failed is told as it was, not asked again
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        nonlocal count
        count += 1
        if count % 2 and "session_id" in case.path_parameters:
            session = opened(client)
            case.path_parameters["session_id"] = session["id"]
            case.headers["Chorale-Session-Secret"] = session["secret"]
        checks = [one for one in CHECKS if one not in NOT_OF.get((path, method), ())]
        case.call_and_validate(base_url=server.url, headers=AUTHORIZED, checks=checks, timeout=60)

    ask()
    assert client.get("/readyz").status_code == 200


def test_every_operation_is_asked_for(client: httpx.Client) -> None:
    """The description holds what is tested here, and nothing more."""
    described = client.get("/openapi.json").json()
    found = {(path, method) for path, operations in described["paths"].items() for method in operations}
    assert found == set(ALL)
    assert "HTTPValidationError" not in json.dumps(described)


def test_description_says_where_a_key_is_needed(client: httpx.Client) -> None:
    """Everywhere but at what says how the server is; Schemathesis can only try what is described."""
    described = client.get("/openapi.json").json()
    assert described["security"] == [{"key": []}]
    open_to_all = {
        path
        for path, operations in described["paths"].items()
        for operation in operations.values()
        if operation.get("security") == []
    }
    assert open_to_all == {"/v1/realtime", "/healthz", "/readyz"}


def test_server_holds_no_more_than_before(server: Served, client: httpx.Client) -> None:
    """After sessions that nobody came for, broken bodies and connections that break off: no more open files, and a
    session that is opened then still answers."""

    def files() -> int:
        return len(os.listdir(f"/proc/{server.pid}/fd"))

    def lasting() -> int:
        """What stays when everybody has left."""
        found, now = -1, files()
        while now != found:
            time.sleep(1)  # sessions and idle connections end in seconds
            found, now = now, files()
        return now

    def misbehave(times: int) -> None:
        for number in range(times):
            opened(client)
            client.post(f"/v1/sessions/sess_{number}/events", content=b"{" * number)
            with socket.create_connection(("127.0.0.1", httpx.URL(server.url).port or 0)) as half:
                half.sendall(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")

    misbehave(3)  # what is made for the first, and kept, is made
    before = lasting()
    misbehave(100)
    until_s = time.monotonic() + GONE_WITHIN_S
    while (now := lasting()) > before:
        assert time.monotonic() < until_s, (before, now)
    session = opened(client)
    secret = {"Chorale-Session-Secret": session["secret"]}
    said = client.post(
        f"/v1/sessions/{session['id']}/events", json=[{"type": "response.create"}], headers=secret
    )
    assert said.status_code == 202
