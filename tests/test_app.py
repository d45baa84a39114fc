"""The whole server in one event loop, with engines that are scripts."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.asyncio.client import connect

from orchestrator.app import Application, CannotListen
from orchestrator.settings import load
from orchestrator.transports.server import listen

SCRIPTED = {
    "CHORALE_AUDIO__VAD__ENGINE": "scripted",
    "CHORALE_WORKERS__ASR__ENGINE": "scripted",
    "CHORALE_WORKERS__UNDERSTAND__ENGINE": "scripted",
    "CHORALE_WORKERS__LLM__ENGINE": "scripted",
    "CHORALE_WORKERS__SPEECH__ENGINE": "scripted",
}


def free_port() -> int:
    (one,) = listen("127.0.0.1", 0)
    with one:
        return int(one.getsockname()[1])


def running(
    test: Callable[[Application, int], Awaitable[None]],
    environment: dict[str, str] | None = None,
    on_ready: Callable[[str], None] = lambda _: None,
    within_s: float = 180,
) -> None:
    """Runs `test` beside a server; the server then stops in good order and leaves no task behind."""

    async def main() -> None:
        port = free_port()
        application = Application(load(None, {**SCRIPTED, **(environment or {})}, {"server.port": port}))
        async with asyncio.timeout(within_s):
            serving = asyncio.create_task(application.run(on_ready))
            try:
                await test(application, port)
            finally:
                application.stop()
                await serving
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


async def readiness(port: int, wanted: Callable[[httpx.Response], bool]) -> httpx.Response:
    """Asks until the answer is as wanted."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        while True:
            try:
                answer = await client.get("/readyz")
            except httpx.TransportError:
                await asyncio.sleep(0.02)
                continue
            if wanted(answer):
                return answer
            await asyncio.sleep(0.02)


def test_application_is_ready_once_every_worker_is() -> None:
    """Until then `/readyz` says 503 and names what is being waited for; the page is there from the start."""

    async def test(_: Application, port: int) -> None:
        waiting = await readiness(port, lambda answer: True)
        assert waiting.status_code == 503
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert (await client.get("/")).status_code == 200
        ready = await readiness(port, lambda answer: answer.status_code == 200)
        names = {worker["name"]: worker["state"] for worker in ready.json()["workers"]}
        assert names == dict.fromkeys(("asr-1", "understand-1", "llm-1", "speech-1"), "ready")

    running(test)


@pytest.mark.parametrize("compression", [True, False])
def test_application_compresses_as_it_is_told(compression: bool) -> None:
    """`server.compression` holds for HTTP as for WebSockets: the page, JSON, and what is offered to sockets."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: True)
        accepts = {"Accept-Encoding": "br"}
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, headers=accepts
        ) as client:
            for path in ("/", "/openapi.json"):
                assert ("Content-Encoding" in (await client.get(path)).headers) is compression
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            assert link.response is not None
            assert ("Sec-WebSocket-Extensions" in link.response.headers) is compression

    running(test, {"CHORALE_SERVER__COMPRESSION": str(compression).lower()})


def test_application_with_an_engine_that_cannot_start_says_why() -> None:
    """The server stays up and names the worker, the reason and the command; the other workers are ready."""

    async def test(_: Application, port: int) -> None:
        def settled(answer: httpx.Response) -> bool:
            workers = answer.json()["workers"]
            return all(one["ready"] or "parrot" in (one["reason"] or "") for one in workers)

        answer = await readiness(port, settled)
        assert answer.status_code == 503
        (broken,) = [one for one in answer.json()["workers"] if not one["ready"]]
        assert broken["name"] == "llm-1"
        assert "pip install parrot" in broken["reason"]
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            await link.send(json.dumps({"type": "response.create"}))
            while (event := json.loads(await link.recv()))["type"] != "response.done":
                pass
        assert event["response"]["status"] == "failed"
        assert "the language model is not available" in json.dumps(event)

    running(test, {"CHORALE_WORKERS__LLM__ENGINE": "tests.workers.engines:missing"})


def test_application_shows_no_stack_trace_of_a_worker_that_cannot_start() -> None:
    """`/readyz` tells the fault in one line; a session fails at once, and the process is said to be healthy."""

    async def test(_: Application, port: int) -> None:
        def settled(answer: httpx.Response) -> bool:
            return any("broken" in (one["reason"] or "") for one in answer.json()["workers"])

        answer = await readiness(port, settled)
        assert answer.status_code == 503
        (reason,) = [one["reason"] for one in answer.json()["workers"] if one["name"] == "llm-1"]
        assert reason == "RuntimeError: a library of this engine is broken"
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            await link.send(json.dumps({"type": "response.create"}))
            while (event := json.loads(await link.recv()))["type"] != "response.done":
                assert event["type"] != "error"
        assert event["response"]["status"] == "failed"
        assert "the language model is not available" in json.dumps(event)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert (await client.get("/healthz")).status_code == 200

    running(test, {"CHORALE_WORKERS__LLM__ENGINE": "tests.workers.engines:crashing"})


def test_application_whose_endpoint_comes_later_says_when_it_is_ready(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says what it waits for, answers meanwhile, and announces itself once everything is there."""
    caplog.set_level("WARNING")
    announced: asyncio.Queue[str] = asyncio.Queue()

    async def test(_: Application, port: int) -> None:
        def settled(answer: httpx.Response) -> bool:
            workers = answer.json()["workers"]
            return all(one["ready"] or "parrot" in (one["reason"] or "") for one in workers)

        await readiness(port, settled)
        (said,) = [one for one in caplog.records if "not ready yet" in one.message]
        assert vars(said)["waits_for"] == "llm-1"
        assert announced.empty()
        (tmp_path / "endpoint").touch()
        assert await announced.get() == f"http://127.0.0.1:{port}"
        assert (await readiness(port, lambda answer: True)).status_code == 200

    options = json.dumps({"folder": str(tmp_path)})
    running(
        test,
        {
            "CHORALE_WORKERS__LLM__ENGINE": "tests.workers.engines:remote",
            "CHORALE_WORKERS__LLM__OPTIONS": options,
        },
        announced.put_nowait,
    )


