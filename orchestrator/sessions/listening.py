"""The user's side of a session (heart): speech to utterances, utterances to items and transcripts.

Positions are 16 kHz samples since the stream began, so ``audio_*_ms`` on the wire are positions in milliseconds. Every
utterance ends in exactly one final transcript; drafts run while it is open and are shown as far as two agree.
"""

from collections.abc import Callable

from msgspec import UNSET

from modalities.audio.segmenter import BEGIN_WINDOWS, WINDOW, SegmentEvent, SpeechBegan, SpeechEnded
from orchestrator.buffers.timeline import SAMPLE_RATE_HZ, Timeline
from orchestrator.errors import WireError
from orchestrator.scheduling.work import REFUSED, Failed, Transcribe, Transcribed
from orchestrator.sessions.asking import transcribe_work
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.drafts import Drafts
from orchestrator.sessions.end_point import EndPoint
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.faltering import Faltering
from orchestrator.sessions.figures import EarlyFigures, TurnTimes
from orchestrator.sessions.logprobs import logprobs_of
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.states import EAR, Ear, EarEvent, Machine
from orchestrator.sessions.turns import Turn, TurnWindow
from orchestrator.sessions.utterance import Attempt, Foreseen, Heard, Utterance
from orchestrator.wire import server as wire
from orchestrator.wire.items import OBJECT, InputAudio, Message
from orchestrator.wire.session import Session
from orchestrator.wire.splitting import parts_of

LEAST_COMMIT = SAMPLE_RATE_HZ // 10
"""A commit needs 100 ms of sound."""

_STILL_COMING = SAMPLE_RATE_HZ
"""Sound that may overwrite the oldest of a full buffer before its commit is carried out."""


