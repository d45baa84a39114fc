"""What is secret leaves a whole server by no door: not in its log, its telemetry, its recordings or its answers."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
from websockets.asyncio.client import connect

from orchestrator.app import Application
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from tests.configs.scraped import ask
from tests.telemetry.collector import collecting
from tests.test_app import readiness, running
from tests.transports.test_no_secrets import log

__all__ = ["log"]

MARK = "Xq3MARKEDyV"
KEY = f"sk-{MARK}-0123456789"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STRAY = {"Cookie": f"id={MARK}", "X-Api-Key": MARK, "traceparent": TRACE, "tracestate": f"v={MARK}"}
OPENAI = {
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3},
    "/v1/embeddings": {"model": "m", "input": "hi"},
    "/v1/audio/speech": {"model": "m", "voice": "v", "input": "hi"},
}


async def over_http(port: int, key: str, answers: list[str]) -> list[str]:
    """Asks at every address with this key, and returns the secrets that were given."""
    found: list[str] = []
    bearer = {"Authorization": f"Bearer {key}", **STRAY}
    asked = f"?secret={MARK}&api_key={MARK}&key={MARK}"
    url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=url, headers=bearer, trust_env=False) as client:
        for path, body in OPENAI.items():
            answer = await client.post(path + asked, json=body)
            answers.append(answer.text + str(answer.headers))
        encoded = f"/v1/models/x%3Fsecret%3D{MARK}"  # a client's mistake
        for path in ("/v1/models", "/openapi.json", "/metrics", "/v1/nowhere", encoded):
            answer = await client.get(path + asked)
            answers.append(answer.text)
        files = {"file": ("a.wav", b"none")}
        path = "/v1/audio/transcriptions" + asked
        answers.append((await client.post(path, files=files, data={"model": "m"})).text)
        answers.append((await client.post("/v1/sessions/sess_x/events" + asked, json={"type": "x"})).text)
        answers.append((await client.post("/chorale.v1.Sessions/Get" + asked, json={"secret": MARK})).text)
        made = await client.post("/v1/realtime/client_secrets", json={"session": {"type": "realtime"}})
        opened = await client.post("/v1/sessions")
        if made.status_code == 200:
            session = opened.json()
            found += [made.json()["value"], session["secret"]]
            shown = {"Chorale-Session-Secret": session["secret"]}
            path = f"/v1/sessions/{session['id']}"
            answers.append((await client.get(path, headers=shown)).text.replace(session["secret"], ""))
            said = {"type": "session.update", "session": {"type": "realtime", "instructions": 7}}
            answers.append((await client.post(path + "/events", headers=shown, json=said)).text)
            reader = httpx.AsyncClient(base_url=url, trust_env=False)
            async with reader, reader.stream("GET", f"{path}/events?secret={session['secret']}") as stream:
                assert stream.status_code == 200
                await anext(stream.aiter_bytes())
            assert (await client.delete(path, headers=shown)).status_code == 204
    return found


async def over_grpc(port: int, key: str, answers: list[str]) -> list[str]:
    """Opens a session with this key, watches it and comes back with a wrong secret."""
    metadata = (("authorization", f"Bearer {key}"), ("x-api-key", MARK), ("traceparent", TRACE))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated
        try:
            opened = await stub.Create(pb.CreateRequest(), metadata=metadata)
            watch = stub.Watch(
                pb.WatchRequest(session_id=opened.session_id, secret=opened.secret), metadata=metadata
            )
            await watch.read()
            watch.cancel()
            secret = str(opened.secret)
            await stub.Get(pb.GetRequest(session_id=opened.session_id, secret=MARK), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            answers.append(f"{error.details()} {error.trailing_metadata()}")
            return [secret] if error.code() is grpc.StatusCode.NOT_FOUND else []
    raise AssertionError("a wrong secret was taken")


def test_no_secret_leaves_the_server(tmp_path: Path, log: Callable[[], str]) -> None:
    """Keys, client secrets and session secrets that were shown or given at every door: spans, metrics, recordings, log
    lines at `debug` and answers have none of them, nor what else stood in headers and queries."""
    file, folder = tmp_path / "keys.yaml", tmp_path / "recordings"
    file.write_text(f"keys:\n- {{key: {KEY}, tenant: acme}}\n")
    answers: list[str] = []
    given: list[str] = []

    with collecting() as collector:

        async def test(application: Application, port: int) -> None:
            await readiness(port, lambda answer: answer.status_code == 200)
            assert application.grpc_port is not None
            for key in (KEY, f"{MARK}-wrong", f"ek_{MARK}" + "A" * 93):
                given.extend(await over_http(port, key, answers))
                given.extend(await over_grpc(application.grpc_port, key, answers))
            headers = {"Authorization": f"Bearer {KEY}", **STRAY}
            url = f"ws://127.0.0.1:{port}/v1/realtime?model=m&secret={MARK}"
            async with connect(url, additional_headers=headers, proxy=None) as link:
                assert link.response is not None
                given.append(link.response.headers["Chorale-Session-Secret"])
                assert (await ask(link, "hello"))["status"] == "completed"
            while b"chorale.turn" not in collector.bodies:  # noqa: ASYNC110 - a thread takes them
                await asyncio.sleep(0.02)

        running(
            test,
            {
                "CHORALE_SERVER__KEY_FILE": str(file),
                "CHORALE_SERVER__GRPC": "{port: 0}",
                "CHORALE_RECORDING__DIR": str(folder),
                "CHORALE_RECORDING__ENABLED": "true",
                "CHORALE_TELEMETRY__OTLP_ENDPOINT": collector.endpoint,
                "CHORALE_TELEMETRY__OTLP_HEADERS": json.dumps({"authorization": f"Bearer {MARK}"}),
                "CHORALE_TELEMETRY__EXPORT_EVERY_S": "0.1",
            },
        )
    assert len(given) == 4
    recorded = b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())
    assert recorded
    secrets = [MARK, *(one[3:] for one in given)]
    written = {
        "log": log(),
        "telemetry": collector.bodies.decode("latin-1"),
        "recordings": recorded.decode("latin-1"),
        "answers": "".join(answers),
    }
    for where, text in written.items():
        for secret in secrets:
            assert secret not in text, (where, text[max(0, text.index(secret) - 200) :][:400])
            assert base64.b64encode(secret.encode()).decode() not in text, where
