"""What became of a job, for whoever measures: followed from its submission to its end, then told of once.

A heart. Nothing of it is done per token: a job is looked at when it is submitted, sent, first answered and ended.
"""

from dataclasses import dataclass

from orchestrator.observability.instrument import Ending, JobRecord
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import REFUSED, Failed, Replied, Report, Transcribe


@dataclass(slots=True, eq=False)
class Followed:
    """A job on its way. `first_us` is when its first report came, `worked` when a worker was at it."""

    job: Job
    turn: int
    submitted_us: int
    sent_us: int | None = None
    first_us: int | None = None
    worked: tuple[int, int] | None = None
    batch: int = 1
    repeats: int = 0
    remote: TraceParent | None = None
    is_told: bool = False

    def send(self, batch: int, now: int) -> None:
        """It goes to a worker, with `batch` - 1 others."""
        self.sent_us, self.batch = now, batch

    def lose(self) -> None:
        """Its worker is gone; it is done again from the beginning."""
        self.repeats += 1
        self.sent_us = self.first_us = self.worked = None

    def end(self, report: Report | None, now: int) -> JobRecord | None:
        """Returns what became of it: its last report, None where it was taken back. None if that was told before."""
        if self.is_told:
            return None
        self.is_told = True
        job = self.job
        outcome, error = _ending(report)
        tokens = report if isinstance(report, Replied) else None
        return JobRecord(
            session_id=job.session_id,
            turn=self.turn,
            kind=job.kind,
            tier=int(job.tier),
            outcome=outcome,
            error=error,
            submitted_us=self.submitted_us,
            sent_us=self.sent_us,
            first_us=self.first_us,
            ended_us=now,
            worked=self.worked,
            batch=self.batch,
            input_tokens=tokens.input_tokens if tokens else 0,
            cached_tokens=tokens.cached_tokens if tokens else 0,
            output_tokens=tokens.output_tokens if tokens else 0,
            speculative=job.speculative,
            draft=isinstance(job.work, Transcribe) and job.work.draft,
            repeats=self.repeats,
            work=type(job.work).__name__.lower(),
            remote=self.remote,
        )


def _ending(report: Report | None) -> tuple[Ending, str]:
    match report:
        case None:
            return Ending.CANCELLED, ""
        case Failed(code=code, reason=reason):
            return (Ending.REFUSED, reason or code) if code == REFUSED else (Ending.FAILED, code)
        case Replied(finish_reason="cancelled"):
            return Ending.CANCELLED, ""
        case _:
            return Ending.COMPLETED, ""
