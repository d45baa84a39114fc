"""The meaning of what the user said and typed (heart): one job for each text, begun early where it is known early."""

from dataclasses import dataclass

from msgspec import UNSET

from orchestrator.scheduling.work import REFUSED, Failed, Report, Understand, Understood
from orchestrator.sessions.outbound import Outbound
from orchestrator.wire import server as wire
from orchestrator.wire.session import Session


@dataclass(slots=True)
class _Guess:
    """A text that will be asked about if its turn ends so."""

    text: str
    job_id: str | None
    answer: Understood | None = None


class Understanding:
    """Has texts understood, each under a name of its owner's. Clients that asked for ``chorale.token`` are told."""

    def __init__(self, out: Outbound) -> None:
        self._out = out
        self._names: dict[str, str] = {}
        self._begun_early: dict[str, str] = {}
        """Texts of jobs among them that were guesses."""
        self._guess: _Guess | None = None

    @property
    def waiting(self) -> bool:
        """Whether an answer is still to come that somebody asked for."""
        return bool(self._names)

    def ahead(self, text: str) -> None:
        """Has a text understood that may be what was said. It is done only where it makes nobody wait, and once."""
        if self._guess is not None and self._guess.text == text:
            return
        self.forget()
        job = self._out.start(Understand(text=text), self._out.rules.understand_within_us, speculative=True)
        self._guess = _Guess(text, job)

    def forget(self) -> None:
        """Takes back what was begun early."""
        guess, self._guess = self._guess, None
        if guess is not None and guess.job_id is not None:
            self._out.cancel(guess.job_id)

    def start(self, name: str, text: str) -> Understood | None:
        """Has a text understood; returns what is known of it already. Otherwise `report` brings the name back."""
        guess = self._guess
        if guess is not None and guess.text == text:
            self._guess = None
            if guess.answer is not None:
                return guess.answer
            if guess.job_id is not None:
                self._names[guess.job_id] = name
                self._begun_early[guess.job_id] = text
                return None
        self._start(name, text)
        return None

    def _start(self, name: str, text: str) -> None:
        job = self._out.start(Understand(text=text), self._out.rules.understand_within_us)
        self._names[job] = name

    def owns(self, job_id: str) -> bool:
        guess = self._guess
        return job_id in self._names or (guess is not None and job_id == guess.job_id)

    def report(self, report: Report) -> tuple[str, Understood | None] | None:
        """Takes an answer; returns whose it is, and None where the work failed. Nobody's (yet) is kept. What was
        refused as a guess, and is wanted by now, is begun anew."""
        answer = report if isinstance(report, Understood) else None
        name, text = self._names.pop(report.job_id, None), self._begun_early.pop(report.job_id, None)
        if name is not None:
            refused = isinstance(report, Failed) and report.code == REFUSED
            if text is None or not refused or not self._out.rules.gives_way:
                return name, answer
            self._start(name, text)
            return None
        assert self._guess is not None
        self._guess.job_id, self._guess.answer = None, answer
        return None

    def show(self, item_id: str, found: Understood, view: Session) -> None:
        """Tells clients who want to know what was understood of an item."""
        extension = view.chorale
        if extension is UNSET or "chorale.token" not in extension.events:
            return
        slots = tuple(wire.Slot(s.name, s.value, round(s.confidence, 4)) for s in found.slots)
        self._out.emit(wire.TokenUnderstood(item_id, found.intent, round(found.confidence, 4), slots))
