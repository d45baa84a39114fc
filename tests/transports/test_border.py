"""Who may ask over HTTP: keys, pages of other origins, foreign names."""

import httpx
import pytest

from orchestrator.observability.instrument import RequestRecord
from orchestrator.transports.proxies import Proxies
from tests.transports.running import House, build
from tests.transports.test_http import ACME, CALLS, LAB, OFFER, SDP, SECRETS, error_of, keyed, with_client


@pytest.mark.parametrize("path", [CALLS, SECRETS, f"{CALLS}/rtc_1/hangup"])
def test_routes_need_a_key(path: str) -> None:
    """401 with the protocol's code, and nothing is cached."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        for headers in ({}, {"Authorization": "Bearer sk-nobody"}):
            answer = await client.post(path, headers=headers)
            assert (answer.status_code, error_of(answer)["code"]) == (401, "invalid_api_key")
            assert answer.headers["Cache-Control"] == "no-store"

    with_client(test, keyed)


def test_preflight_allows_what_browsers_send() -> None:
    """An allowed page may POST with key and content type, and read the call's address afterwards."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        for path in (CALLS, SECRETS):
            asked = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST"}
            answer = await client.options(path, headers=asked)
            assert answer.status_code == 204
            assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example.com"
            assert "POST" in answer.headers["Access-Control-Allow-Methods"]
            allowed = answer.headers["Access-Control-Allow-Headers"]
            for name in ("authorization", "content-type", "x-openai-agents-sdk"):
                assert name in allowed
        made = await client.post(
            CALLS, content=OFFER, headers={**SDP, **ACME, "Origin": "https://app.example.com"}
        )
        assert made.headers["Access-Control-Allow-Origin"] == "https://app.example.com"
        assert "Location" in made.headers["Access-Control-Expose-Headers"]
        assert "Origin" in made.headers["Vary"]

    with_client(test, keyed)


def test_page_of_another_origin_is_refused_and_told_nothing() -> None:
    """Also requests that need no preflight: 403, no CORS header, no session."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        evil = {"Origin": "https://evil.example"}
        preflight = await client.options(CALLS, headers={**evil, "Access-Control-Request-Method": "POST"})
        posted = await client.post(CALLS, files={"sdp": (None, OFFER)}, headers=evil)
        for answer in (preflight, posted):
            assert (answer.status_code, error_of(answer)["code"]) == (403, "origin_not_allowed")
            assert "Access-Control-Allow-Origin" not in answer.headers
        assert house.directory.sessions == []

    with_client(test, build)


def test_page_may_use_only_keys_that_allow_it() -> None:
    """A page of one key's list cannot use another key; errors are readable by allowed pages."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        page = {"Origin": "https://app.example.com"}
        other = await client.post(CALLS, content=OFFER, headers={**SDP, **LAB, **page})
        assert other.status_code == 403
        local = await client.post(
            CALLS, content=OFFER, headers={**SDP, **ACME, "Origin": "http://localhost:3000"}
        )
        assert local.status_code == 403
        unknown = await client.post(CALLS, content=OFFER, headers={**SDP, **page})
        assert unknown.status_code == 401
        assert unknown.headers["Access-Control-Allow-Origin"] == page["Origin"]

    with_client(test, keyed)


@pytest.mark.parametrize("path", ["/", "/healthz", CALLS])
def test_keyless_server_answers_to_its_own_names_only(path: str) -> None:
    """DNS rebinding: 421 for every address under a foreign name; configured names and loopback are served."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        for name in ("rebound.example", "rebound.example:8080", ""):
            answer = await client.get(path, headers={"Host": name})
            assert (answer.status_code, error_of(answer)["code"]) == (421, "host_not_allowed")
        for name in ("localhost", "127.0.0.1:8080", "[::1]:8080", "box.lan:8080"):
            assert (await client.get(path, headers={"Host": name})).status_code != 421

    with_client(test, lambda: build(hosts=("box.lan",)))


def test_keyed_server_answers_to_any_name() -> None:
    """Behind a key the name does not matter: it may stand behind any proxy."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        assert (await client.get("/healthz", headers={"Host": "talk.example.com"})).status_code == 200

    with_client(test, keyed)


def test_log_names_a_path_as_it_came(caplog: pytest.LogCaptureFixture) -> None:
    """One request is one line, whatever its path decodes to, and not a long one."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        await client.get("/%0a12:00:00%20error%20app:%20forged?secret=hunter2")
        await client.get("/" + "a" * 5_000)

    with caplog.at_level("INFO", logger="orchestrator"):
        with_client(test, keyed)
    forged, long = [record.getMessage() for record in caplog.records if "GET" in record.getMessage()]
    assert forged == "GET /%0a12:00:00%20error%20app:%20forged"
    assert len(long) < 300


class Told:
    """Remembers by which scheme requests came."""

    def __init__(self) -> None:
        self.schemes: list[str] = []

    def began(self, method: str, scheme: str) -> None:
        self.schemes.append(scheme)

    def request(self, record: RequestRecord) -> None:
        self.schemes.append(record.scheme)


def test_log_and_telemetry_name_whom_a_known_proxy_names(caplog: pytest.LogCaptureFixture) -> None:
    """The client's address and the scheme that it used, not the proxy's own; nobody else can choose them."""
    headers = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    for proxies, seen in ((Proxies(("127.0.0.1",)), ("203.0.113.7", "https")), (None, ("127.0.0.1", "http"))):
        told = Told()

        async def test(house: House, client: httpx.AsyncClient) -> None:
            caplog.clear()
            with caplog.at_level("INFO", logger="orchestrator.transports.border"):
                await client.get("/v1/realtime", headers=headers)
            (line,) = [one for one in caplog.records if one.name == "orchestrator.transports.border"]
            assert getattr(line, "client") == seen[0]  # noqa: B023, B009 - called at once; set as `extra`
            assert told.schemes == [seen[1]] * 2  # noqa: B023

        with_client(test, lambda: build(hosts=("localhost",), proxies=proxies, requests=told))  # noqa: B023
