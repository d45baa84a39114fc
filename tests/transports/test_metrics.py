"""`/metrics`, what telemetry is told of each request, and whose trace a session belongs to."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx
import pytest

from orchestrator.observability.instrument import RequestRecord
from orchestrator.transports.routes import WorkerCondition
from tests.transports.running import House, Running, against, build
from tests.transports.test_http import ACME, CALLS, OFFER, RING, SDP, SECRETS, error_of, with_client

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class FakeMetrics:
    content_type = "text/plain; version=0.0.4"

    async def text(self) -> bytes:
        return b"chorale_sessions 3.0\n"


class Told:
    """Remembers what it is told of requests."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self.active: Counter[str] = Counter()

    def began(self, method: str, scheme: str) -> None:
        self.active[method] += 1

    def request(self, record: RequestRecord) -> None:
        self.active[record.method] -= 1
        self.records.append(record)


def test_metrics_are_served_as_prometheus_reads_them() -> None:
    """The text as it is made, its content type exactly, and never from a cache."""

    async def test(_: House, client: httpx.AsyncClient) -> None:
        answer = await client.get("/metrics")
        assert answer.status_code == 200
        assert answer.content == b"chorale_sessions 3.0\n"
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"
        assert answer.headers["Cache-Control"] == "no-store"

    with_client(test, lambda: build(metrics=FakeMetrics()))


def test_metrics_need_a_key_where_keys_are_needed() -> None:
    """Nobody without one reads them, and no client secret, which is in a browser's hands."""

    async def test(_: House, client: httpx.AsyncClient) -> None:
        refused = await client.get("/metrics")
        assert (refused.status_code, error_of(refused)["code"]) == (401, "invalid_api_key")
        secret = (await client.post(SECRETS, headers=ACME)).json()["value"]
        refused = await client.get("/metrics", headers={"Authorization": f"Bearer {secret}"})
        assert (refused.status_code, error_of(refused)["code"]) == (403, "insufficient_permissions")
        assert (await client.get("/metrics", headers=ACME)).status_code == 200

    with_client(test, lambda: build(RING, metrics=FakeMetrics()))


def test_without_metrics_there_is_no_such_address() -> None:
    """404, as for anything else that is not there."""

    async def test(_: House, client: httpx.AsyncClient) -> None:
        assert (await client.get("/metrics")).status_code == 404

    with_client(test, build)


def test_border_tells_of_every_request_by_its_route() -> None:
    """The pattern and never the path, which holds identities; what no route matches has none; refusals count."""
    told = Told()

    async def test(house: House, client: httpx.AsyncClient) -> None:
        await client.post(CALLS, content=OFFER, headers=SDP)
        await client.post(f"{CALLS}/rtc_nobody/hangup")
        await client.get("/no/such/place")
        await client.get("/healthz", headers={"Host": "evil.example"})
        house.readiness.workers = [WorkerCondition("asr", "loading", False)]
        await client.get("/readyz")

    with_client(test, lambda: build(requests=told))
    assert [(one.method, one.route, one.status, one.error) for one in told.records] == [
        ("POST", CALLS, 201, ""),
        ("POST", CALLS + "/{call_id}/hangup", 404, ""),
        ("GET", "", 404, ""),
        ("GET", "", 421, ""),
        ("GET", "/readyz", 503, "503"),
    ]
    assert not any(told.active.values())
    assert {(one.scheme, one.version) for one in told.records} == {("http", "1.1")}


def test_border_tells_of_a_request_that_broke() -> None:
    """A fault of our own is an error, and the request is over."""
    told = Told()

    async def test(house: House, client: httpx.AsyncClient) -> None:
        house.calls.error = RuntimeError("broken")
        await client.post(CALLS, content=OFFER, headers=SDP)

    with_client(test, lambda: build(requests=told))
    assert [(one.status, one.error) for one in told.records] == [(500, "500")]
    assert not any(told.active.values())


def test_border_counts_a_request_while_it_is_answered() -> None:
    """Until its answer is made it is one of the active ones."""
    told = Told()
    seen: list[int] = []

    class Watching(FakeMetrics):
        async def text(self) -> bytes:
            seen.append(told.active["GET"])
            return b""

    async def test(_: House, client: httpx.AsyncClient) -> None:
        await asyncio.gather(client.get("/metrics"), client.get("/metrics"))

    with_client(test, lambda: build(metrics=Watching(), requests=told))
    assert max(seen) >= 1
    assert told.active["GET"] == 0


def test_a_call_belongs_to_its_clients_trace() -> None:
    """The header goes with what is asked for; without one there is none."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        await client.post(CALLS, content=OFFER, headers={**SDP, "traceparent": PARENT})
        await client.post(CALLS, content=OFFER, headers=SDP)
        asked = [call.request.traceparent for call in house.directory.calls.values()]
        assert asked == [PARENT, None]

    with_client(test, build)


@pytest.mark.parametrize("header", [PARENT, None])
def test_a_websocket_belongs_to_its_clients_trace(header: str | None) -> None:
    """The header of its upgrade goes with the session that it opens."""

    async def test(running: Running) -> None:
        headers = {} if header is None else {"traceparent": header}
        async with running.connect(**headers):
            (session,) = running.house.directory.sessions
            assert session.request.traceparent == header

    against(test)


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/v1/realtime", "/nowhere"])
def test_head_is_answered_like_get_without_a_body(path: str) -> None:
    """Same status, same type and length of what GET would bring, and nothing after the headers."""

    async def test(running: Running) -> None:
        heads, bodies = {}, {}
        for method in ("GET", "HEAD"):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            ask = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            writer.write(ask.encode())
            head, _, bodies[method] = (await reader.read()).partition(b"\r\n\r\n")
            heads[method] = [line for line in head.splitlines() if not line.lower().startswith(b"date:")]
            writer.close()
        assert heads["HEAD"] == heads["GET"]
        assert bodies["GET"]
        assert bodies["HEAD"] == b""

    against(test, lambda: build(metrics=FakeMetrics()))


def test_head_of_the_page_is_answered_like_get(tmp_path: Path) -> None:
    """A page's files too, as any server's."""
    (tmp_path / "index.html").write_text("<!doctype html>")

    async def test(_: House, client: httpx.AsyncClient) -> None:
        assert (await client.head("/")).status_code == 200

    with_client(test, lambda: build(page=tmp_path))
