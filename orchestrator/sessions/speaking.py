"""The assistant's side of a session (heart): responses, their sound, and how the user's voice cuts them.

At most one response runs in the default conversation; out-of-band ones may run beside it. Whoever cancels a response
closes it on the wire at once: reports of its jobs that come later find no owner and are dropped.
"""

from typing import Literal

from msgspec import UNSET

from orchestrator.errors import WireError
from orchestrator.scheduling.work import (
    ENDS_A_JOB,
    Failed,
    Replied,
    ReplyCall,
    ReplyText,
    Report,
    SpeechPiece,
    Spoke,
)
from orchestrator.sessions import asking
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.faltering import Faltering
from orchestrator.sessions.figures import TurnTimes
from orchestrator.sessions.foresight import Foresight
from orchestrator.sessions.head_start import Guess, HeadStart, Prospect, carry_over
from orchestrator.sessions.hearing import Hearing
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.playback import Playback
from orchestrator.sessions.response import ResponseRun, ResponseShape
from orchestrator.sessions.showing import Showing
from orchestrator.sessions.states import MOUTH, Machine, Mouth, MouthEvent
from orchestrator.sessions.voicing import Voicing
from orchestrator.wire import server as wire
from orchestrator.wire.client import ResponseParams
from orchestrator.wire.session import Session


