"""Headers, paths and names that are written to become something else: more headers, other files, further requests."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.transports.page import FOLDER, read_page
from tests.security.doors import ACME, IN, OPENING, Fort, Shown, defended
from tests.security.raw import said
from tests.transports.asking import Asked, asking
from tests.transports.running import Running, against, build
from tests.transports.test_media import encoded, tone

GOOD = b"Host: localhost\r\nConnection: close\r\n"
EVIL = b"x-injected"


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/sessions/a%0d%0aX-Injected:%20yes",
        b"/v1/sessions/a%0d%0a%0d%0aHTTP/1.1%20200%20OK%0d%0a%0d%0a/events",
        b"/v1/sessions/%00/events",
        b"/v1/sessions/..%2f..%2fhealthz",
        b"/v1/models/%0d%0aX-Injected:%20yes",
        b"/v1/realtime/x%0d%0aX-Injected:%20yes",
        b"/nowhere%0d%0aX-Injected:%20yes",
        b"/web/%2e%2e/page.py",
        b"/web/..%2fpage.py",
        b"/web/../../../../../../etc/passwd",
        b"/web/..%5c..%5cpage.py",
        b"/web//etc/passwd",
        b"/web/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        b"/web/%252e%252e/page.py",
        b"/web/line.js%00.html",
        b"/%2e%2e/%2e%2e/etc/passwd",
        b"/../pyproject.toml",
        b"//evil.example/web/line.js",
        b"/web/\xff\xfe",
    ],
)
def test_path_leads_nowhere_else(path: bytes) -> None:
    """Line breaks, dots and bytes of any kind, encoded or not: one answer, 404 in the one shape (400 where it is no
    path), and nothing of it becomes a header."""

    async def test(running: Running) -> None:
        answer = await said(running.port, b"GET %b HTTP/1.1\r\n" % path + GOOD + b"\r\n")
        assert answer.statuses in ([404], [400])
        assert EVIL not in answer.head
        assert set(answer.error) == {"message", "type", "param", "code"}
        assert b"root:" not in answer.everything

    assert "/web/line.js" in read_page()
    against(test, lambda: build(page=FOLDER))


@pytest.mark.parametrize(
    "line",
    [
        b"X: a\rX-Injected: yes\r\n",
        b"X: a\x00b\r\n",
        b"X: a\r\n X-Injected: yes\r\n",
        b"X : a\r\n",
        b"X\x7fY: a\r\n",
        b": a\r\n",
        b"X-Injected\r\n",
        b"Host: evil.example\r\n",
        b"Host: localhost\x00\r\n",
        b"Origin: http://localhost\x0b\r\n",
        b"Origin: \xff\r\n",
        b"Chorale-Session-Id: a\xc4\x8d\xc4\x8aX-Injected: yes\r\n",
        b"Last-Event-ID: event_1\xe2\x80\xa8\r\n",
        b"Traceparent: 00-\xff\r\n",
        b"Authorization: Bearer \xc4\x8d\xc4\x8aX-Injected: yes\r\n",
        b"Accept-Encoding: gzip;q=\xff\r\n",
        b"Sec-WebSocket-Protocol: realtime\xc4\x8d\xc4\x8aX-Injected: yes\r\n",
        b"X-Forwarded-For: 127.0.0.1\x00\r\n",
    ],
)
@pytest.mark.parametrize("upgrades", [False, True], ids=["HTTP", "WebSocket"])
def test_header_stays_one_header(line: bytes, upgrades: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Broken lines, bytes that are none of a header's, names that fold into others: one answer, without any of it, and
    no fault of the server."""
    request = (
        b"GET /v1/realtime?model=m HTTP/1.1\r\n" + (GOOD if not upgrades else b"Host: localhost\r\n") + line
    )
    if upgrades:
        request += b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        request += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    bye = b"\x88\x80\0\0\0\0"  # a close frame, where it became a WebSocket

    async def test(running: Running) -> None:
        answer = await said(running.port, request + b"\r\n", bye if upgrades else b"")
        assert len(answer.statuses) == 1
        assert answer.statuses[0] in (101, 400, 403, 421, 426), answer.everything
        assert EVIL not in answer.head

    against(test)
    assert not [one for one in caplog.records if one.exc_info]


