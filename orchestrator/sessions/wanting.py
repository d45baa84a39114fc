"""What the consistency engine wants to know of sound (heart): work for the recognisers, and what came of it."""

from dataclasses import dataclass

from consistency.policy import SECOND
from consistency.verdict import Reheard, Scores, Want, WantScore
from orchestrator.scheduling.work import Report, Scored, Transcribed, Understood
from orchestrator.sessions.observing import Source, forced_scores, observation, work_for
from orchestrator.sessions.outbound import Outbound


@dataclass(frozen=True, slots=True)
class Again:
    """What was recognised again, and is understood under this `name`."""

    name: str
    text: str


class Wants:
    """Jobs in flight for wants, and utterances that were recognised again and are being understood."""

    def __init__(self, out: Outbound) -> None:
        self._out = out
        self._jobs: dict[str, tuple[Want, Source]] = {}
        self._again: dict[str, tuple[Source, int, Transcribed]] = {}

    def owns(self, job_id: str) -> bool:
        return job_id in self._jobs

    def start(self, want: Want, source: Source | None) -> Scores | Reheard | None:
        """Starts what nobody is at. What cannot be known is returned at once, as failed."""
        if self._is_underway(want):
            return None
        work = None if source is None else work_for(want, source)
        if source is None or work is None:
            return _failed(want)
        job = self._out.start(work, self._out.rules.transcribe_within_us, urgent=True)
        self._jobs[job] = want, source
        return None

    def report(self, report: Report) -> Scores | Reheard | Again:
        """Takes the answer to a job of its own."""
        want, source = self._jobs.pop(report.job_id)
        if isinstance(want, WantScore):
            scores = forced_scores(report, want.rung or rung_of(source)) if isinstance(report, Scored) else ()
            return Scores(want.observation_id, scores, want.texts, want.rung)
        text = report.text.strip() if isinstance(report, Transcribed) else ""
        if not isinstance(report, Transcribed) or not text:
            return _failed(want)
        if want.rung == SECOND:
            source.second = report
        name = f"{want.observation_id}#{want.rung}"
        self._again[name] = source, want.rung, report
        return Again(name, text)

    def understood(self, name: str, found: Understood | None) -> Reheard | None:
        """Returns what was recognised again under this name; None where it is nobody's."""
        if name not in self._again:
            return None
        source, rung, report = self._again.pop(name)
        return Reheard(source.id, rung, observation(source, found, name, report))

    def _is_underway(self, want: Want) -> bool:
        if any(want == one for one, _ in self._jobs.values()):
            return True
        return not isinstance(want, WantScore) and f"{want.observation_id}#{want.rung}" in self._again


def rung_of(source: Source) -> int:
    """Returns the rung at which an utterance was recognised."""
    return 0 if source.report is None else source.report.rung


def _failed(want: Want) -> Scores | Reheard:
    if isinstance(want, WantScore):
        return Scores(want.observation_id, (), want.texts, want.rung)
    return Reheard(want.observation_id, want.rung, None)
