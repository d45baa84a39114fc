"""Who sends JSON is known before any of it is read, and what is in it is counted before it is unpacked."""

from collections.abc import AsyncIterator

import httpx
import pytest

from orchestrator.transports.sessions_http import SESSIONS
from orchestrator.wire.limits import MAX_VALUES
from tests.transports.asking import Asked, asking
from tests.transports.running import House
from tests.transports.test_http import LAB, SECRETS, error_of, keyed, with_client

JSON = {"Content-Type": "application/json"}
MANY = b'{"session": {"x": [' + b"{}," * (MAX_VALUES + 1_024) + b"{}]}}"


@pytest.mark.parametrize("path", [SESSIONS, SECRETS])
def test_body_of_a_stranger_is_not_read(path: str) -> None:
    """401, with all of it still to come."""

    async def test(_: House, client: httpx.AsyncClient) -> None:
        read = False

        async def body() -> AsyncIterator[bytes]:
            nonlocal read
            read = True
            yield MANY

        answer = await client.post(path, content=body(), headers=JSON)
        assert (answer.status_code, read) == (401, False)

    with_client(test, keyed)


@pytest.mark.parametrize("path", [SESSIONS, SECRETS])
def test_body_of_too_many_values_is_not_unpacked(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 before the framework has its turn."""

    async def never(_: object) -> object:
        raise AssertionError("it was unpacked")

    monkeypatch.setattr("fastapi.Request.json", never)

    async def test(_: House, client: httpx.AsyncClient) -> None:
        answer = await client.post(path, content=MANY, headers={**LAB, **JSON})
        assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_value")
        assert f"{MAX_VALUES} values" in answer.text

    with_client(test, keyed)


def test_openai_request_of_too_many_values_is_not_unpacked() -> None:
    """The same where requests bring what is to be worked on."""

    async def test(asked: Asked) -> None:
        async with asked.http(**JSON) as client:
            answer = await client.post("/v1/chat/completions", content=MANY)
            assert answer.status_code == 400
            assert f"{MAX_VALUES} values" in answer.text

    asking(test)
