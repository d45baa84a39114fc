"""Responses in a call's playout (heart): which of them began to sound, how far they were played, when each fell silent.

A response may begin while an older one still sounds; whoever interrupts silences both.
"""

from orchestrator.sessions.effects import FinishPlayout, FlushPlayout, ResumePlayout
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.response import OUTPUT_RATE_HZ, ResponseRun
from orchestrator.wire import server as wire

_FAR_AHEAD = 30 * OUTPUT_RATE_HZ


class Playback:
    """Holds responses in the order of their sound. Each is told as started, and then once as stopped or cleared.

    A call that is lost may come back: until then its sound is held where it was, and what is made meanwhile waits
    behind it.
    """

    def __init__(self, out: Outbound) -> None:
        self.has_call = False
        """Whether responses sound in a call, be it one that was lost a moment ago."""
        self.is_held = False
        """Whether there is nothing now on which they could sound."""
        self._out = out
        self._runs: list[ResponseRun] = []

    @property
    def responses(self) -> tuple[str, ...]:
        """The responses that sound or are about to."""
        return tuple(run.id for run in self._runs) if self._runs else ()

    def holds(self, run: ResponseRun) -> bool:
        return run in self._runs

    @property
    def is_silent(self) -> bool:
        return not self._runs

    @property
    def is_far_ahead(self) -> bool:
        """Whether so much sound waits to be played that more of it need not be made yet."""
        if not self._runs:
            return False
        return sum(run.sent_samples - (run.played_samples or 0) for run in self._runs) > _FAR_AHEAD

    def call_came(self) -> None:
        """A track is there, of a first call or of another: it plays on where the one before has stopped."""
        self.has_call, self.is_held = True, False
        for run in self._runs:
            played = min(run.played_samples or 0, run.sent_samples)
            self._out.do(ResumePlayout(run.id, played, run.sent_samples))
            if run.done:
                self._out.do(FinishPlayout(run.id))

    def begin(self, run: ResponseRun) -> None:
        """The first sound of a response goes to the track."""
        run.played_samples = 0
        self._runs.append(run)
        self._out.emit(wire.PlayoutStarted(run.id))

    def finish(self, run: ResponseRun) -> None:
        """A response is done: it falls silent once all of it was played."""
        if run in self._runs:
            self._out.do(FinishPlayout(run.id))

    def moved(self, response_id: str, samples: int) -> None:
        """The track has sent so much of a response."""
        for run in self._runs:
            if run.id == response_id:
                run.played_samples = samples

    def ended(self, response_id: str) -> None:
        """The track has sent all of a response that is done."""
        for run in self._runs:
            if run.id == response_id and run.done:
                run.played_samples = run.sent_samples
                self._runs.remove(run)
                self._out.emit(wire.PlayoutStopped(run.id))
                return

    def silence(self) -> list[ResponseRun]:
        """Stops all sound at once; returns what was cut."""
        runs, self._runs = self._runs, []
        if runs:
            self._out.do(FlushPlayout())
            self._out.emit(*(wire.PlayoutCleared(run.id) for run in runs))
        return runs
