"""The HTTP side: calls, client secrets, health, CORS, and one shape for every error."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from orchestrator.errors import Overloaded, WireError, WorkerFailed
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import MAX_INITIAL_BYTES, Key, KeyRing, Principal, digest_of
from orchestrator.transports.border import MAX_BODY_BYTES
from tests.transports.running import House, build

RING = KeyRing(
    [
        Key(digest_of("sk-acme"), Principal("acme", Tier.PLATINUM, ("https://app.example.com",))),
        Key(digest_of("sk-lab"), Principal("lab", Tier.SILVER)),
    ]
)
ACME = {"Authorization": "Bearer sk-acme"}
LAB = {"Authorization": "Bearer sk-lab"}
SDP = {"Content-Type": "application/sdp"}
OFFER = "v=0\r\noffer\r\n"
CALLS = "/v1/realtime/calls"
SECRETS = "/v1/realtime/client_secrets"


def with_client(
    test: Callable[[House, httpx.AsyncClient], Awaitable[None]], house: Callable[[], House]
) -> None:
    async def main() -> None:
        made = house()
        async with asyncio.timeout(120), made.client() as client:
            await test(made, client)

    asyncio.run(main())


def keyed() -> House:
    return build(RING)


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The error of an answer, which has exactly the protocol's fields."""
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    error: dict[str, Any] = body["error"]
    return error


def test_call_is_answered_with_its_address() -> None:
    """An SDP offer brings 201, the answer as SDP, and the call's id at the end of Location."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        answer = await client.post(f"{CALLS}?model=m1", content=OFFER, headers={**SDP, **LAB})
        assert answer.status_code == 201
        assert answer.headers["Content-Type"].startswith("application/sdp")
        assert answer.text == "v=0\r\nanswer\r\n"
        call_id = answer.headers["Location"].rsplit("/", 1)[1]
        request = house.directory.calls[call_id].request
        assert answer.headers["Location"] == f"{CALLS}/{call_id}"
        assert (request.tenant, request.tier, request.model, request.initial) == (
            "lab",
            Tier.SILVER,
            "m1",
            None,
        )
        assert house.calls.offers == [OFFER]

    with_client(test, keyed)


@pytest.mark.parametrize("named", [True, False])
def test_call_takes_a_form_with_offer_and_session(named: bool) -> None:
    """Parts may come with or without a file name; the session part configures the call."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session = '{"type":"realtime","instructions":"hi"}'
        form = {
            "sdp": ("a.sdp" if named else None, OFFER, "application/sdp"),
            "session": ("s.json" if named else None, session, "application/json"),
        }
        answer = await client.post(CALLS, files=form, headers=LAB)
        assert answer.status_code == 201
        assert house.calls.offers == [OFFER]
        assert house.directory.sessions[0].view.instructions == "hi"

    with_client(test, keyed)