class Listener:
    """Turns speech probabilities, commits and recogniser reports into items, events and jobs."""

    def __init__(
        self,
        out: Outbound,
        conversation: Conversation,
        turns: TurnWindow,
        view: Session,
        interrupt: Callable[[], None],
        figures: EarlyFigures,
    ) -> None:
        self.ear: Machine[Ear, EarEvent] = Machine("ear", EAR, Ear.QUIET)
        self.heard_to = 0
        self._out = out
        self._conversation = conversation
        self._turns = turns
        self._view = view
        self._interrupt = interrupt
        self._timeline = Timeline()
        self._end_point: EndPoint | None = None
        self._drafts = Drafts(out, figures)
        self._faltering = Faltering(out)
        self._said: list[Heard] = []
        self._buffer_start = 0
        self._open: Utterance | None = None
        self._jobs: dict[str, Utterance] = {}
        self.configure(view)

    @property
    def keep_from(self) -> int | None:
        """The first sample that may still be committed; None while nothing uncommitted matters."""
        if self._open is not None:
            return self._open.start
        return self._buffer_start if self._end_point is None else None

    @property
    def listen_at(self) -> int | None:
        """The position at which silence next decides something: an early attempt, then the end of the turn. None where
        nobody is speaking."""
        end_point = self._end_point
        if end_point is None or self._open is None:
            return None
        is_before = end_point.segmenter.position < end_point.tail_stop and self._out.rules.early_replies
        return min(end_point.tail_stop, end_point.certain_at) if is_before else end_point.certain_at

    @property
    def foreseen(self) -> Foreseen | None:
        """What was said, should the turn end with the silence it is in; None unless that is likely, and answered."""
        utterance, detection, end_point = self._open, self._view.audio.input.turn_detection, self._end_point
        if utterance is None or utterance.early is None or detection is None or end_point is None:
            return None
        answer, stop = utterance.early.answer, utterance.early.work.stop
        if answer is None or stop != end_point.tail_stop or end_point.is_doubtful or self.waiting:
            return None
        text = answer.text.strip()
        if not text or not detection.create_response:
            return None
        return Foreseen(utterance.item_id, stop, utterance.began_us, text)

    @property
    def early_text(self) -> str:
        """What was said, should the utterance end with the silence it is in; "" where that is not known."""
        utterance = self._open
        answer = None if utterance is None or utterance.early is None else utterance.early.answer
        return "" if answer is None else answer.text.strip()

    def said_as(self, item_id: str) -> Utterance | None:
        """Returns the utterance that is to become this item, or is being recognised as it; None where there is none."""
        under_way = (self._open, *self._jobs.values())
        return next((one for one in under_way if one is not None and one.item_id == item_id), None)

    def take(self) -> tuple[Heard, ...]:
        """Returns the final transcripts that came in since the last call."""
        said = tuple(self._said)
        self._said.clear()
        return said

    # -- what the client sets ---------------------------------------------------------------------------------------

    def configure(self, view: Session) -> None:
        """Follows the session's turn detection; speech that is going on keeps going on, or stays in the buffer where
        nobody detects its end any more."""
        self._view = view
        detection = view.audio.input.turn_detection
        if detection is None:
            if self._end_point is not None:
                # The silence before is not part of the buffer: it would fill it to the brim.
                self._buffer_start = max(
                    self._buffer_start, self.heard_to if self._open is None else self._open.start
                )
            self._drop_open()
            self._end_point = None
        elif self._end_point is None:
            self._end_point = EndPoint(detection, self._out.rules.max_utterance_s, self.heard_to)
        else:
            self._end_point.configure(detection)

    # -- sound ------------------------------------------------------------------------------------------------------

    def heard(self, event: AudioHeard) -> None:
        """Sound has come with its speech probabilities."""
        self.heard_to = max(self.heard_to, event.stop)
        self._timeline.note(event.stop, event.at_us, event.live)
        end_point = self._end_point
        if end_point is None:
            return
        self._follow(end_point.observe(event, self._open))
        if self._open is not None:
            shown = self._view.audio.input.transcription is not None
            clip = transcribe_work(self._view, 0, 0)
            self._drafts.follow(self._open, end_point.segmenter, clip, shown, end_point.is_semantic)

    def _follow(self, segments: tuple[SegmentEvent, ...]) -> None:
        for segment in segments:
            match segment:
                case SpeechBegan():
                    self._speech_began(segment.start_sample, segment.detected_sample - BEGIN_WINDOWS * WINDOW)
                case SpeechEnded():
                    self._speech_ended(segment.stop_sample)

    def _speech_began(self, start: int, spoken: int) -> None:
        """`start` includes the padding that the client asked for; the first word was `spoken` later."""
        detection = self._view.audio.input.turn_detection
        assert detection is not None
        item_id = self._out.ids.take("item")
        speaking = self.ear.state is not Ear.QUIET
        began_us = self._timeline.at(max(start, spoken))
        turn = self._turns.sign(began_us, speaking=speaking)
        self._open = Utterance(item_id, start, began_us, turn, drafted_to=start)
        self.ear.on(EarEvent.SPEECH_BEGAN)
        self._out.emit(wire.SpeechStarted(item_id, start * 1_000 // SAMPLE_RATE_HZ))
        if detection.interrupt_response:
            self._interrupt()

    def _speech_ended(self, stop: int) -> None:
        detection = self._view.audio.input.turn_detection
        utterance = self._open
        if utterance is None or detection is None:
            return
        self._out.emit(wire.SpeechStopped(utterance.item_id, stop * 1_000 // SAMPLE_RATE_HZ))
        self._turns.sign(self._timeline.at(stop), speaking=True)
        self.ear.on(EarEvent.SPEECH_ENDED)
        self._finish(utterance, stop, detection.create_response)

    # -- commit and clear -------------------------------------------------------------------------------------------

    def commit(self, position: int) -> None:
        """Ends the buffer at `position` by the client's word. Raises `WireError` where it holds under 100 ms."""
        oldest = position - int(self._out.rules.buffer_s * SAMPLE_RATE_HZ) + _STILL_COMING
        start = max(self._open.start if self._open is not None else self._buffer_start, oldest)
        if position - start < LEAST_COMMIT:
            held = max(0, position - start) * 1_000 // SAMPLE_RATE_HZ
            raise WireError(
                "input_audio_buffer_commit_empty",
                f"Error committing input audio buffer: the buffer is too small. Expected at least 100 ms of audio, "
                f"but buffer only has {held} ms of audio.",
            )
        utterance = self._open
        if utterance is None:
            turn = self._turns.sign(self._out.now, speaking=self.ear.state is not Ear.QUIET)
            item_id = self._out.ids.take("item")
            utterance = Utterance(item_id, start, self._timeline.at(start), turn, drafted_to=start)
        else:
            self._out.emit(wire.SpeechStopped(utterance.item_id, position * 1_000 // SAMPLE_RATE_HZ))
        self.heard_to = max(self.heard_to, position)
        if self._end_point is not None:
            self._end_point.segmenter.reset(position)
        detection = self._view.audio.input.turn_detection
        self.ear.on(EarEvent.COMMITTED)
        self._finish(utterance, position, detection is not None and detection.create_response)
        self._turns.close()

    def clear(self, position: int) -> None:
        """Throws the uncommitted buffer away; words of it never reach anything."""
        self.heard_to = max(self.heard_to, position)
        self._buffer_start = position
        if self._end_point is not None:
            self._end_point.segmenter.reset(position)
        self._drop_open()
        self._out.emit(wire.BufferCleared())

    def hang_up(self) -> None:
        """Nobody speaks any more: what was being said ends here and is written down. Who comes back begins anew."""
        self._speech_ended(self.heard_to)
        if self._end_point is not None:
            self._end_point.segmenter.reset(self.heard_to)

    def close(self) -> None:
        """The session has ended: nobody waits for what is still being recognised."""
        if self._open is not None:
            self._drafts.forget(self._open)
        for utterance in self._jobs.values():
            if utterance.early is not None:
                self._drafts.dropped()

    def _drop_open(self) -> None:
        utterance = self._open
        if utterance is None:
            return
        self._drafts.forget(utterance)
        self._open = None
        self.ear.on(EarEvent.SPEECH_ENDED if self.waiting else EarEvent.CLEARED)

    # -- utterance to item ------------------------------------------------------------------------------------------

    def _finish(self, utterance: Utterance, stop: int, create_response: bool) -> None:
        """Makes the item of an ended utterance and starts its final transcription, unless that has begun already."""
        work = transcribe_work(self._view, utterance.start, stop)
        attempt = self._drafts.finish(utterance, work)
        self._open = None
        self._buffer_start = stop
        utterance.stop = stop
        utterance.answered = create_response
        utterance.shown = self._is_shown(utterance)
        item = Message(
            role="user",
            content=(InputAudio(),),
            id=utterance.item_id,
            object=OBJECT,
            status="completed",
        )
        entry = Entry(item, began_us=utterance.began_us, pending=True)
        previous = self._conversation.add(entry)
        if utterance.turn is not None:
            utterance.turn.items.append(utterance.item_id)
        utterance.added = True
        self._out.emit(
            wire.BufferCommitted(utterance.item_id, previous),
            wire.ItemAdded(item, previous),
            wire.ItemDone(item, previous),
        )
        if utterance.unsent:
            self._delta(utterance, utterance.unsent)
            utterance.unsent = ""
        spoken = stop if self._end_point is None else min(stop, self._end_point.segmenter.last_speech_stop)
        utterance.stop_us = self._timeline.at(spoken)
        utterance.times = TurnTimes(utterance.stop_us, self._out.now)
        if attempt is None:
            self._recognise(utterance, work)
        else:
            self._go_on(utterance, attempt)

    def _recognise(self, utterance: Utterance, work: Transcribe) -> None:
        utterance.work = work
        self._jobs[self._out.start(work, self._out.rules.transcribe_within_us)] = utterance

    def _go_on(self, utterance: Utterance, attempt: Attempt) -> None:
        """Makes the early attempt the final transcription, or its answer the transcript."""
        assert utterance.times is not None
        utterance.times.early = "transcript"
        self._jobs[attempt.job_id] = utterance
        utterance.work = attempt.work
        utterance.early = attempt
        if attempt.answer is not None:
            utterance.times.transcript_us = attempt.answered_us
            self._answered(attempt.answer)

    def transcribe_clip(self, item_id: str, clip: str, turn: Turn | None) -> None:
        """Transcribes the sound that a client put into an item of its own."""
        utterance = Utterance(item_id, 0, self._out.now, turn, stop=0, added=True)
        utterance.shown = self._is_shown(utterance)
        self._recognise(utterance, transcribe_work(self._view, 0, 0, clip))
        if self.ear.state is not Ear.HEARING:
            self.ear.on(EarEvent.COMMITTED)

    # -- reports ----------------------------------------------------------------------------------------------------

    def owns(self, job_id: str) -> bool:
        return job_id in self._jobs or self._drafts.owns(job_id)

    @property
    def waiting(self) -> bool:
        """Whether a final transcript is still to come."""
        return bool(self._jobs)

    def report(self, report: Transcribed | Failed) -> None:
        """Takes a recogniser's answer; `take` returns what was said once it is final."""
        if not self._drafts.owns(report.job_id):
            self._answered(report)
            return
        recognised = self._drafts.report(report)
        if recognised is not None and isinstance(report, Transcribed):
            utterance, work = recognised
            self._drafted(utterance, report.text, work.stop)

    def _answered(self, report: Transcribed | Failed) -> None:
        """The last word of a final transcription."""
        utterance = self._jobs.pop(report.job_id)
        times = utterance.times
        attempt, utterance.early = utterance.early, None
        if attempt is not None and times is not None:
            if isinstance(report, Failed) and report.code == REFUSED:
                times.early = "none"
                self._drafts.dropped()
                self._recognise(utterance, attempt.work)
                return
            self._drafts.used(attempt, times.ended_us)
        if times is not None and times.transcript_us is None:
            times.transcript_us = self._out.now
        heard = (
            self._failed(utterance, report) if isinstance(report, Failed) else self._final(utterance, report)
        )
        if not self.waiting:
            self.ear.on(EarEvent.ALL_TRANSCRIBED)
        self._said.append(heard)

    def _drafted(self, utterance: Utterance, text: str, text_to: int) -> None:
        fresh = utterance.agreement.hypothesis(text)
        if fresh and self._view.audio.input.transcription is not None:
            if self._view.chorale is not UNSET:
                self._delta(utterance, fresh)
            else:
                utterance.unsent += fresh  # plain clients hear of an item only after it was added
        if utterance is self._open:
            utterance.text, utterance.text_to = text, text_to
            if self._end_point is not None:
                self._follow(self._end_point.settle(utterance))

    def _final(self, utterance: Utterance, report: Transcribed) -> Heard:
        text = report.text.strip()
        self._conversation.set_transcript(utterance.item_id, text)
        return Heard(
            utterance.item_id,
            text,
            utterance.turn,
            utterance.answered and bool(text),
            times=utterance.times,
            utterance=utterance,
            report=report,
        )

    def tell(self, heard: Heard, text: str) -> None:
        """Tells the client what was said in the end: `text`, which need not be what was recognised. Once for each."""
        utterance = heard.utterance
        if utterance is None or not self._is_shown(utterance):
            return
        rest = utterance.agreement.final(text)
        if rest:
            self._delta(utterance, rest)
        usage = wire.DurationUsage(round((utterance.stop - utterance.start) / SAMPLE_RATE_HZ, 3))
        sure = logprobs_of(self._view, heard.report, text)
        self._out.emit(wire.TranscriptionCompleted(utterance.item_id, 0, text, usage, sure))

    def _failed(self, utterance: Utterance, report: Failed) -> Heard:
        self._conversation.set_transcript(utterance.item_id, "")
        error = self._faltering.error(report)
        self._faltering.tell(report, "asr", self._view, item_id=utterance.item_id)
        if self._is_shown(utterance):
            self._out.emit(wire.TranscriptionFailed(utterance.item_id, 0, error))
        return Heard(utterance.item_id, "", utterance.turn, utterance.answered, error, utterance.times)

    def _is_shown(self, utterance: Utterance) -> bool:
        """Whether a client waits for the end of this transcript: who turns transcription off waits for what is under
        way."""
        return utterance.shown or self._view.audio.input.transcription is not None

    def _delta(self, utterance: Utterance, text: str) -> None:
        utterance.shown = True
        self._out.emit(*(wire.TranscriptionDelta(utterance.item_id, 0, part) for part in parts_of(text)))
