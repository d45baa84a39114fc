"""Jobs for tests, with everything that does not matter filled in."""

from orchestrator.clock import seconds
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Reply, Speak, Transcribe, Understand, Work, WorkKind

WORKS: dict[WorkKind, Work] = {
    "asr": Transcribe(0, 16_000),
    "understand": Understand("hello"),
    "llm": Reply(()),
    "speech": Speak("Hello."),
}


def job(
    id: str,
    session: str = "s",
    work: Work | WorkKind = "llm",
    level: int = 3,
    created_us: int = 0,
    deadline_us: int = seconds(3600),
    due_us: int = 0,
) -> Job:
    """Returns a job that asks for little; `work` may be just a kind."""
    actual = WORKS[work] if isinstance(work, str) else work
    return Job(id, session, actual, Tier(max(level, 1)), level, created_us, deadline_us, due_us=due_us)
