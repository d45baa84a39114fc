"""What the routes of the OpenAI HTTP API share."""

import asyncio
import os
import sys
import threading

import pytest

from orchestrator.clock import MonotonicClock
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.transports.errand import Errands
from orchestrator.transports.openai_door import MEDIA_NICENESS, OpenAi, duration
from orchestrator.transports.refusals import Refusal, ShuttingDown
from tests.fakes.workers import FakeWorkers


def made() -> OpenAi:
    clock = MonotonicClock()
    return OpenAi(Errands(Dispatcher(FakeWorkers(), clock), clock), {"llm": "words"})


def test_door_needs_somebody_who_does_the_work() -> None:
    """A kind that is configured passes, another is 404 in words."""

    async def main() -> None:
        door = made()
        door.need("llm", "language model")
        with pytest.raises(Refusal, match="no voice") as caught:
            door.need("speech", "voice")
        assert (caught.value.status, caught.value.param) == (404, "model")
        door.close()

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets priorities by thread")
def test_media_threads_stand_behind_everybody_else() -> None:
    """The thread is nicer than the server, and the server is as it was."""

    async def main() -> None:
        door = made()
        before = os.getpriority(os.PRIO_PROCESS, 0)
        nice = await door.in_thread(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        assert nice == max(MEDIA_NICENESS, before)
        assert os.getpriority(os.PRIO_PROCESS, 0) == before
        door.close()

    asyncio.run(main())


def test_door_that_is_closed_takes_nothing_more() -> None:
    """No thread is begun for a file that came late."""

    async def main() -> None:
        door = made()
        door.close()
        with pytest.raises(ShuttingDown):
            await door.in_thread(print)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("of_s", "told"),
    [
        (0, "0ms"),
        (0.12, "120ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.9994, "59.999s"),
        (360, "6m0s"),
        (3_661.5, "1h1m1.5s"),
    ],
)
def test_durations_are_written_as_client_libraries_read_them(of_s: float, told: str) -> None:
    """The largest unit first, none of them fractional but the last."""
    assert duration(of_s) == told
