"""What a session is told of a job that was not taken: a last report in words that are fit for a client."""

from orchestrator.flow.limiter import Refusal
from orchestrator.observability.refusal_lines import RefusalLines
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.kinds import KIND_NAMES
from orchestrator.scheduling.work import REFUSED, Failed, Transcribe

SPECULATIVE = "speculative"
"""Why guesses are refused that would make others wait: that is no overload, and no fault."""


def nobody_for(job: Job) -> Failed:
    """No worker can do this kind of work."""
    return Failed(job.id, "worker_failed", f"{KIND_NAMES[job.kind]} is not available")


def used_up(job: Job, refusal: Refusal) -> Failed:
    """A tenant has used what it may."""
    message = "this request may use more than the quota of its key ever gives"
    if refusal.retry_after_s:
        message = f"the quota of this key is used up; try again in {refusal.retry_after_s:.1f} s"
    return Failed(job.id, REFUSED, message, refusal.retry_after_s, refusal.reason.value)


def no_room(job: Job, refusal: Refusal) -> Failed:
    """Too much waits or is inside."""
    message = f"no room for more {job.kind} work now; try again in {refusal.retry_after_s:.1f} s"
    return Failed(job.id, REFUSED, message, refusal.retry_after_s, refusal.reason.value)


def no_time_for_guesses(job: Job) -> Failed:
    """Others would wait for a speculative job."""
    message = f"{KIND_NAMES[job.kind]} has no time for guesses now"
    return Failed(job.id, REFUSED, message, reason=SPECULATIVE)


def left_out(job: Job, refusal: Refusal) -> Failed:
    """There is so much to do that work of this sort is left out."""
    message = f"{KIND_NAMES[job.kind]} is short of time now; try again in {refusal.retry_after_s:.1f} s"
    return Failed(job.id, REFUSED, message, refusal.retry_after_s, refusal.reason.value)


def too_late(job: Job) -> Failed:
    """The deadline has come."""
    return Failed(job.id, "deadline_exceeded", f"{KIND_NAMES[job.kind]} did not answer in time")


def failed_repeatedly(job: Job) -> Failed:
    """Every worker that had it is lost."""
    return Failed(job.id, "worker_failed", f"{KIND_NAMES[job.kind]} failed repeatedly")


def tell_refused(lines: RefusalLines, job: Job, tenant: str, report: Failed, now: int) -> None:
    """Has the log say whose work was refused, where a user misses it: not a guess, and not a draft."""
    is_draft = isinstance(job.work, Transcribe) and job.work.draft
    if report.code == REFUSED and not job.speculative and not is_draft:
        reason = report.reason or report.code
        lines.note(tenant, job.kind, reason, now, report.retry_after_s, job.session_id)
