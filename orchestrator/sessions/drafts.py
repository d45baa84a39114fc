"""What is recognised of an utterance before it has ended (heart): drafts, and an early attempt at its transcript.

While the user speaks, drafts are made every so often, and none in a silence, where a recogniser is soon needed for
better. Once the silence is as long as the tail that an utterance keeps, its sound is known should it end so: that
sound is recognised as if it had ended. If it ends so, this is the transcript; if speech goes on, it was a draft.
"""

from modalities.audio.segmenter import TAIL_SAMPLES, Segmenter
from orchestrator.buffers.timeline import position_us
from orchestrator.scheduling.work import Failed, Transcribe, Transcribed
from orchestrator.sessions.figures import EarlyFigures
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.utterance import Attempt, Utterance


class Drafts:
    """Decides what is recognised of the open utterance. At most one attempt at a time is under way."""

    def __init__(self, out: Outbound, figures: EarlyFigures) -> None:
        self._out = out
        self._figures = figures
        self._jobs: dict[str, Utterance] = {}
        self._refused_at = -1

    def owns(self, job_id: str) -> bool:
        return job_id in self._jobs

    # -- starting ---------------------------------------------------------------------------------------------------

    def follow(
        self, utterance: Utterance, segmenter: Segmenter, clip: Transcribe, shown: bool, asked: bool
    ) -> None:
        """The segmenter has come further in an open utterance. `clip` is how to recognise it, whatever its extent.
        Drafts are made where they are `shown` to the client or `asked` for the end of the turn, in silence too where
        an early attempt was refused."""
        stop = segmenter.last_speech_stop + TAIL_SAMPLES
        if utterance.early is not None and utterance.early.work.stop != stop:
            self._speech_went_on(utterance)
        is_silent = segmenter.position > segmenter.last_speech_stop
        if self._out.rules.early_replies and segmenter.position >= stop:
            self._attempt(utterance, _extent(clip, utterance.start, stop))
        if asked or (shown and not is_silent):
            waits = is_silent and self._out.rules.early_replies and self._refused_at != stop
            if not waits:
                self._draft(utterance, segmenter.position, clip)

    def _attempt(self, utterance: Utterance, work: Transcribe) -> None:
        """Starts the early attempt of this silence, unless there was one."""
        if (
            utterance.early is not None
            or self._refused_at == work.stop
            or self._is_long(utterance, work.stop)
        ):
            return
        self._take_back(utterance)  # what it would say is part of what is asked for now
        attempt = self._start(utterance, work, self._out.rules.transcribe_within_us, early=True)
        utterance.early = attempt
        utterance.drafted_to = work.stop
        self._figures.transcripts_started += 1

    def _draft(self, utterance: Utterance, position: int, clip: Transcribe) -> None:
        """Starts a draft where one is due."""
        rules = self._out.rules
        if utterance.draft is not None or utterance.early is not None or self._is_long(utterance, position):
            return
        if position_us(position - utterance.drafted_to) < rules.draft_every_us:
            return
        utterance.drafted_to = position
        work = _extent(clip, utterance.start, position, draft=True)
        utterance.draft = self._start(utterance, work, rules.draft_every_us * 10, early=False)

    def _start(self, utterance: Utterance, work: Transcribe, within_us: int, early: bool) -> Attempt:
        job_id = self._out.start(work, within_us, speculative=early)
        self._jobs[job_id] = utterance
        return Attempt(job_id, work, self._out.now)

    def _is_long(self, utterance: Utterance, position: int) -> bool:
        return position_us(position - utterance.start) > self._out.rules.max_draft_us

    # -- ending -----------------------------------------------------------------------------------------------------

    def _speech_went_on(self, utterance: Utterance) -> None:
        """The early attempt is a draft now, if it is not in yet."""
        early, utterance.early = utterance.early, None
        assert early is not None
        self.dropped()
        if early.answer is None:
            utterance.draft = early

    def _take_back(self, utterance: Utterance) -> None:
        draft, utterance.draft = utterance.draft, None
        if draft is not None:
            self._jobs.pop(draft.job_id, None)
            self._out.cancel(draft.job_id)

    def forget(self, utterance: Utterance) -> None:
        """Takes back whatever is under way for an utterance."""
        self._take_back(utterance)
        early, utterance.early = utterance.early, None
        if early is not None:
            self.dropped()
            if self._jobs.pop(early.job_id, None) is not None:
                self._out.cancel(early.job_id)

    def finish(self, utterance: Utterance, work: Transcribe) -> Attempt | None:
        """The utterance has ended: returns the early attempt where it was at just this work, else takes it back. A job
        that is still under way is the caller's from now on."""
        early = utterance.early
        if early is None or early.work != work:
            self.forget(utterance)
            return None
        utterance.early = None
        self._take_back(utterance)
        self._jobs.pop(early.job_id, None)
        return early

    def used(self, attempt: Attempt, ended_us: int) -> None:
        """Counts an attempt that brought the transcript of an utterance that ended at `ended_us`."""
        self._figures.transcripts_used += 1
        self._figures.transcripts_saved_us += ended_us - attempt.began_us

    def dropped(self) -> None:
        """Counts an attempt that did not."""
        self._figures.transcripts_dropped += 1

    # -- reports ----------------------------------------------------------------------------------------------------

    def report(self, report: Transcribed | Failed) -> tuple[Utterance, Transcribe] | None:
        """Takes a recogniser's answer; returns the utterance and what was recognised of it, None where nothing was."""
        utterance = self._jobs.pop(report.job_id)
        early = utterance.early
        if early is not None and early.job_id == report.job_id:
            if isinstance(report, Failed):
                # As it would have been without: the end of the turn starts the transcription.
                self._refused_at = early.work.stop
                self.dropped()
                utterance.early = None
                utterance.drafted_to = utterance.text_to
                return None
            early.answer, early.answered_us = report, self._out.now
            return utterance, early.work
        draft, utterance.draft = utterance.draft, None
        return None if isinstance(report, Failed) or draft is None else (utterance, draft.work)


def _extent(clip: Transcribe, start: int, stop: int, draft: bool = False) -> Transcribe:
    return Transcribe(start=start, stop=stop, draft=draft, language=clip.language, prompt=clip.prompt)
