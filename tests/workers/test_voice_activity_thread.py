"""The voice detector beside busy neighbours (F-L2)."""

import asyncio
import threading

from orchestrator.workers.voice_activity import VoiceActivity
from tests.workers.test_voice_activity import CountingDetector, judged, numbered


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
            stream = service.stream(deliver)
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
