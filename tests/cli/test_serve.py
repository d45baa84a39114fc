"""`chorale serve` as a process: it comes up, does its work, and goes down in good order."""

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from orchestrator.cli.serve import _announce

KEY = "sk-0123456789abcdef"
PATIENCE_S = 60.0
SCRIPTED = """
server: {{port: {port}, drain_s: {drain_s}, key_file: {key_file}}}
audio: {{vad: {{engine: scripted}}}}
workers:
  asr: {{engine: scripted}}
  understand: {{engine: scripted}}
  llm: {{engine: scripted, options: {{pause_ms: {pause_ms}}}}}
  speech: null
"""
EXE = str(Path(sys.executable).with_name("chorale"))


def configuration(
    folder: Path, *, port: int = 0, drain_s: float = 30, pause_ms: int = 1, keys: bool = False
) -> Path:
    """Writes a configuration with scripted engines; `pause_ms` is how long one token of a reply takes."""
    if keys:
        (folder / "keys.yaml").write_text(f"keys: [{{key: {KEY}, tenant: acme}}]\n")
    file = folder / "chorale.yaml"
    key_file = "keys.yaml" if keys else "null"
    file.write_text(SCRIPTED.format(port=port, drain_s=drain_s, pause_ms=pause_ms, key_file=key_file))
    return file