NEXT = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n",
        b"Content-Length: %d\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: %d\r\n",
        b"Content-Length: +%d\r\n",
        b"Content-Length: 5, %d\r\n",
        b"Content-Length : %d\r\n",
        b"Content-Length:\r\n %d\r\n",
        b"Content-Length: 0x%x\r\n",
        b"Transfer-Encoding: xchunked\r\nX: %d\r\n",
        b"Transfer-Encoding: chunked, identity\r\nX: %d\r\n",
        b"Transfer-Encoding: identity, chunked\r\nContent-Length: %d\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nX: %d\r\n",
        b"Transfer-Encoding : chunked\r\nX: %d\r\n",
        b"Transfer-Encoding:\x0bchunked\r\nContent-Length: %d\r\n",
        b"Transfer-Encoding\x00: chunked\r\nContent-Length: %d\r\n",
    ],
)
def test_body_whose_length_is_in_doubt_is_refused(lines: bytes) -> None:
    """What a proxy and this server might read differently is read by neither: one answer, and the request that is
    hidden in the body is never answered."""

    async def test(running: Running) -> None:
        hidden = b"0\r\n\r\n" + NEXT
        request = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answer = await said(running.port, request + lines % len(hidden) + b"\r\n" + hidden + NEXT)
        assert answer.statuses == [400], answer.everything
        assert running.house.directory.sessions == []

    against(test)


@pytest.mark.parametrize("size", [b"0x5", b"5 5", b"-1", b"g", b"", b"ffffffffffffffffff", b"5\x00", b"+5"])
def test_chunk_whose_length_is_none_is_refused(size: bytes) -> None:
    """Nothing behind it is taken for a request."""

    async def test(running: Running) -> None:
        request = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await said(running.port, request + size + b"\r\nhello\r\n0\r\n\r\n" + NEXT)
        assert answer.statuses == [400], answer.everything
        assert running.house.directory.sessions == []

    against(test)


def test_stranger_cannot_name_its_session_or_its_address(tmp_path: Path) -> None:
    """`Chorale-New-Session` and `X-Forwarded-For` from who is no known proxy, by every door: the session has a name of
    the server's own, and is found by its own tenant only."""
    chosen = "0123456789abcdef" * 2

    class Naming(Shown):
        def headers(self) -> dict[str, str]:
            forged = {
                "chorale-new-session": chosen,
                "x-forwarded-for": "10.0.0.1",
                "x-forwarded-proto": "https",
            }
            return {**super().headers(), **forged}

    async def test(fort: Fort) -> None:
        for name, come in OPENING.items():
            assert await come(fort, Naming(ACME)) == IN, name
        named = {"chorale-session-secret": "x", **Shown(ACME).headers()}
        assert await fort.asked("GET", f"/v1/sessions/sess_{chosen}", named) == "not found"
        registry: Any = fort.application._registry
        assert registry._sessions
        assert f"sess_{chosen}" not in registry._sessions

    defended(tmp_path, test)


@pytest.mark.parametrize(
    "name", ['../../etc/x"; x="', "a\r\nX-Injected: yes", "/etc/passwd", "\0", "a" * 5_000, "%0d%0a", "é☎"]
)
def test_name_of_an_upload_is_of_no_account(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is heard, or the form is refused; no file is written by that name, and no header is."""
    monkeypatch.chdir(tmp_path)
    sound = encoded("wav", "pcm_s16le", tone(0.3, 16_000), 16_000)
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post(
                "/v1/audio/transcriptions",
                content=head + sound + b"\r\n--b--\r\n",
                headers={"content-type": "multipart/form-data; boundary=b"},
            )
        assert answer.status_code in (200, 400), answer.text
        assert EVIL.decode() not in answer.headers

    asking(test)
    assert list(tmp_path.iterdir()) == []


def test_text_of_a_client_comes_back_as_text_only() -> None:
    """Names of models, events and items with line breaks: in JSON, in server-sent events and in errors they stay inside
    of one value."""
    evil = "a\r\n\r\nid: event_9\r\ndata: {}\r\n\r\n"

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            opened = (await client.post("/v1/sessions", json={"model": evil})).json()
            secret = {"chorale-session-secret": opened["secret"]}
            where = f"/v1/sessions/{opened['id']}/events"
            refused = await client.post(where, json={"type": evil, "event_id": evil}, headers=secret)
            assert refused.status_code == 400
            assert refused.json()["error"]["event_id"] == evil
            async with client.stream("GET", where, headers=secret) as stream:
                lines = []
                async for line in stream.aiter_lines():
                    lines.append(line)
                    if line.startswith("data: "):
                        break
        assert [line.partition(":")[0] for line in lines if line] == ["retry", "id", "event", "data"]
        assert json.loads(lines[-1].removeprefix("data: "))["session"]["model"] == evil

    against(test)
