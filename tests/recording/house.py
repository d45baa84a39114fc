"""A house of sessions on virtual time whose sessions are written down."""

from collections.abc import Awaitable, Callable

from orchestrator.recording.recorder import SessionRecorder
from tests.fakes.workers import FakeWorkers
from tests.sessions.running import House, in_house


def in_recorded_house(
    test: Callable[[House], Awaitable[None]], recorder: SessionRecorder, workers: FakeWorkers | None = None
) -> None:
    """Runs `test` on virtual time; what was recorded is on the disk afterwards."""

    recorder.start()
    try:
        in_house(test, workers, recorder=recorder)
    finally:
        recorder.close(30)
