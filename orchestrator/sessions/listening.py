"""The user's side of a session (heart): speech to utterances, utterances to items and transcripts.

Positions are 16 kHz samples since the stream began, so ``audio_*_ms`` on the wire are positions in milliseconds. Every
utterance ends in exactly one final transcription job; drafts run while it is open and are shown as far as two agree.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import UNSET

from modalities.audio.patience import SemanticPatience
from modalities.audio.segmenter import (
    BEGIN_WINDOWS,
    WINDOW,
    Segmenter,
    SegmenterSettings,
    SegmentEvent,
    SpeechBegan,
    SpeechEnded,
)
from modalities.text.transcript import LocalAgreement
from orchestrator.buffers.timeline import SAMPLE_RATE_HZ, Timeline
from orchestrator.errors import WireError
from orchestrator.scheduling.work import Failed, Transcribe, Transcribed
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.states import EAR, Ear, EarEvent, Machine
from orchestrator.sessions.turns import Turn, TurnWindow
from orchestrator.wire import server as wire
from orchestrator.wire.items import OBJECT, InputAudio, Message
from orchestrator.wire.session import SemanticVad, ServerVad, Session

LEAST_COMMIT = SAMPLE_RATE_HZ // 10
"""A commit needs 100 ms of sound."""

_MISSED_AT_MOST = 3 * WINDOW
"""Of speech behind the end of a draft (96 ms): less than a word."""

_STILL_COMING = SAMPLE_RATE_HZ
"""Sound that may overwrite the oldest of a full buffer before its commit is carried out."""


@dataclass(slots=True)
class Utterance:
    """A stretch of the user's speech, from its start to its final transcript. `text` is what a draft made of the sound
    up to `text_to`; a draft up to `drafted_to` may be under way."""

    item_id: str
    start: int
    began_us: int
    turn: Turn | None
    stop: int = -1
    answered: bool = False
    added: bool = False
    agreement: LocalAgreement = field(default_factory=LocalAgreement)
    unsent: str = ""
    draft_job: str | None = None
    drafted_to: int = 0
    text: str = ""
    text_to: int = 0


@dataclass(frozen=True, slots=True)
class Heard:
    """A final transcript is in. `wants_reply`: the server makes the answer by itself."""

    item_id: str
    text: str
    turn: Turn | None
    wants_reply: bool
    error: wire.ErrorBody | None = None


class Listener:
    """Turns speech probabilities, commits and recogniser reports into items, events and jobs."""

    def __init__(
        self,
        out: Outbound,
        conversation: Conversation,
        turns: TurnWindow,
        view: Session,
        interrupt: Callable[[], None],
    ) -> None:
        self.ear: Machine[Ear, EarEvent] = Machine("ear", EAR, Ear.QUIET)
        self.heard_to = 0
        self._out = out
        self._conversation = conversation
        self._turns = turns
        self._view = view
        self._interrupt = interrupt
        self._timeline = Timeline()
        self._segmenter: Segmenter | None = None
        self._patience: SemanticPatience | None = None
        self._buffer_start = 0
        self._open: Utterance | None = None
        self._jobs: dict[str, Utterance] = {}
        self.configure(view)

    @property
    def keep_from(self) -> int | None:
        """The first sample that may still be committed; None while nothing uncommitted matters."""
        if self._open is not None:
            return self._open.start
        return self._buffer_start if self._segmenter is None else None

    # -- what the client sets ---------------------------------------------------------------------------------------

    def configure(self, view: Session) -> None:
        """Follows the session's turn detection; speech that is going on keeps going on, or stays in the buffer where
        nobody detects its end any more."""
        self._view = view
        detection = view.audio.input.turn_detection
        if detection is None:
            if self._segmenter is not None:
                # The silence before is not part of the buffer: it would fill it to the brim.
                self._buffer_start = max(
                    self._buffer_start, self.heard_to if self._open is None else self._open.start
                )
            self._drop_open()
            self._segmenter = self._patience = None
            return
        settings = self._settings(detection)
        self._patience = SemanticPatience(detection.eagerness) if isinstance(detection, SemanticVad) else None
        if self._segmenter is None:
            self._segmenter = Segmenter(settings)
            self._segmenter.reset(self.heard_to)
        else:
            self._segmenter.configure(settings)

    def _settings(self, detection: ServerVad | SemanticVad) -> SegmenterSettings:
        longest = self._out.rules.max_utterance_s
        if isinstance(detection, ServerVad):
            return SegmenterSettings(
                threshold=detection.threshold,
                prefix_padding_ms=detection.prefix_padding_ms,
                silence_ms=detection.silence_duration_ms,
                max_utterance_s=longest,
            )
        patience = SemanticPatience(detection.eagerness)
        return SegmenterSettings(silence_ms=patience.silence_ms(""), max_utterance_s=longest)

    # -- sound ------------------------------------------------------------------------------------------------------

    def heard(self, event: AudioHeard) -> None:
        """Sound has come with its speech probabilities."""
        self.heard_to = max(self.heard_to, event.stop)
        self._timeline.note(event.stop, event.at_us, event.live)
        if self._segmenter is None:
            return
        if self._patience is not None and self._open is not None:
            self._be_patient(self._segmenter, self._patience, self._open)
        self._follow(self._segmenter.observe(event.probabilities, event.first_window))
        self._draft()

    def _follow(self, segments: tuple[SegmentEvent, ...]) -> None:
        for segment in segments:
            match segment:
                case SpeechBegan():
                    self._speech_began(segment.start_sample, segment.detected_sample - BEGIN_WINDOWS * WINDOW)
                case SpeechEnded():
                    self._speech_ended(segment.stop_sample)

    def _be_patient(self, segmenter: Segmenter, patience: SemanticPatience, utterance: Utterance) -> None:
        """Grants the silence that the words so far ask for; words of a draft that missed the last of them say nothing:
        a recogniser puts a full stop behind half a sentence too."""
        missed = segmenter.last_speech_stop - utterance.text_to
        text = utterance.text if missed <= _MISSED_AT_MOST else ""
        longest = self._out.rules.max_utterance_s
        segmenter.configure(SegmenterSettings(silence_ms=patience.silence_ms(text), max_utterance_s=longest))

    def _speech_began(self, start: int, spoken: int) -> None:
        """`start` includes the padding that the client asked for; the first word was `spoken` later."""
        detection = self._view.audio.input.turn_detection
        assert detection is not None
        start = max(start, self._buffer_start)
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
        if self._segmenter is not None:
            self._segmenter.reset(position)
        detection = self._view.audio.input.turn_detection
        self.ear.on(EarEvent.COMMITTED)
        self._finish(utterance, position, detection is not None and detection.create_response)
        self._turns.close()

    def clear(self, position: int) -> None:
        """Throws the uncommitted buffer away; words of it never reach anything."""
        self.heard_to = max(self.heard_to, position)
        self._buffer_start = position
        if self._segmenter is not None:
            self._segmenter.reset(position)
        self._drop_open()
        self._out.emit(wire.BufferCleared())

    def hang_up(self) -> None:
        """Nobody speaks any more: what was being said ends here and is written down. Who comes back begins anew."""
        self._speech_ended(self.heard_to)
        if self._segmenter is not None:
            self._segmenter.reset(self.heard_to)

    def _drop_open(self) -> None:
        utterance = self._open
        if utterance is None:
            return
        if utterance.draft_job is not None:
            self._forget(utterance.draft_job)
        self._open = None
        self.ear.on(EarEvent.SPEECH_ENDED if self.waiting else EarEvent.CLEARED)

    # -- utterance to item ------------------------------------------------------------------------------------------

    def _finish(self, utterance: Utterance, stop: int, create_response: bool) -> None:
        """Makes the item of an ended utterance and starts its final transcription."""
        if utterance.draft_job is not None:
            self._forget(utterance.draft_job)
            utterance.draft_job = None
        self._open = None
        self._buffer_start = stop
        utterance.stop = stop
        utterance.answered = create_response
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
        job = self._out.start(
            self._transcribe(utterance.start, stop, draft=False), self._out.rules.transcribe_within_us
        )
        self._jobs[job] = utterance

    def transcribe_clip(self, item_id: str, clip: str, turn: Turn | None) -> None:
        """Transcribes the sound that a client put into an item of its own."""
        utterance = Utterance(item_id, 0, self._out.now, turn, stop=0, added=True)
        language, prompt = self._hints()
        work = Transcribe(start=0, stop=0, clip=clip, language=language, prompt=prompt)
        self._jobs[self._out.start(work, self._out.rules.transcribe_within_us)] = utterance
        if self.ear.state is not Ear.HEARING:
            self.ear.on(EarEvent.COMMITTED)

    def _transcribe(self, start: int, stop: int, draft: bool) -> Transcribe:
        language, prompt = self._hints()
        return Transcribe(start=start, stop=stop, draft=draft, language=language, prompt=prompt)

    def _hints(self) -> tuple[str | None, str | None]:
        transcription = self._view.audio.input.transcription
        if transcription is None:
            return None, None
        language = None if transcription.language is UNSET else str(transcription.language) or None
        prompt = "" if transcription.prompt is UNSET else str(transcription.prompt)
        if transcription.keywords is not UNSET:
            prompt = ", ".join((*((prompt,) if prompt else ()), *transcription.keywords))
        return language, prompt or None

    # -- drafts -----------------------------------------------------------------------------------------------------

    def _draft(self) -> None:
        """Starts a draft of the open utterance where one is due: at most one at a time."""
        utterance = self._open
        wanted = self._view.audio.input.transcription is not None or self._patience is not None
        if utterance is None or utterance.draft_job is not None or not wanted:
            return
        rules = self._out.rules
        fresh_us = (self.heard_to - utterance.drafted_to) * 1_000_000 // SAMPLE_RATE_HZ
        length_us = (self.heard_to - utterance.start) * 1_000_000 // SAMPLE_RATE_HZ
        if fresh_us < rules.draft_every_us or length_us > rules.max_draft_us:
            return
        utterance.drafted_to = self.heard_to
        work = self._transcribe(utterance.start, self.heard_to, draft=True)
        utterance.draft_job = self._out.start(work, rules.draft_every_us * 10)
        self._jobs[utterance.draft_job] = utterance

    # -- reports ----------------------------------------------------------------------------------------------------

    def owns(self, job_id: str) -> bool:
        return job_id in self._jobs

    @property
    def waiting(self) -> bool:
        """Whether a final transcript is still to come."""
        return any(u.stop >= 0 for u in self._jobs.values())

    def report(self, report: Transcribed | Failed) -> Heard | None:
        """Takes a recogniser's answer; returns what was said once it is final."""
        utterance = self._jobs.pop(report.job_id)
        if report.job_id == utterance.draft_job:
            utterance.draft_job = None
            if isinstance(report, Transcribed):
                self._drafted(utterance, report.text)
            return None
        heard = (
            self._failed(utterance, report) if isinstance(report, Failed) else self._final(utterance, report)
        )
        if not self.waiting:
            self.ear.on(EarEvent.ALL_TRANSCRIBED)
        return heard

    def _drafted(self, utterance: Utterance, text: str) -> None:
        fresh = utterance.agreement.hypothesis(text)
        if fresh and self._view.audio.input.transcription is not None:
            if self._view.chorale is not UNSET:
                self._delta(utterance, fresh)
            else:
                utterance.unsent += fresh  # plain clients hear of an item only after it was added
        if utterance is self._open:
            utterance.text, utterance.text_to = text, utterance.drafted_to
            if self._segmenter is not None and self._patience is not None:
                # The words may show that the silence since then was the end of the sentence.
                self._be_patient(self._segmenter, self._patience, utterance)
                self._follow(self._segmenter.settle())

    def _final(self, utterance: Utterance, report: Transcribed) -> Heard:
        text = report.text.strip()
        self._conversation.set_transcript(utterance.item_id, text)
        if self._view.audio.input.transcription is not None:
            rest = utterance.agreement.final(text)
            if rest:
                self._delta(utterance, rest)
            usage = wire.DurationUsage(round((utterance.stop - utterance.start) / SAMPLE_RATE_HZ, 3))
            self._out.emit(wire.TranscriptionCompleted(utterance.item_id, 0, text, usage))
        return Heard(utterance.item_id, text, utterance.turn, utterance.answered and bool(text))

    def _failed(self, utterance: Utterance, report: Failed) -> Heard:
        self._conversation.set_transcript(utterance.item_id, "")
        error = wire.ErrorBody(type="server_error", message=report.message, code=report.code)
        if self._view.audio.input.transcription is not None:
            self._out.emit(wire.TranscriptionFailed(utterance.item_id, 0, error))
        return Heard(utterance.item_id, "", utterance.turn, utterance.answered, error)

    def _delta(self, utterance: Utterance, text: str) -> None:
        self._out.emit(wire.TranscriptionDelta(utterance.item_id, 0, text))

    def _forget(self, job_id: str) -> None:
        self._jobs.pop(job_id, None)
        self._out.cancel(job_id)
