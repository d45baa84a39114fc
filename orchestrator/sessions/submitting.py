"""A session's jobs on their way to the dispatcher: sound and images are put into them, times become the server's."""

from collections.abc import Callable

from msgspec import structs

from orchestrator.clock import US_PER_MS
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Failed, Reply, Score, Transcribe
from orchestrator.sessions.clips import ClipStore
from orchestrator.sessions.events import Event, ReportCame
from orchestrator.sessions.intake import SpeechIntake
from orchestrator.sessions.pictures import PictureStore

TOUCH_EVERY_US = 100 * US_PER_MS
"""How often the dispatcher is told at most that a session's user is active."""


class Submitting:
    """The jobs of one session. `origin` is the server's time at its beginning; `put` takes the report of a job
    that could not be handed over."""

    def __init__(
        self,
        session_id: str,
        dispatcher: Dispatcher,
        intake: SpeechIntake,
        clips: ClipStore,
        pictures: PictureStore,
        origin: int,
        put: Callable[[Event], None],
    ) -> None:
        self._session_id = session_id
        self._dispatcher = dispatcher
        self._intake = intake
        self._clips = clips
        self._pictures = pictures
        self._origin = origin
        self._put = put
        self._touched_us = -TOUCH_EVERY_US

    def start(self, job: Job, turn: int) -> None:
        """Hands a job of a turn over. Sound that is no longer held is answered with ``audio_gone``."""
        work = job.work
        if isinstance(work, Transcribe | Score):
            try:
                audio = (
                    self._clips.sound(work.clip) if work.clip else self._intake.extent(work.start, work.stop)
                )
            except LookupError:
                gone = Failed(job.id, "audio_gone", "The sound is no longer held by the server.")
                self._put(ReportCame(gone))
                return
            work = structs.replace(work, audio=audio)
        elif isinstance(work, Reply):
            work = self._pictures.shown(work)
        self._dispatcher.submit(
            structs.replace(
                job,
                work=work,
                created_us=job.created_us + self._origin,
                deadline_us=job.deadline_us + self._origin,
                due_us=job.due_us + self._origin,
            ),
            turn,
        )

    def touch(self, now: int) -> None:
        """The user is active at session time `now`: what waits for him may move forward. Told now and then only."""
        if now - self._touched_us >= TOUCH_EVERY_US:
            self._touched_us = now
            self._dispatcher.touch(self._session_id)
