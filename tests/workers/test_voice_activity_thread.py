"""The voice detector beside busy neighbours (F-L2)."""

import asyncio
import threading

from orchestrator.workers.voice_activity import GATHER_S, VoiceActivity
from tests.virtual_time import run
from tests.workers.test_voice_activity import CountingDetector, Mouth, judged, numbered


def test_voice_activity_has_a_thread_of_its_own() -> None:
    """F-L2: 64 calls that block the default pool, and 64 more that wait for it, delay no window: all are judged while
    every one of those still blocks."""

    async def test() -> None:
        loop, release = asyncio.get_running_loop(), threading.Event()
        started = threading.Semaphore(0)

        def block() -> None:
            started.release()
            release.wait(60)

        blocked = [loop.run_in_executor(None, block) for _ in range(128)]
        detector = CountingDetector()
        service = VoiceActivity(detector)
        found: list[int] = []

        def deliver(first: int, probabilities: tuple[float, ...], phrase_ends: object = ()) -> None:
            found.extend(range(first, first + len(probabilities)))

        try:
            started.acquire(timeout=30)
            stream = Mouth(service, deliver)
            for number in range(100):
                stream.push(number, numbered(number, 1))
                await asyncio.wait_for(judged(stream), 30)
            assert found == list(range(100))
            assert not any(call.done() for call in blocked)
            assert len(detector.threads) == 1
        finally:
            release.set()
            await asyncio.gather(*blocked)
            service.close()

    asyncio.run(test())


def test_voice_activity_gathers_the_windows_of_many_calls() -> None:
    """Fifty calls that send at fifty moments cost a hundred hops to the thread a second at most, and none of their
    windows waits for longer than a tick; one call alone never waits."""

    async def test() -> None:
        loop = asyncio.get_running_loop()
        detector = CountingDetector()
        service = VoiceActivity(detector)
        waits_s: list[float] = []

        async def call(number: int, count: int) -> None:
            sent: dict[int, float] = {}

            def deliver(first: int, probabilities: tuple[float, ...], phrase_ends: object = ()) -> None:
                waits_s.extend(loop.time() - sent[first + at] for at in range(len(probabilities)))

            stream = Mouth(service, deliver)
            await asyncio.sleep(0.04 * number / 50)
            for window in range(count):
                sent[window] = loop.time()
                stream.push(window, numbered(window, 1))
                await asyncio.sleep(0.04)
            stream.close()

        await call(0, 25)
        assert max(waits_s) == 0
        assert len(detector.calls) == 25
        detector.calls.clear()
        await asyncio.gather(*(call(number, 25) for number in range(50)))
        assert sum(detector.calls) == 50 * 25
        assert len(detector.calls) <= 100 * 1.1
        assert max(waits_s) <= GATHER_S + 1e-6
        service.close()

    run(test())
