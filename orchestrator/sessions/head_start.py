"""A reply that is begun before its turn has ended for certain (heart): used if the turn ends so, dropped unseen if not.

In the silence that may end a turn, what will be asked of the language model is known as soon as the early transcript is
in. It is asked then, and the first sentence that comes is made into sound. What workers report is held here: nothing of
it is seen by anyone. Once the turn has ended, whoever is about to ask for exactly the same work takes the guess over,
with what has been reported of it.
"""

from dataclasses import dataclass, field

from modalities.text.sentences import Sentence, SentenceStream, speakable
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    Reply,
    ReplyCall,
    ReplyText,
    Report,
    Speak,
    SpeechPiece,
)
from orchestrator.sessions.figures import EarlyFigures, TurnTimes
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.response import OUTPUT_RATE_HZ

MOST_REPORTS = 256
"""Held of one guess: a reply that is so far ahead of its turn is not worth its work any more."""

MOST_SAMPLES = 30 * OUTPUT_RATE_HZ
"""Sound held of one guess: one sentence, which is never so long."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What would be asked if the turn ended with its present `silence`. `speaks`: the reply is to be spoken."""

    silence: tuple[str, int]
    work: Reply
    speaks: bool
    speed: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sentence on its way to sound, before anyone has asked for it."""

    job_id: str
    work: Speak


@dataclass(slots=True)
class Guess:
    """A reply under way for a turn that may end; `held` is what was reported of its jobs, in order."""

    prospect: Prospect
    job_id: str
    began_us: int
    held: list[Report] = field(default_factory=list)
    sentences: SentenceStream = field(default_factory=SentenceStream)
    has_spoken: bool = False
    prepared: Prepared | None = None
    samples: int = 0
    token_us: int | None = None
    sentence_us: int | None = None


class HeadStart:
    """Holds at most one guess, and makes at most one in each silence."""

    def __init__(self, out: Outbound, figures: EarlyFigures) -> None:
        self._out = out
        self._figures = figures
        self._guess: Guess | None = None
        self._tried: tuple[str, int] | None = None

    def owns(self, job_id: str) -> bool:
        """Whether reports of this job, and their sound, are to be held."""
        guess = self._guess
        if guess is None:
            return False
        return job_id == guess.job_id or (guess.prepared is not None and job_id == guess.prepared.job_id)

    def follow(self, prospect: Prospect | None) -> None:
        """Says what would be asked now; None where nothing would. A guess at anything else is dropped."""
        if self._guess is not None and self._guess.prospect != prospect:
            self._drop()
        if prospect is None or prospect.silence == self._tried:
            return
        self._tried = prospect.silence
        job_id = self._out.start(prospect.work, self._out.rules.reply_within_us, speculative=True)
        self._guess = Guess(prospect, job_id, self._out.now)
        self._figures.replies_started += 1

    def take(self, work: Reply) -> Guess | None:
        """Gives the guess away to whoever is about to start this work; None where there is none at just this work."""
        guess = self._guess
        if guess is None or guess.prospect.work != work:
            return None
        self._guess = None
        self._figures.replies_used += 1
        self._figures.replies_saved_us += self._out.now - guess.began_us
        return guess

    def report(self, report: Report) -> None:
        """Holds what a worker answered."""
        guess = self._guess
        assert guess is not None
        if isinstance(report, Failed):
            if report.job_id == guess.job_id:
                self._drop()
            else:
                self._drop_sound(guess)
            return
        if len(guess.held) >= MOST_REPORTS:
            self._drop()
            return
        guess.held.append(report)
        match report:
            case ReplyText():
                self._written(guess, guess.sentences.feed(report.text))
            case Replied():
                self._written(guess, guess.sentences.close())
            case SpeechPiece():
                guess.samples += report.samples
                if guess.samples > MOST_SAMPLES:
                    self._drop_sound(guess)
            case _:
                pass
        if guess.token_us is None and isinstance(report, ReplyText | ReplyCall):
            guess.token_us = self._out.now

    def _written(self, guess: Guess, sentences: tuple[Sentence, ...]) -> None:
        """Has the first sentence that can be spoken made into sound."""
        if not guess.prospect.speaks or guess.has_spoken:
            return
        text = next((said for sentence in sentences if (said := speakable(sentence.text)).strip()), None)
        if text is None:
            return
        guess.has_spoken = True
        guess.sentence_us = self._out.now
        work = Speak(text=text, speed=guess.prospect.speed)
        job_id = self._out.start(work, self._out.rules.speak_within_us, speculative=True)
        guess.prepared = Prepared(job_id, work)

    def _drop(self) -> None:
        guess, self._guess = self._guess, None
        assert guess is not None
        self._out.cancel(guess.job_id)
        self._drop_sound(guess)
        self._figures.replies_dropped += 1

    def _drop_sound(self, guess: Guess) -> None:
        prepared, guess.prepared = guess.prepared, None
        if prepared is not None:
            self._out.cancel(prepared.job_id)
            guess.held = [report for report in guess.held if report.job_id != prepared.job_id]


def carry_over(guess: Guess, times: TurnTimes | None) -> None:
    """Says when the stages of an answer were reached that was begun early."""
    if times is not None:
        times.early = "reply"
        times.token_us = guess.token_us
        times.sentence_us = guess.sentence_us