class Serving:
    """A server process that has said that it is ready."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self.process = process
        self._log = log
        assert process.stdout is not None
        self.said = process.stdout.readline().strip()
        self.url = self.said.partition(": ")[2]
        assert self.url, self.log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def link(self, query: str = "?model=m", key: str | None = None) -> connect:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        address = self.url.replace("http", "ws", 1) + "/v1/realtime" + query
        return connect(address, additional_headers=headers, proxy=None)

    def end(self, *signals: signal.Signals) -> int:
        """Sends signals and returns the exit code."""
        for one in signals:
            self.process.send_signal(one)
        return self.process.wait(PATIENCE_S)


@contextmanager
def serving(config: Path, *options: str) -> Iterator[Serving]:
    """Runs `chorale serve`; kills it in the end if it is still there."""
    log = config.with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(
            [EXE, "serve", "--config", str(config), *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with process:
        try:
            yield Serving(process, log)
        finally:
            process.kill()


def refused(*options: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Runs `chorale serve` where it cannot come up; returns exit code and what it says."""
    result = subprocess.run(
        [EXE, "serve", *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    assert "Traceback" not in result.stderr
    return result.returncode, result.stderr


async def ask(link: ClientConnection, text: str) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    await link.send(json.dumps({"type": "conversation.item.create", "item": item}))
    await link.send(json.dumps({"type": "response.create"}))


async def until(link: ClientConnection, kind: str) -> dict[str, object]:
    """Reads on to the first event of a kind."""
    while True:
        event: dict[str, object] = json.loads(await link.recv())
        if event["type"] == kind:
            return event


async def closed(link: ClientConnection) -> int:
    try:
        while True:
            await link.recv()
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else 1006


async def draining(server: Serving) -> None:
    """Returns once the server is not ready any more, and sees that it is healthy all the same."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        while (await client.get("/readyz")).status_code == 200:
            pass
        assert (await client.get("/healthz")).status_code == 200


def test_serve_answers_and_lets_a_running_reply_finish_before_it_ends(tmp_path: Path) -> None:
    """SIGTERM in the middle of a reply: nothing new is taken, the reply comes whole, then 1001 and exit code 0."""

    async def talk(server: Serving) -> None:
        async with asyncio.timeout(PATIENCE_S), server.link() as link:
            await ask(link, "one two three four five six seven eight nine ten")
            await until(link, "response.output_text.delta")
            server.process.send_signal(signal.SIGTERM)
            await draining(server)
            with pytest.raises(InvalidStatus) as caught:
                async with server.link():
                    pass
            assert caught.value.response.status_code == 503
            done = await until(link, "response.done")
            response = done["response"]
            assert isinstance(response, dict)
            assert response["status"] == "completed"
            assert response["output"][0]["content"][0]["text"].endswith("nine ten")
            assert await closed(link) == 1001

    with serving(configuration(tmp_path, pause_ms=150)) as server:
        assert server.said.startswith("Chorale is ready: http://127.0.0.1:")
        ready = httpx.get(f"{server.url}/readyz", trust_env=False)
        assert ready.status_code == 200
        assert {worker["name"] for worker in ready.json()["workers"]} == {"asr-1", "understand-1", "llm-1"}
        asyncio.run(talk(server))
        assert server.end() == 0
        assert '"message": "stopped"' in server.log


def test_second_signal_stops_at_once(tmp_path: Path) -> None:
    """Told twice, the server does not wait for a reply of minutes: links are closed with 1001, the exit code is 0."""

    async def talk(server: Serving) -> None:
        async with asyncio.timeout(PATIENCE_S), server.link() as link:
            await ask(link, "word " * 1_000)
            await until(link, "response.output_text.delta")
            server.process.send_signal(signal.SIGTERM)
            await draining(server)
            server.process.send_signal(signal.SIGINT)
            assert await closed(link) == 1001

    with serving(configuration(tmp_path, pause_ms=1_000, drain_s=3_000)) as server:
        asyncio.run(talk(server))
        assert server.end() == 0


def test_serve_keeps_keys_and_secrets_out_of_its_log(tmp_path: Path) -> None:
    """Keys, wrong keys, session secrets and typed text are nowhere in the log, even where a request fails."""
    wrong, text, secret = "sk-wrong-0123456789", "mind the crocodile", "s3cr3t-0123456789"

    async def talk(server: Serving) -> None:
        async with asyncio.timeout(PATIENCE_S), server.link(key=KEY) as link:
            await ask(link, text)
            await until(link, "response.done")
            for key in (wrong, None):
                with pytest.raises(InvalidStatus):
                    async with server.link(f"?session_id=sess_1&secret={secret}", key):
                        pass

    with serving(configuration(tmp_path, keys=True), "--host", "127.0.0.1") as server:
        asyncio.run(talk(server))
        posted = httpx.post(f"{server.url}/v1/realtime/calls?secret={secret}", trust_env=False)
        assert posted.status_code == 401
        made = httpx.post(
            f"{server.url}/v1/realtime/client_secrets",
            headers={"Authorization": f"Bearer {KEY}"},
            trust_env=False,
        )
        assert server.end(signal.SIGTERM) == 0
        for private in (KEY, wrong, text, "crocodile", secret, made.json()["value"]):
            assert private not in server.log
        assert '"tenant": "acme"' in server.log
        assert '"message": "POST /v1/realtime/calls"' in server.log


def test_serve_refuses_a_wrong_configuration(tmp_path: Path) -> None:
    """2, with every fault; nothing is started."""
    file = tmp_path / "wrong.yaml"
    file.write_text("server: {prot: 1, drain_s: soon}\n")
    code, text = refused("--config", str(file), "--port", "99999")
    assert code == 2
    for fault in ("server.prot", "server.drain_s", "server.port (--port)"):
        assert fault in text


def test_serve_refuses_to_be_reached_without_keys(tmp_path: Path) -> None:
    """2, and how to make a key file."""
    code, text = refused("--config", str(configuration(tmp_path)), "--host", "0.0.0.0")
    assert code == 2
    assert "server.key_file" in text
    assert "keys.example.yaml" in text


def test_serve_refuses_a_bad_key_file(tmp_path: Path) -> None:
    """2, and which file."""
    config = configuration(tmp_path, keys=True)
    (tmp_path / "keys.yaml").write_text("keys: []\n")
    code, text = refused("--config", str(config))
    assert code == 2
    assert "keys.yaml" in text


def test_serve_refuses_several_processes(tmp_path: Path) -> None:
    """2, since sessions live in one process."""
    code, text = refused("--config", str(configuration(tmp_path)), environment={"WEB_CONCURRENCY": "2"})
    assert code == 2
    assert "WEB_CONCURRENCY" in text


def test_serve_names_a_missing_model_and_its_command(tmp_path: Path) -> None:
    """2: the first thing said is what to install."""
    code, text = refused("--config", str(with_ear(tmp_path, "nobody/ear")))
    assert code == 2
    assert "'nobody/ear'" in text
    assert "chorale models install --hub nobody/ear" in text


def test_serve_names_what_there_is_for_a_model_that_nobody_knows(tmp_path: Path) -> None:
    """2, and no command, which would not bring it."""
    code, text = refused("--config", str(with_ear(tmp_path, "ear")))
    assert code == 2
    assert "'ear'" in text
    assert "whisper-tiny.en" in text
    assert "chorale models install" not in text


def with_ear(folder: Path, model: str) -> Path:
    """A configuration whose recogniser is to run on this model."""
    config = configuration(folder)
    wanted = f"asr: {{engine: faster_whisper, model: {model}}}"
    config.write_text(config.read_text().replace("asr: {engine: scripted}", wanted))
    return config


def test_serve_says_that_the_port_is_taken(tmp_path: Path) -> None:
    """1, the address, and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, text = refused("--config", str(configuration(tmp_path, port=port)))
    assert code == 1
    assert f"127.0.0.1:{port}" in text
    assert "--port" in text


def test_what_was_made_before_a_server_is_ready_is_looked_through_no_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the garbage collector: a full round of it held up every call for a quarter of a second."""
    held = gc.get_freeze_count()
    try:
        _announce("http://127.0.0.1:1")
        assert gc.get_freeze_count() > held + 10_000
    finally:
        gc.unfreeze()
    assert capsys.readouterr().out == "Chorale is ready: http://127.0.0.1:1\n"