def test_call_made_with_a_secret_lays_its_session_over_the_secrets_own() -> None:
    """The secret configures, the call's part wins field by field."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        stored = {
            "type": "realtime",
            "instructions": "one",
            "audio": {"output": {"voice": "v1", "speed": 1.2}},
        }
        made = (await client.post(SECRETS, json={"session": stored}, headers=LAB)).json()
        part = json.dumps({"type": "realtime", "audio": {"output": {"voice": "v2", "speed": None}}})
        form = {"sdp": (None, OFFER), "session": (None, part)}
        answer = await client.post(CALLS, files=form, headers={"Authorization": f"Bearer {made['value']}"})
        assert answer.status_code == 201
        view = house.directory.sessions[0].view
        assert (view.instructions, view.audio.output.voice, view.audio.output.speed) == ("one", "v2", 1.2)

    with_client(test, keyed)


@pytest.mark.parametrize(
    ("headers", "content", "status", "param"),
    [
        ({"Content-Type": "application/sdp"}, b"", 400, "sdp"),
        ({"Content-Type": "application/sdp"}, b"hello", 400, "sdp"),
        ({"Content-Type": "application/sdp"}, b"\xff\xfe", 400, "sdp"),
        ({"Content-Type": "text/plain"}, b"v=0", 415, None),
        ({}, b"v=0", 415, None),
        ({"Content-Type": "multipart/form-data"}, b"v=0", 400, None),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x\r\n\r\nv=0\r\n--x--\r\n", 400, None),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x--\r\n", 400, "sdp"),
        ({"Content-Type": "application/sdp"}, b"v=0" + b" " * MAX_BODY_BYTES, 413, None),
    ],
)
def test_call_without_a_proper_offer_is_refused(
    headers: dict[str, str], content: bytes, status: int, param: str | None
) -> None:
    """What is no offer is named; nothing of it opens a session."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        answer = await client.post(CALLS, content=content, headers={**headers, **LAB})
        assert answer.status_code == status
        assert error_of(answer)["param"] == param
        assert house.directory.sessions == []

    with_client(test, keyed)


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("utf-7", b"v=0 +2AA-"),
        ("undefined", b"v=0 \xff"),
        ("punycode", b"v=0-99999999999999"),
        ("unicode_escape", b"v=0 \\ud800"),
        ("zip", b"v=0"),
    ],
)
def test_call_form_is_read_as_utf8_whatever_it_claims(charset: str, text: bytes) -> None:
    """Python knows charsets that decode to what is no text, or fail in their own ways; none of them is used."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        form = b'--x\r\nContent-Disposition: form-data; name="sdp"\r\n\r\n' + text + b"\r\n--x--\r\n"
        headers = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}", **LAB}
        answer = await client.post(CALLS, content=form, headers=headers)
        assert answer.status_code == 201
        assert house.calls.offers == [text.decode("utf-8" if text.isascii() else "latin-1")]

    with_client(test, keyed)


@pytest.mark.parametrize(
    ("error", "status", "code", "after"),
    [
        (WireError("invalid_value", "no audio line", "sdp"), 400, "invalid_value", None),
        (Overloaded("full", 2.4), 503, "rate_limit_exceeded", "3"),
        (WorkerFailed("asr", "gone"), 503, "worker_failed", "5"),
        (RuntimeError("hunter2"), 500, "server_error", None),
    ],
)
def test_call_that_fails_says_why_in_one_shape(
    error: Exception, status: int, code: str, after: str | None
) -> None:
    """Refusals keep their code and their time to come back; what broke inside stays inside."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        house.calls.error = error
        answer = await client.post(CALLS, content=OFFER, headers=SDP)
        assert answer.status_code == status
        assert error_of(answer)["code"] == code
        assert answer.headers.get("Retry-After") == after
        assert "hunter2" not in answer.text
        assert "Traceback" not in answer.text

    with_client(test, build)


def test_call_is_hung_up_by_its_tenant_only() -> None:
    """200 with an empty body ends the call; of another tenant, or twice, there is no such call."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        made = await client.post(CALLS, content=OFFER, headers={**SDP, **LAB})
        address = f"{made.headers['Location']}/hangup"
        assert (await client.post(address, headers=ACME)).status_code == 404
        assert [session.ended for session in house.directory.sessions] == [None]
        gone = await client.post(address, headers=LAB)
        assert (gone.status_code, gone.content) == (200, b"")
        assert [session.ended for session in house.directory.sessions] == ["hung up"]
        assert (await client.post(address, headers=LAB)).status_code == 404

    with_client(test, keyed)


def test_client_secret_shows_the_effective_session() -> None:
    """Value, expiry and the whole session, as a connection made with it would start."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session = {"type": "realtime", "model": "m7", "instructions": "be brief"}
        asked = {"expires_after": {"anchor": "created_at", "seconds": 60}, "session": session}
        answer = await client.post(SECRETS, json=asked, headers=LAB)
        assert answer.status_code == 200
        body = answer.json()
        assert body["value"].startswith("ek_")
        assert isinstance(body["expires_at"], int)
        assert body["session"]["object"] == "realtime.session"
        assert body["session"]["id"].startswith("sess_")
        assert (body["session"]["instructions"], body["session"]["model"]) == ("be brief", "m7")
        assert body["session"]["expires_at"] - body["expires_at"] == 3_600 - 60
        assert house.entrance.gate.admit(body["value"], 0).tenant == "lab"

    with_client(test, keyed)


@pytest.mark.parametrize("content", [None, b"{}", b'{"session": null}'])
def test_client_secret_needs_no_body(content: bytes | None) -> None:
    """Without a session the server's own is carried."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        headers = {"Content-Type": "application/json"} if content else {}
        answer = await client.post(SECRETS, content=content, headers=headers)
        assert answer.status_code == 200
        assert answer.json()["session"]["model"] == "default-model"

    with_client(test, build)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ('{"expires_after": {"seconds": 9}}', "expires_after.seconds"),
        ('{"expires_after": {"seconds": 7201}}', "expires_after.seconds"),
        ('{"expires_after": {"anchor": "now", "seconds": 60}}', "expires_after.anchor"),
        ('{"session": 7}', "session"),
        (
            '{"session": {"type": "realtime", "audio": {"output": {"speed": 9}}}}',
            "session.audio.output.speed",
        ),
        ('{"session": {"instructions": "' + "x" * MAX_INITIAL_BYTES + '"}}', "session"),
        ("[", None),
        ('{"session": {"instructions": "\\ud800"}}', "session"),
        ('{"session": {"\\ud800": 1}}', "session"),
        ('{"session": {"tracing": ' + "[" * 9_000 + "]" * 9_000 + "}}", None),
    ],
)
def test_client_secret_names_the_field_that_is_wrong(body: str, param: str | None) -> None:
    """400 with the path of the first faulty field; no secret is made."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        answer = await client.post(SECRETS, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert error_of(answer)["param"] == param
        assert len(house.entrance.gate.secrets) == 0

    with_client(test, build)


