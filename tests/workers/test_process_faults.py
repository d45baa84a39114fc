"""What watches a worker and reads its output goes on after a fault, on virtual time and without a process."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.observability.faults import FAULTS
from orchestrator.workers.last_words import LastWords
from orchestrator.workers.pool import WorkerPool
from orchestrator.workers.process import WorkerProcess
from orchestrator.workers.spec import PoolSettings, WorkerSpec
from orchestrator.workers.supervision import Supervision
from tests import virtual_time


def process() -> WorkerProcess:
    clock = virtual_time.VirtualClock()
    spec = WorkerSpec("llm", "scripted")
    pool = WorkerPool(PoolSettings((spec,)), clock)
    return WorkerProcess("llm-1", spec, Supervision(), clock, pool)


def test_process_is_watched_on_after_a_look_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that hangs later is still found: the watch does not end with one fault."""

    async def main() -> None:
        before = FAULTS.counts().get("worker watch", 0)
        worker, looks = process(), 0

        def look() -> None:
            nonlocal looks
            looks += 1
            if looks <= 2:
                raise KeyError("nothing foreseen")

        monkeypatch.setattr(worker, "_look", look)
        watching = asyncio.create_task(worker._watch())
        await asyncio.sleep(10)
        assert looks >= 10
        assert FAULTS.counts()["worker watch"] == before + 2
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    virtual_time.run(main())


def test_process_output_is_read_to_its_end_whatever_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe that nobody reads would bring the worker to a stand with its next line."""

    async def main() -> None:
        before = FAULTS.counts().get("worker output", 0)
        words = LastWords([])
        real, fed = words.feed, list[bytes]()

        def feed(output: bytes) -> Any:  # as `LastWords.feed`
            fed.append(output)
            if len(fed) == 1:
                raise ValueError("nothing foreseen")
            return real(output)

        monkeypatch.setattr(words, "feed", feed)
        stream = asyncio.StreamReader()
        reading = asyncio.create_task(process()._listen(SimpleNamespace(stderr=stream), words))  # type: ignore[arg-type]
        for line in (b"one\n", b"two\n"):
            stream.feed_data(line)
            await asyncio.sleep(1)
        stream.feed_eof()
        await reading
        assert fed == [b"one\n", b"two\n"]
        assert FAULTS.counts()["worker output"] == before + 1

    virtual_time.run(main())
