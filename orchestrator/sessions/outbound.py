"""Where the parts of a session's heart put what they want done, and the jobs that they wait for."""

from orchestrator.ids import IdSequence
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Work
from orchestrator.sessions.effects import Cancel, Effect, Emit, Start, Tell
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire.server import ServerEvent


class Outbound:
    """Collects the effects of one `receive`. `now`, and for how long of it somebody was there, is set by the
    session before its parts run (`Attendance.attended_us`)."""

    def __init__(self, session_id: str, ids: IdSequence, rules: SessionRules) -> None:
        self.ids = ids
        self.rules = rules
        self.now = 0
        self.attended_us = 0
        self._session_id = session_id
        # Counted apart: how many jobs there were shows in no id that a client sees.
        self._jobs = IdSequence(ids.tag)
        self._effects: list[Effect] = []

    def emit(self, *events: ServerEvent) -> None:
        for event in events:
            self._effects.append(Emit(event))

    def tell(self, link_id: str, event: ServerEvent) -> None:
        self._effects.append(Tell(link_id, event))

    def do(self, effect: Effect) -> None:
        self._effects.append(effect)

    def start(
        self, work: Work, within_us: int, urgent: bool = False, speculative: bool = False, due_in_us: int = 0
    ) -> str:
        """Queues a job that must end within `within_us`; returns its id. `urgent` work unblocks the session,
        `speculative` work is taken only where it makes nobody wait; nobody misses its result before `due_in_us`."""
        job_id = self._jobs.take("job")
        job = Job(
            id=job_id,
            session_id=self._session_id,
            work=work,
            tier=self.rules.tier,
            level=0 if urgent else int(self.rules.tier),
            created_us=self.now,
            deadline_us=self.now + within_us,
            speculative=speculative,
            due_us=self.now + due_in_us,
        )
        self._effects.append(Start(job))
        return job_id

    def cancel(self, job_id: str | None) -> None:
        if job_id is not None:
            self._effects.append(Cancel(job_id))

    def take(self) -> tuple[Effect, ...]:
        """Returns what was collected and starts afresh."""
        effects = tuple(self._effects)
        self._effects.clear()
        return effects
