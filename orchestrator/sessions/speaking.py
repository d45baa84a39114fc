"""The assistant's side of a session (heart): responses, their sound, and how the user's voice cuts them.

At most one response runs in the default conversation; out-of-band ones may run beside it. Whoever cancels a response
closes it on the wire at once: reports of its jobs that come later find no owner and are dropped.
"""

from collections import OrderedDict
from typing import Literal

from msgspec import UNSET

from modalities.text.sentences import speakable
from orchestrator.errors import WireError
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    ReplyCall,
    ReplyText,
    Report,
    Speak,
    SpeechPiece,
    Spoke,
)
from orchestrator.sessions.asking import reply_work, response_shape
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.effects import EmitAudio, FinishPlayout, FlushPlayout
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.response import ResponseRun, ResponseShape, Spoken
from orchestrator.sessions.states import MOUTH, Machine, Mouth, MouthEvent
from orchestrator.wire import server as wire
from orchestrator.wire.client import ItemReference, ResponseParams
from orchestrator.wire.items import Item, ItemStatus, Message
from orchestrator.wire.session import Session

_REMEMBERED_RUNS = 32
_TRUNCATE_TOLERANCE_MS = 500


class Speaker:
    """Makes responses out of prompts and worker reports, and takes them back."""

    def __init__(
        self, out: Outbound, conversation: Conversation, view: Session, conversation_id: str
    ) -> None:
        self.mouth: Machine[Mouth, MouthEvent] = Machine("mouth", MOUTH, Mouth.SILENT)
        self.view = view
        self.has_call = False
        self.audio_started = False
        self.current: ResponseRun | None = None
        self._out = out
        self._conversation = conversation
        self._conversation_id = conversation_id
        self._asides: dict[str, ResponseRun] = {}
        self._params: dict[str, ResponseParams] = {}
        self._last: ResponseRun | None = None
        self._owners: dict[str, ResponseRun] = {}
        self._runs: OrderedDict[str, ResponseRun] = OrderedDict()

    @property
    def busy(self) -> bool:
        """Whether any response still runs."""
        return self.current is not None or bool(self._asides)

    @property
    def sounding(self) -> str | None:
        """The response that a call is playing or about to play."""
        for run in (self.current, self._last if self.mouth.state is Mouth.PLAYING else None):
            if run is not None and run.played_samples is not None:
                return run.id
        return None

    # -- beginning --------------------------------------------------------------------------------------------------

    def create(self, params: ResponseParams, turn_id: int, automatic: bool = False) -> ResponseRun:
        """Begins a response. Raises `WireError` where one runs already in the default conversation. `automatic`: the
        server makes it by itself, and makes it again should it be taken back unheard for nothing."""
        aside = params.conversation == "none"
        if not aside and self.current is not None:
            raise WireError(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self.current.id}. Wait until the response "
                "is finished before creating a new one.",
            )
        shape = self._shape(params)
        for given in params.input or ():
            if isinstance(given, ItemReference) and self._conversation.get(given.id) is None:
                raise WireError(
                    "invalid_value", f"There is no item '{given.id}' in the conversation", "response.input"
                )
        run = ResponseRun(self._out.ids, shape, turn_id, automatic)
        if aside:
            self._asides[run.id] = run
        else:
            self.current = run
            self.mouth.on(MouthEvent.REPLY_BEGAN)
        self._params[run.id] = params
        self._out.emit(*run.begin())
        self.advance()
        return run

    def advance(self) -> None:
        """Starts the model for responses whose context is complete (no transcript missing)."""
        if not self._params:
            return
        for run in (self.current, *self._asides.values()):
            if run is not None and run.id in self._params and not self._conversation.pending():
                params = self._params.pop(run.id)
                work = reply_work(self.view, params, self._conversation, self._conversation_id)
                run.reply_job = self._out.start(work, self._out.rules.reply_within_us)
                self._owners[run.reply_job] = run

    def _shape(self, params: ResponseParams) -> ResponseShape:
        aside = params.conversation == "none"
        return response_shape(
            self.view, params, None if aside else self._conversation_id, self._out.rules.speech_output
        )

    def fail_turn(self, error: wire.ErrorBody, turn_id: int) -> None:
        """Reports a turn that could not be answered: a response that fails at once (design §11)."""
        if self.current is not None:
            return
        shape = self._shape(ResponseParams())
        run = ResponseRun(self._out.ids, shape, turn_id)
        self._out.emit(*run.begin(), *run.end("failed", error=error))

    # -- reports ----------------------------------------------------------------------------------------------------

    def owns(self, job_id: str) -> bool:
        return job_id in self._owners

    def report(self, report: Report) -> None:
        """Takes what a model or the synthesiser answered for a response that still wants it."""
        run = self._owners[report.job_id]
        match report:
            case ReplyText():
                self._more_text(run, report.text)
            case ReplyCall():
                self._more_call(run, report)
            case Replied():
                self._owners.pop(report.job_id)
                self._written(run, report)
            case SpeechPiece():
                self._more_sound(run, report)
            case Spoke():
                self._owners.pop(report.job_id)
                run.spoke(report.job_id)
                self._maybe_complete(run)
            case Failed():
                self._owners.pop(report.job_id)
                error = wire.ErrorBody(type="server_error", message=report.message, code=report.code)
                self._stop(run, "failed", error=error)
            case _:
                self._owners.pop(report.job_id)

    def _more_text(self, run: ResponseRun, text: str) -> None:
        if not text:
            return
        if run.message is None:
            self._show_item(run, run.open_message())
            self._out.emit(*run.message_opened())
        events, sentences = run.add_text(text, self._out.now)
        self._out.emit(*events)
        for sentence in sentences:
            self._speak(run, sentence.text, sentence.start, sentence.stop)

    def _speak(self, run: ResponseRun, text: str, start: int, stop: int) -> None:
        text = speakable(text)
        if not self._out.rules.speech_output or not text.strip():
            return
        job = self._out.start(
            Speak(text=text, speed=self.view.audio.output.speed), self._out.rules.speak_within_us
        )
        run.spoken.append(Spoken(job, start, stop))
        self._owners[job] = run

    def _more_call(self, run: ResponseRun, report: ReplyCall) -> None:
        if not run.has_call(report.index):
            self._show_item(run, run.open_call(report.index, report.name or ""))
        self._out.emit(*run.add_arguments(report.index, report.arguments))

    def _show_item(self, run: ResponseRun, item: Item) -> None:
        self._out.emit(wire.OutputItemAdded(run.id, run.output_index(item), item))
        if run.in_conversation:
            entry = Entry(item, began_us=self._out.now, response_id=run.id)
            self._out.emit(wire.ItemAdded(item, self._conversation.add(entry)))

    def _written(self, run: ResponseRun, report: Replied) -> None:
        run.count(report)
        run.reply_job = None
        for sentence in run.close_text():
            self._speak(run, sentence.text, sentence.start, sentence.stop)
        cut_short = report.finish_reason == "length" and run.shape.max_output_tokens != "inf"
        run.final_status = "incomplete" if cut_short else "completed"
        self._maybe_complete(run)

    def _more_sound(self, run: ResponseRun, report: SpeechPiece) -> None:
        if run.sent_samples == 0 and self.has_call and run.in_conversation:
            self._out.emit(wire.PlayoutStarted(run.id))
            run.played_samples = 0
        if not run.add_sound(report.job_id, report.samples, self._out.now):
            return
        self.audio_started = True
        self._out.do(
            EmitAudio(
                run.id,
                str(run.message_id),
                run.message_index,
                0,
                report.job_id,
                report.index,
                run.shape.format,
            )
        )

    def _maybe_complete(self, run: ResponseRun) -> None:
        if not run.written or run.speaking or run.done:
            return
        status = run.final_status or "completed"
        if status == "incomplete":
            self._close_items(run, "incomplete")
            self._out.emit(*run.end("incomplete", reason="max_output_tokens"))
        else:
            self._close_items(run, "completed")
            self._out.emit(*run.end("completed"))
        self._leave(run)

    # -- ending -----------------------------------------------------------------------------------------------------

    def _close_items(self, run: ResponseRun, status: ItemStatus) -> None:
        for events, item in run.close_items(status):
            self._out.emit(*events)
            self._out.emit(wire.OutputItemDone(run.id, run.output_index(item), item))
            entry = self._conversation.get(str(item.id)) if run.in_conversation else None
            if entry is not None:
                entry.item = item
                self._out.emit(wire.ItemDone(item, self._conversation.previous_of(entry.id)))

    def _leave(self, run: ResponseRun, event: MouthEvent | None = None) -> None:
        """Forgets a finished response's claims; what still sounds of it stays known."""
        self._params.pop(run.id, None)
        if not run.in_conversation:
            self._asides.pop(run.id, None)
            return
        self.current = None
        self._last = run
        if run.message is not None:
            self._runs[str(run.message_id)] = run
            while len(self._runs) > _REMEMBERED_RUNS:
                self._runs.popitem(last=False)
        sounding = run.sent_samples > 0 and run.played_samples is not None
        if event is None:
            event = MouthEvent.REPLY_ENDED_SOUNDING if sounding else MouthEvent.REPLY_ENDED
        if event is not MouthEvent.CUT and sounding:
            self._out.do(FinishPlayout(run.id))
        self.mouth.on(event)

    def _stop(
        self,
        run: ResponseRun,
        status: Literal["cancelled", "failed"],
        reason: Literal["turn_detected", "client_cancelled"] | None = None,
        error: wire.ErrorBody | None = None,
        flush: bool = False,
    ) -> None:
        """Closes a running response on the wire at once and takes its jobs back."""
        self._out.cancel(run.reply_job)
        for job_id in [job for job, owner in self._owners.items() if owner is run]:
            del self._owners[job_id]
            if job_id != run.reply_job:
                self._out.cancel(job_id)
        run.reply_job = None
        if flush and run.played_samples is not None:
            self._out.do(FlushPlayout())
            self._out.emit(wire.PlayoutCleared(run.id))
        self._close_items(run, "incomplete")
        self._out.emit(*run.end(status, reason or UNSET, error or UNSET))
        self._leave(run, MouthEvent.CUT if flush else None)

    def cancel(self, response_id: str | None) -> None:
        """The client's `response.cancel`. Raises `WireError` where nothing runs.

        What was not made into sound by then was not said; what is in the playout goes on until the client clears it.
        """
        run = self.current
        if response_id is not None and (run is None or run.id != response_id):
            run = self._asides.get(response_id)
        if run is None:
            raise WireError(
                "response_cancel_not_active", "Cancellation failed: no active response found", "response_id"
            )
        self._stop(run, "cancelled", reason="client_cancelled")
        entry = self._conversation.get(str(run.message_id))
        if entry is not None and run.shape.modality == "audio" and run.in_conversation:
            entry.heard = run.heard_until(run.sent_samples)

    def interrupt(self) -> bool:
        """The user speaks or types: the running or sounding response stops, history keeps what was heard.

        Returns True where an automatic reply was taken back of which nothing had been heard: its turn has no answer.
        """
        run = self.current
        if run is not None:
            self._stop(run, "cancelled", reason="turn_detected", flush=True)
        else:
            run = self._last
            if run is None or run.message is None:
                return False
            if self.mouth.state is Mouth.PLAYING:
                self._out.do(FlushPlayout())
                self._out.emit(wire.PlayoutCleared(run.id))
                self.mouth.on(MouthEvent.CUT)
        self._last = None
        return self._keep_heard(run) and run.automatic

    def _keep_heard(self, run: ResponseRun) -> bool:
        """Cuts the interrupted message to what was heard; nothing heard takes it back altogether (True then)."""
        if run.message is None:
            return True
        item_id = str(run.message_id)
        entry = self._conversation.get(item_id)
        if entry is None:
            return False
        heard = run.heard(self._out.now, self._out.rules.text_grace_us)
        if not heard:
            self._conversation.remove(item_id, remember=True)
            self._out.emit(wire.ItemDeleted(item_id))
        elif run.shape.modality == "text":
            if run.final_status == "cancelled":
                self._conversation.cut(item_id, heard)
        elif len(heard) < len(run.text.rstrip()):
            if run.played_samples is not None:
                self._conversation.cut(item_id, heard)
                played_ms = run.heard_samples(self._out.now) * 1_000 // 24_000
                self._out.emit(wire.ItemTruncated(item_id, 0, played_ms))
            else:
                entry.heard = heard  # until the client says exactly what it played
        return not heard

    def clear_playout(self) -> None:
        """The client's `output_audio_buffer.clear`: stops the sound; the response's words end there too."""
        run = self.current or self._last
        if run is None or run.played_samples is None or self.mouth.state is Mouth.SILENT:
            return
        self._out.do(FlushPlayout())
        self._out.emit(wire.PlayoutCleared(run.id))
        if self.mouth.state is Mouth.PLAYING:
            self.mouth.on(MouthEvent.CUT)
            self._last = None
            self._keep_heard(run)

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> None:
        """The client's `conversation.item.truncate`: history really ends there. Raises `WireError`; harmless then."""
        entry = self._conversation.get(item_id)
        if entry is None:
            if self._conversation.taken_back(item_id) is not None:
                self._out.emit(wire.ItemTruncated(item_id, content_index, audio_end_ms))
                return
            raise WireError("item_truncate_invalid_item_id", f"There is no item '{item_id}'", "item_id")
        run = self.current if self.current and self.current.message_id == item_id else self._runs.get(item_id)
        if not isinstance(entry.item, Message) or entry.item.role != "assistant":
            raise WireError("invalid_value", "Only assistant messages can be truncated", "item_id")
        if content_index != 0:
            raise WireError("invalid_value", "The item has one content part: expected 0", "content_index")
        if run is not None:
            if audio_end_ms > run.produced_ms + _TRUNCATE_TOLERANCE_MS:
                raise WireError(
                    "invalid_value",
                    f"Audio content of {run.produced_ms}ms is already shorter than {audio_end_ms}ms",
                    "audio_end_ms",
                )
            heard = run.heard_until(min(run.sent_samples, audio_end_ms * 24))
            run.played_samples = None if run.played_samples is None else run.heard_samples(self._out.now)
            self._conversation.cut(item_id, heard)
        elif audio_end_ms == 0:
            self._conversation.cut(item_id, "")
        self._out.emit(wire.ItemTruncated(item_id, content_index, audio_end_ms))

    # -- playout ----------------------------------------------------------------------------------------------------

    def played(self, response_id: str, samples: int) -> None:
        """A call's track has sent so much of a response."""
        for run in (self.current, self._last):
            if run is not None and run.id == response_id and run.played_samples is not None:
                run.played_samples = samples

    def played_out(self, response_id: str) -> None:
        """A call's track has sent all of a finished response."""
        run = self._last
        if run is None or run.id != response_id or self.mouth.state is not Mouth.PLAYING:
            return
        run.played_samples = run.sent_samples
        self.mouth.on(MouthEvent.PLAYED_OUT)
        self._out.emit(wire.PlayoutStopped(run.id))

    def call_left(self) -> None:
        """The call is gone: nothing sounds any more; what was played so far stays known."""
        self.has_call = False
        if self.mouth.state is Mouth.PLAYING:
            self.mouth.on(MouthEvent.CUT)
            run, self._last = self._last, None
            if run is not None:
                self._keep_heard(run)
