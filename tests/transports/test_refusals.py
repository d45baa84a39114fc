"""What a request is told that could not even be looked at: its method, or its body as a whole."""

import httpx
import pytest

from tests.transports.running import House, build
from tests.transports.test_http import error_of, with_client

SESSIONS = "/v1/sessions"


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        (SESSIONS, "POST"),
        (f"{SESSIONS}/x", "DELETE, GET"),
        (f"{SESSIONS}/x/events", "GET, POST"),
        ("/healthz", "GET, HEAD"),
    ],
)
def test_wrong_method_is_told_all_that_the_address_takes(path: str, taken: str) -> None:
    """In `Allow` and in words: of every route at this address, not of the first alone."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        answer = await client.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, taken)
        assert error_of(answer)["message"] == f"Methods that this address takes: {taken}."

    with_client(test, build)


@pytest.mark.parametrize(
    ("content_type", "is_named"),
    [
        ("application/json", False),
        ("application/json; charset=utf-8", False),
        ("application/vnd.api+json", False),
        ("application/x-www-form-urlencoded", True),
        ("text/plain", True),
        ("", True),
    ],
)
def test_body_that_is_no_object_is_told_what_is_expected(content_type: str, is_named: bool) -> None:
    """400; a body that is not said to be JSON, as `curl -d` says none, is told the header that says so."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        content = b"[1]" if not is_named else b'{"model": "m"}'
        answer = await client.post(SESSIONS, content=content, headers={"Content-Type": content_type})
        error = error_of(answer)
        assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_type", None)
        assert "JSON object" in error["message"]
        assert ("Content-Type: application/json" in error["message"]) == is_named
        assert not house.directory.sessions

    with_client(test, build)
