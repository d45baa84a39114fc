"""Workers of a real server die or stall in the middle of a spoken turn, while another session talks on."""

import asyncio
import base64
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from modalities.adapters.registry import build
from modalities.audio.resample import Resampler
from orchestrator.clients.text_socket import RealtimeSocket
from tests.real.serving import Served, served
from tests.workers.house import is_alive

pytestmark = pytest.mark.real

PATIENCE_S = 120
Event = dict[str, Any]

STAGES = {
    "asr": "input_audio_buffer.committed",
    "understand": "conversation.item.input_audio_transcription.completed",
    "llm": "response.output_audio_transcript.delta",
    "speech": "response.output_audio.delta",
}
"""The event behind which a worker of a kind is at work."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of its own, since what is done to it here would disturb other tests; on a machine as good as new: no
    caches, and a hub that may be asked and cannot be reached."""
    folder = tmp_path_factory.mktemp("crashes")
    nowhere = "http://127.0.0.1:9"
    fresh = {"HOME": str(folder), "HF_HUB_OFFLINE": "0", "HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere}
    caches = dict.fromkeys(("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"), str(folder / "cache"))
    with served(folder / "log", {**fresh, **caches}) as running:
        yield running


@pytest.fixture(scope="module")
def question() -> str:
    """A spoken question in the protocol's form."""
    voice = build("speech", "piper", {"variation": 0.0})
    resampler = Resampler(voice.sample_rate_hz, 24_000)
    sound = np.concatenate(list(voice.synthesize("What is the capital of France?")))
    return base64.b64encode(np.concatenate((resampler.feed(sound), resampler.flush())).tobytes()).decode()


class Caller:
    """A push-to-talk client that asks the same question as often as it is told to."""

    def __init__(self, socket: RealtimeSocket, question: str) -> None:
        self._socket = socket
        self._question = question

    async def begin(self) -> None:
        """Switches to push-to-talk."""
        audio = {"input": {"transcription": {"model": "default"}, "turn_detection": None}}
        await self._socket.send({"type": "session.update", "session": {"type": "realtime", "audio": audio}})
        await self._until("session.updated")

    async def turn(self, stage: str = "", then: Callable[[], None] = lambda: None) -> Event:
        """Asks; calls `then` behind the first event `stage`. Returns the response as it ended."""
        await self._socket.send({"type": "input_audio_buffer.append", "audio": self._question})
        await self._socket.send({"type": "input_audio_buffer.commit"})
        await self._socket.send({"type": "response.create"})
        done = await self._until("response.done", stage, then)
        response: Event = done["response"]
        return response

    async def _until(self, wanted: str, stage: str = "", then: Callable[[], None] = lambda: None) -> Event:
        while True:
            event = await self._socket.receive()
            assert event["type"] != "error", event
            assert not event["type"].endswith("transcription.failed"), event
            if event["type"] == stage:
                stage = ""
                then()
            if event["type"] == wanted:
                return event


def words(response: Event) -> str:
    return " ".join(part["transcript"] for item in response["output"] for part in item["content"])


def name_of(kind: str) -> str:
    return f"chorale-{kind}"[:15]


async def ready_again(server: Served, kind: str, dead: int) -> None:
    """Waits until another process of this kind is there and every worker is ready."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        while server.workers().get(name_of(kind), dead) == dead or (await client.get("/readyz")).is_error:
            assert (await client.get("/healthz")).status_code == 200
            await asyncio.sleep(0.05)


def talking(server: Served, question: str, test: Callable[[Caller, Caller], Awaitable[None]]) -> None:
    """Runs a test with two sessions."""

    async def main() -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            RealtimeSocket.connect(server.url) as first,
            RealtimeSocket.connect(server.url) as second,
        ):
            one, other = Caller(first, question), Caller(second, question)
            await one.begin()
            await other.begin()
            await test(one, other)

    asyncio.run(main())


def test_a_fresh_machine_is_ready_from_installed_packages(server: Served, question: str) -> None:
    """F-O2: without any cache and with a hub that does not answer the server comes up and answers."""

    async def test(one: Caller, _: Caller) -> None:
        assert "Paris" in words(await one.turn())

    talking(server, question, test)


@pytest.mark.parametrize("kind", STAGES)
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_worker_lost_in_the_middle_of_a_turn_costs_nobody_an_answer(
    server: Served, question: str, kind: str, blow: signal.Signals
) -> None:
    """The turn is completed by the worker that comes after; the other session hears nothing of it but a delay."""

    async def test(one: Caller, other: Caller) -> None:
        victim = server.workers()[name_of(kind)]

        def strike() -> None:
            os.kill(victim, blow)

        async with asyncio.TaskGroup() as group:
            struck = group.create_task(one.turn(STAGES[kind], strike))
            beside = group.create_task(other.turn())
            responses = [await struck, await beside]
        await ready_again(server, kind, victim)
        responses += [await one.turn(), await other.turn()]
        for response in responses:
            assert response["status"] == "completed", response["status_details"]
            assert "Paris" in words(response)
        assert not is_alive(victim)

    talking(server, question, test)


def test_an_idle_worker_that_stalls_is_found_by_its_heartbeat(server: Served) -> None:
    """Nobody has to ask something to find out: it is replaced before the next question."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            victim = server.workers()[name_of("llm")]
            os.kill(victim, signal.SIGSTOP)
            await ready_again(server, "llm", victim)
            assert not is_alive(victim)

    asyncio.run(main())


def test_a_killed_server_leaves_no_worker_behind(tmp_path: Path) -> None:
    """After `kill -9` of the server its workers end by themselves, a stalled one too."""
    engines = {f"CHORALE_WORKERS__{kind.upper()}__ENGINE": "scripted" for kind in STAGES}
    with served(tmp_path / "log", engines, ends=-signal.SIGKILL) as server:
        workers = server.workers()
        assert set(workers) == {name_of(kind) for kind in STAGES}
        os.kill(workers[name_of("llm")], signal.SIGSTOP)
        os.kill(server.pid, signal.SIGKILL)
        deadline_s = time.monotonic() + PATIENCE_S
        while any(is_alive(pid) for pid in workers.values()):
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