def test_application_without_piper_replies_in_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Piper is an extra: a server that lacks it has no voice worker and is ready all the same."""
    monkeypatch.setattr("orchestrator.settings.engines.package_folder", lambda name: None)

    async def test(_: Application, port: int) -> None:
        ready = await readiness(port, lambda answer: answer.status_code == 200)
        assert {worker["name"] for worker in ready.json()["workers"]} == {"asr-1", "understand-1", "llm-1"}
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            created = json.loads(await link.recv())
        assert created["session"]["output_modalities"] == ["text"]

    running(test, {"CHORALE_WORKERS__SPEECH__ENGINE": "piper"})


def test_application_refuses_a_taken_port_before_it_starts_anything() -> None:
    """Two servers on one port: the second says so and leaves nothing running."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: True)
        second = Application(load(None, SCRIPTED, {"server.port": port}))
        before = asyncio.all_tasks()
        with pytest.raises(CannotListen, match=str(port)):
            await second.run()
        assert asyncio.all_tasks() == before

    running(test)


def certificate(folder: Path) -> tuple[Path, Path]:
    """Writes a certificate for localhost and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key_file.write_bytes(private)
    return cert_file, key_file


def test_application_with_a_certificate_speaks_wss(tmp_path: Path) -> None:
    """`server.tls` makes the server https and wss: libraries that insist on TLS connect."""
    cert_file, key_file = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(cert_file))

    async def test(_: Application, port: int) -> None:
        url = f"wss://localhost:{port}/v1/realtime?model=m"
        while True:
            try:
                async with connect(url, ssl=trust, proxy=None) as link:
                    assert b"session.created" in await link.recv(decode=False)
                return
            except OSError:
                await asyncio.sleep(0.02)

    running(test, {"CHORALE_SERVER__TLS": f"{{cert: {cert_file}, key: {key_file}}}"})


def test_application_calls_a_tool_by_itself_where_the_model_wants_to() -> None:
    """`tool_choice: auto` with a scripted model: it calls where its script says so, answers with the tool's output, and
    speaks where no tool is called for."""
    options = '{"tool_calls": {"weather": {"name": "get_weather", "arguments": {"city": "Rome"}}}}'

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime", proxy=None) as socket:

            async def say(type: str, **fields: object) -> None:
                await socket.send(json.dumps({"type": type, **fields}))

            async def reply() -> dict[str, Any]:
                await say("response.create")
                while (event := json.loads(await socket.recv()))["type"] != "response.done":
                    assert event["type"] != "error", event
                output: dict[str, Any] = event["response"]["output"][0]
                return output

            def text(words: str) -> dict[str, Any]:
                return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}

            tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
            await say("session.update", session={"output_modalities": ["text"], "tools": [tool]})
            await say("conversation.item.create", item=text("the weather, please"))
            call = await reply()
            assert (call["type"], call["name"], call["status"]) == (
                "function_call",
                "get_weather",
                "completed",
            )
            assert json.loads(call["arguments"]) == {"city": "Rome"}
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            await say("conversation.item.create", item=output)
            assert (await reply())["content"][0]["text"] == "The result is sunny"
            await say("conversation.item.create", item=text("hello"))
            assert (await reply())["type"] == "message"

    running(test, {"CHORALE_WORKERS__LLM__OPTIONS": options})