class Speaker:
    """Makes responses out of prompts and worker reports, and takes them back."""

    def __init__(
        self,
        out: Outbound,
        conversation: Conversation,
        view: Session,
        conversation_id: str,
        head_start: HeadStart,
    ) -> None:
        self.mouth: Machine[Mouth, MouthEvent] = Machine("mouth", MOUTH, Mouth.SILENT)
        self.view = view
        self.playback = Playback(out)
        self.audio_started = False
        self.heard_by_us: int | None = None
        """When the last response has been heard whole, by `Attendance.attended_us`; None where it was not to be."""
        self.current: ResponseRun | None = None
        self._out = out
        self._conversation = conversation
        self._conversation_id = conversation_id
        self._head_start = head_start
        self._voicing = Voicing(out, self.playback)
        self._hearing = Hearing(out, conversation)
        self._showing = Showing(out, conversation)
        self._faltering = Faltering(out)
        self.offered: list[tuple[int, str]] = []
        """What was said in answer to which turn, since somebody looked."""
        self._asides: dict[str, ResponseRun] = {}
        self._params: dict[str, ResponseParams] = {}
        self._foresight = Foresight(conversation, conversation_id, out.rules.speech_output)
        self._last: ResponseRun | None = None
        self._owners: dict[str, ResponseRun] = {}

    @property
    def busy(self) -> bool:
        """Whether any response still runs."""
        return bool(self._running())

    # -- beginning --------------------------------------------------------------------------------------------------

    def create(
        self, params: ResponseParams, turn_id: int, automatic: bool = False, times: TurnTimes | None = None
    ) -> ResponseRun:
        """Begins a response. Raises `WireError` where one runs already in the default conversation. `automatic`: the
        server makes it by itself, and makes it again should it be taken back unheard for nothing. `times` are noted
        where it answers a spoken turn. Too many out of band: it fails at once."""
        is_bounded = params.conversation == "none" and self._out.rules.heeds
        if is_bounded and len(self._asides) >= asking.MAX_ASIDES:
            return self.fail(params, asking.TOO_MANY_ASIDES, turn_id)
        run = self._begin(params, turn_id, automatic, times)
        self._params[run.id] = params
        self._out.emit(*run.begin())
        self.advance()
        return run

    def _begin(
        self, params: ResponseParams, turn_id: int, automatic: bool = False, times: TurnTimes | None = None
    ) -> ResponseRun:
        aside = params.conversation == "none"
        if not aside and self.current is not None:
            raise asking.already_active(self.current.id)
        asking.check_inputs(params, self._conversation)
        run = ResponseRun(self._out.ids, self._shape(params), turn_id, automatic)
        run.times, run.params, run.asked_us = times, params, self._out.now
        if aside:
            self._asides[run.id] = run
        else:
            self.current = run
            self.mouth.on(MouthEvent.REPLY_BEGAN)
        return run

    def advance(self) -> None:
        """Starts the model for responses whose context is complete (no transcript missing)."""
        if not self._params:
            return
        for run in self._running():
            if run.id in self._params and self._conversation.is_complete():
                params = self._params.pop(run.id)
                run.asked_us = self._out.now
                try:
                    work = asking.reply_work(self.view, params, self._conversation, self._conversation_id)
                except WireError as error:
                    self._stop(run, "failed", error=asking.failed_to_ask(error))
                    continue
                guess = self._head_start.take(work)
                if guess is not None:
                    self._go_on(run, guess)
                    continue
                run.reply_job = self._out.start(work, self._out.rules.reply_within_us)
                self._owners[run.reply_job] = run

    def _go_on(self, run: ResponseRun, guess: Guess) -> None:
        """Makes a guess that came true the reply: what was held of it happens now."""
        carry_over(guess, run.times)
        run.reply_job = guess.job_id
        run.guesses[guess.job_id] = guess.prospect.work
        self._voicing.prepared = guess.prepared
        self._owners[guess.job_id] = run
        for report in guess.held:
            if self.owns(report.job_id):
                self.report(report)
        self._voicing.take_back()

    def foresee(self, silence: tuple[str, int], entry: Entry | None = None) -> Prospect | None:
        """Returns what would be asked if the user's turn ended with this entry, or (None) once all of it is settled."""
        current = self.current if entry is None else None
        params = ResponseParams() if current is None else self._params.get(current.id, ResponseParams())
        return self._foresight.of(self.view, params, silence, entry)

    @property
    def is_waiting(self) -> bool:
        """Whether the running response has not been put to a model yet."""
        return self.current is not None and self.current.id in self._params

    def _shape(self, params: ResponseParams) -> ResponseShape:
        return asking.response_shape(self.view, params, self._conversation_id, self._out.rules.speech_output)

    def fail(self, params: ResponseParams, error: wire.ErrorBody, turn_id: int) -> ResponseRun:
        """Reports a turn that cannot be answered: a response that fails at once (design §11)."""
        run = ResponseRun(self._out.ids, self._shape(params), turn_id)
        self._out.emit(*run.begin(), *run.end("failed", error=error))
        return run

    def say(
        self, turn_id: int, reports: tuple[ReplyText | ReplyCall, ...], times: TurnTimes | None = None
    ) -> None:
        """Makes a response of these pieces; no model is asked."""
        run = self._begin(ResponseParams(), turn_id, automatic=True, times=times)
        self._out.emit(*run.begin())
        for report in reports:
            self._more(run, report)
        self._written(run, Replied("", "stop"))

    def _more(self, run: ResponseRun, report: ReplyText | ReplyCall) -> None:
        self._showing.more(run, report)
        if run.unspoken:
            self._speak(run)

    # -- reports ----------------------------------------------------------------------------------------------------

    def owns(self, job_id: str) -> bool:
        return job_id in self._owners

    def report(self, report: Report) -> None:
        """Takes what a model or the synthesiser answered for a response that still wants it."""
        run = self._owners[report.job_id]
        if run.times is not None and run.times.token_us is None and isinstance(report, ReplyText | ReplyCall):
            run.times.token_us = self._out.now
        if type(report) in ENDS_A_JOB:
            self._owners.pop(report.job_id)
        match report:
            case ReplyText() | ReplyCall():
                self._more(run, report)
            case Replied():
                self._written(run, report)
            case SpeechPiece():
                self._more_sound(run, report)
            case Spoke():
                run.spoke(report.job_id)
                self._speak(run)
                self._maybe_complete(run)
            case Failed():
                self._failed(run, report)

    def _failed(self, run: ResponseRun, report: Failed) -> None:
        again = self._voicing.again(run, report)
        if again is not None:
            self._owners[again] = run
            return
        is_reply = report.job_id == run.reply_job
        if is_reply or not run.is_told:
            run.is_told = self._faltering.tell(report, "llm" if is_reply else "speech", self.view, run.id)
        if is_reply or not self._faltering.goes_on(report):
            self._stop(run, "failed", error=self._faltering.error(report))
            return
        run.stays_text(report.job_id)
        self._speak(run)
        self._maybe_complete(run)

    def _speak(self, run: ResponseRun) -> None:
        for job in self._voicing.speak(run, self.view.audio.output.speed):
            self._owners[job] = run

    def _written(self, run: ResponseRun, report: Replied) -> None:
        run.count(report)
        run.reply_job = None
        run.unspoken.extend(run.close_text())
        self._speak(run)
        cut_short = report.finish_reason == "length" and run.shape.max_output_tokens != "inf"
        run.final_status = "incomplete" if cut_short else "completed"
        self._maybe_complete(run)

    def _more_sound(self, run: ResponseRun, report: SpeechPiece) -> None:
        if run.sent_samples == 0 and self.playback.has_call:
            self.playback.begin(run)
        if not run.add_sound(report.job_id, report.samples, self._out.attended_us):
            return
        self.audio_started = True
        if run.times is not None and run.times.sound_us is None:
            run.times.sound_us = self._out.now
            self._showing.note(run)
        self._voicing.send(run, report)

    def _maybe_complete(self, run: ResponseRun) -> None:
        if not run.written or run.speaking or run.done:
            return
        cut = run.final_status == "incomplete"
        self._showing.end(run, "incomplete" if cut else "completed", "max_output_tokens" if cut else UNSET)
        self._leave(run)

    # -- ending -----------------------------------------------------------------------------------------------------

    def _leave(self, run: ResponseRun) -> None:
        """Forgets a finished response's claims; what still sounds of it stays known."""
        self._params.pop(run.id, None)
        self._showing.note(run)
        self.playback.finish(run)
        if not run.in_conversation:
            self._asides.pop(run.id, None)
            return
        self.current = None
        self.heard_by_us = run.heard_by_us(self._out.attended_us) if run.is_whole else None
        self._last = run
        if run.is_whole and run.text:
            self.offered.append((run.turn_id, run.text))
        self._hearing.remember(run)
        is_silent = self.playback.is_silent
        self.mouth.on(MouthEvent.REPLY_ENDED if is_silent else MouthEvent.REPLY_ENDED_SOUNDING)

    def _stop(
        self,
        run: ResponseRun,
        status: Literal["cancelled", "failed"],
        reason: Literal["turn_detected", "client_cancelled"] | None = None,
        error: wire.ErrorBody | None = None,
    ) -> None:
        """Closes a running response on the wire at once and takes its jobs back."""
        self._out.cancel(run.reply_job)
        for job_id in [job for job, owner in self._owners.items() if owner is run]:
            del self._owners[job_id]
            if job_id != run.reply_job:
                self._out.cancel(job_id)
        run.reply_job = None
        self._showing.end(run, status, reason or UNSET, error or UNSET)
        self._leave(run)

    def cancel(self, response_id: str | None) -> None:
        """The client's `response.cancel`. Raises `WireError` where nothing runs.

        What was not made into sound by then was not said; what is in the playout goes on until the client clears it.
        """
        run = self.current
        if response_id is not None and (run is None or run.id != response_id):
            run = self._asides.get(response_id)
        if run is None:
            raise asking.nothing_to_cancel()
        self._stop(run, "cancelled", reason="client_cancelled")
        self._hearing.cancelled(run)

    def abandon(self) -> bool:
        """Nobody is there any more: all responses that run stop. As `interrupt` for the one in the conversation; what a
        call that may come back has yet to hear of it stays."""
        for run in tuple(self._asides.values()):
            self._stop(run, "cancelled", reason="client_cancelled")
        if self.playback.is_held and self.current is not None and self.playback.holds(self.current):
            self.cancel(None)
            return False
        return self.current is not None and self.interrupt("client_cancelled")

    def interrupt(self, reason: Literal["turn_detected", "client_cancelled"] = "turn_detected") -> bool:
        """The user speaks or types: the running or sounding response stops, history keeps what was heard.

        Returns True where an automatic reply was taken back of which nothing had been heard: its turn has no answer.
        """
        cut = self._silence(reason)
        run = self.current
        if run is not None:
            self._stop(run, "cancelled", reason=reason)
            owes = run.automatic
        else:
            run = self._last
            owes = run is not None and run.message is not None and run.automatic and run.is_whole
        self._last = None
        for older in cut:
            if older is not run:
                self._hearing.interrupted(older)
        return run is not None and self._hearing.interrupted(run) and owes

    def take_back(self, unit: int) -> ResponseRun | None:
        """What was said in a turn has changed: the response that was made from it stops, and what was not heard of it
        is gone. Returns it, None where there was none."""
        run = self._last if self.current is None else self.current
        if run is None or run.turn_id < unit or run.id in self._params:
            return None
        if run is not self.current and not run.is_whole:
            return None
        self._silence("turn_detected")
        if run is self.current:
            self._stop(run, "cancelled", reason="turn_detected")
        self._last = None
        self._hearing.interrupted(run)
        return run

    def _silence(self, reason: Literal["turn_detected", "client_cancelled"]) -> list[ResponseRun]:
        """Stops the sound of a call; returns whose it was. Out-of-band responses that sounded end with it."""
        cut = self.playback.silence()
        if self.mouth.state is Mouth.PLAYING:
            self.mouth.on(MouthEvent.CUT)
        for run in cut:
            if not run.done and not run.in_conversation:
                self._stop(run, "cancelled", reason=reason)
        return cut

    def clear_playout(self) -> None:
        """The client's `output_audio_buffer.clear`: the sound stops, and a response that was still making it too; their
        words end there."""
        cut = self._silence("client_cancelled")
        for run in cut:
            if run is self.current:
                self._stop(run, "cancelled", reason="client_cancelled")
            self._hearing.interrupted(run)
        if self._last in cut:
            self._last = None

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> None:
        """The client's `conversation.item.truncate`. Raises `WireError`; harmless then."""
        self._hearing.truncate(item_id, content_index, audio_end_ms, self.current)

    # -- playout ----------------------------------------------------------------------------------------------------

    @property
    def waits_for_playout(self) -> bool:
        """Whether sentences are held back until more has been played."""
        return self.playback.is_far_ahead and any(run.unspoken for run in self._running())

    def played(self, response_id: str, samples: int) -> None:
        """A call's track has sent so much of a response."""
        self.playback.moved(response_id, samples)
        for run in self._running():
            self._speak(run)
            self._maybe_complete(run)

    def _running(self) -> tuple[ResponseRun, ...]:
        return (*(() if self.current is None else (self.current,)), *self._asides.values())

    def played_out(self, response_id: str) -> None:
        """A call's track has sent all of a finished response."""
        self.playback.ended(response_id)
        if self.mouth.state is Mouth.PLAYING and self.playback.is_silent:
            self.mouth.on(MouthEvent.PLAYED_OUT)

    def call_left(self) -> None:
        """The call is gone for good: nothing sounds any more; what was played so far stays known."""
        self.playback.has_call = self.playback.is_held = False
        self.clear_playout()
