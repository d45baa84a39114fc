"""The OpenAI HTTP API around workers that answer by a test's rule."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import httpx
from openai import AsyncOpenAI

from orchestrator.clock import MonotonicClock
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.flow.tenants import TenantLimits, quotas
from orchestrator.observability.instrument import Instrument
from orchestrator.scheduling.cost import Costs
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Tier
from orchestrator.scheduling.work import WorkKind
from orchestrator.transports.auth import KeyRing
from orchestrator.transports.errand import Errands
from orchestrator.transports.openai_door import HttpLimits, OpenAi
from tests.fakes.workers import Answer, FakeWorkers, obliging
from tests.transports.running import Running, build, serving

MODELS: dict[WorkKind, str] = {"asr": "ears", "understand": "vectors", "llm": "words", "speech": "voice"}


class Asked:
    """A server that listens, its workers, and clients for it."""

    def __init__(
        self, workers: FakeWorkers, dispatcher: Dispatcher, openai: OpenAi, running: Running
    ) -> None:
        self.workers = workers
        self.dispatcher = dispatcher
        self.openai = openai
        self.running = running

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.running.port}"

    def sdk(self, key: str = "none", retries: int = 0) -> AsyncOpenAI:
        """The stock client, which tries again on its own unless it is told not to."""
        return AsyncOpenAI(api_key=key, base_url=f"{self.url}/v1", max_retries=retries, timeout=60)

    def http(self, **headers: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=60)

    @property
    def waiting(self) -> int:
        """Jobs that are in the house, waiting or being worked on."""
        return self.dispatcher.statistics().jobs.in_flight


def asking(
    test: Callable[[Asked], Awaitable[None]],
    answer: Answer = obliging,
    *,
    delay_s: float = 0.0,
    ring: KeyRing | None = None,
    models: Mapping[WorkKind, str] | None = None,
    limits: HttpLimits | None = None,
    best_tier: Tier | None = None,
    most_jobs: int = 100,
    requests: int | None = None,
    tokens: int | None = None,
    images: bool = False,
    instrument: Instrument | None = None,
) -> None:
    """Runs `test` with a server; afterwards no errand is open and no job is in the house. `requests` and `tokens` are
    what a tenant may ask and use a minute."""

    async def main() -> None:
        clock = MonotonicClock()
        workers = FakeWorkers(answer, delay_s)
        tiers = {int(tier): quotas(tokens, requests=requests) for tier in Tier}
        costs = Costs(TenantLimits(tiers)) if requests or tokens else None
        limiter = Limiter(FixedLimit(most_jobs))
        dispatcher = Dispatcher(workers, clock, limiter=limiter, costs=costs, instrument=instrument)
        dispatcher.start()
        errands = Errands(dispatcher, clock, best_tier)
        openai = OpenAi(errands, MODELS if models is None else models, limits or HttpLimits(), images)
        house = build(ring, openai=openai)
        async with asyncio.timeout(120), serving(house) as running:
            asked = Asked(workers, dispatcher, openai, running)
            await test(asked)
            await errands.wait_empty()
            assert asked.waiting == 0
        openai.close()
        dispatcher.close()

    asyncio.run(main())