def test_client_secret_cannot_make_another() -> None:
    """A secret that leaked from a browser cannot be prolonged."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        value = (await client.post(SECRETS, headers=LAB)).json()["value"]
        answer = await client.post(SECRETS, headers={"Authorization": f"Bearer {value}"})
        assert (answer.status_code, error_of(answer)["code"]) == (403, "insufficient_permissions")

    with_client(test, keyed)


def test_client_secrets_are_bounded_and_the_refusal_says_until_when() -> None:
    """Over the tenant's share of sessions to be kept: 429 with Retry-After. One that is kept already costs no more,
    nor does a secret without any."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        for _ in range(3):
            kept = await client.post(SECRETS, json={"session": {"type": "realtime", "instructions": "one"}})
            assert kept.status_code == 200
            assert (await client.post(SECRETS)).status_code == 200
        answer = await client.post(SECRETS, json={"session": {"type": "realtime", "instructions": "two"}})
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 600

    with_client(test, lambda: build(max_secrets=4))


def test_client_secret_for_one_use_begins_one_thing() -> None:
    """A replay is 401; a call that did not come about is no use; what no number is, is refused by name."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        made = (await client.post(SECRETS, json={"chorale": {"uses": 1}}, headers=LAB)).json()
        bearer = {**SDP, "Authorization": f"Bearer {made['value']}"}
        house.calls.error = Overloaded("all calls are taken", 1.0)
        assert (await client.post(CALLS, content=OFFER, headers=bearer)).status_code == 503
        house.calls.error = None
        first = await client.post(CALLS, content=OFFER, headers=bearer)
        assert first.status_code == 201
        replayed = await client.post(CALLS, content=OFFER, headers=bearer)
        assert (replayed.status_code, error_of(replayed)["code"]) == (401, "invalid_api_key")
        assert (await client.post(f"{first.headers['Location']}/hangup", headers=bearer)).status_code == 200
        for uses in (0, 256, "many"):
            wrong = await client.post(SECRETS, json={"chorale": {"uses": uses}}, headers=LAB)
            assert (wrong.status_code, error_of(wrong)["param"]) == (400, "chorale.uses")

    with_client(test, keyed)


def test_draining_server_refuses_what_is_new() -> None:
    """Calls and secrets: 503 with the time to come back; not ready any more, still healthy, hang-up still works."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        made = await client.post(CALLS, content=OFFER, headers=SDP)
        house.entrance.close()
        for answer in (await client.post(CALLS, content=OFFER, headers=SDP), await client.post(SECRETS)):
            assert (answer.status_code, error_of(answer)["code"]) == (503, "server_shutting_down")
            assert answer.headers["Retry-After"] == "5"
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["draining"]) == (503, True)
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.post(f"{made.headers['Location']}/hangup")).status_code == 200

    with_client(test, build)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/v1/realtime/nowhere", 404, "not_found"),
        ("GET", CALLS, 405, "method_not_allowed"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
        ("GET", "/v1/realtime", 426, "upgrade_required"),
    ],
)
def test_wrong_addresses_and_methods_are_errors_in_the_same_shape(
    method: str, path: str, status: int, code: str
) -> None:
    """Clients parse one shape, whatever they did."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        answer = await client.request(method, path)
        assert (answer.status_code, error_of(answer)["code"]) == (status, code)

    with_client(test, build)


def test_description_of_the_api_is_openapi() -> None:
    """Every route but the page's, each once; no page that explores it, and nothing secret in it."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        described = (await client.get("/openapi.json")).json()
        assert described["openapi"].startswith("3.1")
        assert {CALLS, SECRETS, "/healthz", "/readyz"} <= set(described["paths"])
        names = [one["operationId"] for path in described["paths"].values() for one in path.values()]
        assert len(names) == len(set(names))
        assert "healthz_healthz_get" in names
        assert not any("head" in path for path in described["paths"].values())
        assert "sk-" not in json.dumps(described)
        for page in ("/docs", "/redoc"):
            assert (await client.get(page)).status_code == 404

    with_client(test, keyed)
