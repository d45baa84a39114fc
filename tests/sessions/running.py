"""Sessions with their registry, runner, inbox and intake on virtual time, with stand-in workers."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from modalities.ports import Pcm
from orchestrator.clock import US_PER_S
from orchestrator.observability.instrument import Instrument
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.sessions.links import LinkKind, SessionRequest
from orchestrator.sessions.registry import Registry, RegistrySettings
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.runner import SessionRunner
from orchestrator.sessions.tap import Recorder
from orchestrator.wire import codec
from orchestrator.workers.voice_activity import VoiceActivity
from tests.fakes.links import FakeLink
from tests.fakes.workers import FakeWorkers
from tests.sessions.talk import view
from tests.virtual_time import VirtualClock, run

ASK = SessionRequest(tenant="t", tier=2)
SPEECH: Pcm = np.full(16_000, 8_000, dtype=np.int16)
SILENCE: Pcm = np.zeros(16_000, dtype=np.int16)


class LoudnessDetector:
    """A stand-in for the voice detector: loud is speech. Its state counts a stream's windows."""

    window = 512

    def new_state(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.zeros(1, dtype=np.float32)

    def detect(
        self, windows: np.ndarray[Any, np.dtype[np.float32]], states: np.ndarray[Any, np.dtype[np.float32]]
    ) -> tuple[np.ndarray[Any, np.dtype[np.float32]], np.ndarray[Any, np.dtype[np.float32]]]:
        loud = np.abs(windows).mean(axis=1) > 0.05
        return np.where(loud, 0.95, 0.02).astype(np.float32), states + 1


class House:
    """A registry with stand-in workers."""

    def __init__(self, workers: FakeWorkers, **settings: Any) -> None:
        clock = VirtualClock()
        self.workers = workers
        self.dispatcher = Dispatcher(workers, clock, limiter=settings.pop("limiter", None))
        self.dispatcher.start()
        self.detector = VoiceActivity(LoudnessDetector())
        recorder: Recorder | None = settings.pop("recorder", None)
        instrument: Instrument | None = settings.pop("instrument", None)
        rules = settings.pop("rules", SessionRules(grace_us=10 * US_PER_S))
        self.registry = Registry(
            RegistrySettings(defaults=view(), rules=rules, **settings),
            clock,
            self.dispatcher,
            self.detector,
            recorder,
            instrument,
        )

    def open(self, kind: LinkKind = LinkKind.WEBSOCKET) -> tuple[SessionRunner, FakeLink]:
        session = self.registry.open(ASK, kind)
        link = FakeLink(kind=kind)
        link.attach(session)
        return session, link

    async def close(self) -> None:
        await self.registry.close()
        self.dispatcher.close()
        self.detector.close()


def in_house(
    test: Callable[[House], Awaitable[None]], workers: FakeWorkers | None = None, **settings: Any
) -> None:
    """Runs `test` in a house on virtual time and tidies up; nothing may be left running."""

    async def main() -> None:
        house = House(workers or FakeWorkers(), **settings)
        try:
            await test(house)
        finally:
            await house.close()
        assert len(asyncio.all_tasks()) == 1
        assert len(house.registry) == 0

    run(main())


async def client(runner: SessionRunner, type: str, **fields: Any) -> None:
    await runner.submit("link", codec.decode_client(json.dumps({"type": type, **fields})))


async def spoken(session: SessionRunner) -> None:
    """One second of speech, one of silence, in real time."""
    for pcm in (SPEECH, SILENCE):
        for start in range(0, 16_000, 320):
            session.intake.append(pcm[start : start + 320])
            await asyncio.sleep(0.02)
