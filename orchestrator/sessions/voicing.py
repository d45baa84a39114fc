"""Sentences of replies on their way to the synthesiser (heart): how many at a time, and which was begun early."""

from modalities.text.sentences import speakable
from orchestrator.scheduling.work import REFUSED, Failed, Reply, Speak, SpeechPiece
from orchestrator.sessions.effects import EmitAudio
from orchestrator.sessions.head_start import Prepared
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.playback import Playback
from orchestrator.sessions.response import ResponseRun, Spoken

_SENTENCES_AT_ONCE = 4


class Voicing:
    """Starts the synthesis of sentences. One that is `prepared` when its sentence is due is not made again."""

    def __init__(self, out: Outbound, playback: Playback) -> None:
        self.prepared: Prepared | None = None
        self._out = out
        self._playback = playback

    def speak(self, run: ResponseRun, speed: float) -> tuple[str, ...]:
        """Starts the next sentences of a reply and returns their jobs: a few at a time, and none while a call has
        enough to play. So a long reply overflows no queue, and none of its sentences grows old in one."""
        jobs = []
        while run.unspoken and run.open_sentences < _SENTENCES_AT_ONCE and not self._playback.is_far_ahead:
            sentence = run.unspoken.popleft()
            text = speakable(sentence.text)
            if not text.strip():
                continue
            if run.times is not None and run.times.sentence_us is None:
                run.times.sentence_us = self._out.now
            job = self._job(run, Speak(text=text, speed=speed))
            run.spoken.append(Spoken(job, sentence.start, sentence.stop))
            jobs.append(job)
        return tuple(jobs)

    def _job(self, run: ResponseRun, work: Speak) -> str:
        prepared, self.prepared = self.prepared, None
        if prepared is not None:
            if prepared.work == work:
                run.guesses[prepared.job_id] = work
                return prepared.job_id
            self._out.cancel(prepared.job_id)
        due_in_us = run.sound_in_hand_us(self._out.attended_us)
        return self._out.start(work, self._out.rules.speak_within_us, due_in_us=due_in_us)

    def again(self, run: ResponseRun, report: Failed) -> str | None:
        """Begins anew what was refused as a guess, though by now somebody has asked for it: as a guess it had no claim
        to a place. Returns its job, None where it failed for good, as a sentence does that others are begun behind:
        their sound would come before its own."""
        work = run.guesses.pop(report.job_id, None)
        if work is None or report.code != REFUSED or not self._out.rules.gives_way:
            return None
        if isinstance(work, Reply):
            run.reply_job = self._out.start(work, self._out.rules.reply_within_us)
            return run.reply_job
        if len(run.spoken) > 1:
            return None
        run.spoken[0].job_id = job = self._out.start(work, self._out.rules.speak_within_us)
        return job

    def send(self, run: ResponseRun, piece: SpeechPiece) -> None:
        """Sends a piece of a reply's sound."""
        self._out.do(
            EmitAudio(
                run.id,
                str(run.message_id),
                run.message_index,
                0,
                piece.job_id,
                piece.index,
                run.shape.format,
            )
        )

    def take_back(self) -> None:
        """Nobody has asked for what is prepared."""
        prepared, self.prepared = self.prepared, None
        if prepared is not None:
            self._out.cancel(prepared.job_id)
