"""The heart of a session: everything that happens to it comes in here, everything it wants done goes out.

Pure: no clock, no waiting, no samples. `receive(event, now)` returns the effects in the order in which they must be
carried out; the same events at the same times give the same effects again. `deadline` says when to come back with
`TimePassed`.
"""

from typing import assert_never

from msgspec import UNSET

from modalities.audio.segmenter import TAIL_SAMPLES
from orchestrator.clock import US_PER_S
from orchestrator.errors import SessionClosed, WireError
from orchestrator.ids import IdSequence
from orchestrator.scheduling.work import Failed, ReplyText, Report, Transcribed
from orchestrator.sessions.answering import Answering
from orchestrator.sessions.attendance import Attendance
from orchestrator.sessions.calling import Calling
from orchestrator.sessions.checking import Checker
from orchestrator.sessions.conversation import Conversation
from orchestrator.sessions.editing import Editor, may_ask
from orchestrator.sessions.effects import CloseLinks, Effect
from orchestrator.sessions.events import (
    AudioHeard,
    ClientErred,
    ClientSaid,
    DrainAsked,
    EndAsked,
    Event,
    LinkJoined,
    LinkLeft,
    PlayoutEnded,
    PlayoutLost,
    PlayoutMoved,
    ReportCame,
    TimePassed,
)
from orchestrator.sessions.figures import EarlyFigures
from orchestrator.sessions.head_start import HeadStart, Prospect
from orchestrator.sessions.heeding import heeded, updated
from orchestrator.sessions.idling import Idling
from orchestrator.sessions.links import SHUTTING_DOWN, WITHOUT_SOUND, LinkKind
from orchestrator.sessions.listening import Listener
from orchestrator.sessions.observing import Source
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.speaking import Speaker
from orchestrator.sessions.states import LIFE, Ear, Life, LifeEvent, Machine
from orchestrator.sessions.turns import Turn, TurnWindow
from orchestrator.sessions.utterance import Heard
from orchestrator.wire import client, codec
from orchestrator.wire import server as wire
from orchestrator.wire.session import Session as SessionView

_LOOK_AGAIN_US = US_PER_S
"""How often a call that sends no sound itself is asked how far it has played."""

_EXPIRED = "Your session hit the maximum duration of {} minutes."


class Session:
    """One conversation and its state, from the first link to the last word."""

    def __init__(self, view: SessionView, rules: SessionRules, tag: str, now: int) -> None:
        self.view = view
        self._rules = rules
        self._out = Outbound(view.id, IdSequence(tag), rules)
        self._conversation = Conversation(rules.max_items)
        self._turns = TurnWindow(rules.window_us)
        self.early = EarlyFigures()
        self._head_start = HeadStart(self._out, self.early)
        heeds = heeded(view, rules)
        self._speaker = Speaker(
            self._out, self._conversation, heeds, self._out.ids.take("conv"), self._head_start
        )
        self._answering = Answering(self._conversation, self._turns, self._speaker)
        self._listener = Listener(
            self._out, self._conversation, self._turns, heeds, self._answering.interrupt, self.early
        )
        self._life: Machine[Life, LifeEvent] = Machine("life", LIFE, Life.WAITING)
        self._attendance = Attendance()
        self._checker = Checker(self._out, self._conversation, view, self._listener.tell)
        self._editor = Editor(
            self._out,
            self._conversation,
            self._turns,
            self._listener,
            self._answering,
            self._checker,
            view,
        )
        self._calling = Calling(self._out, self._attendance, self._speaker, self._editor)
        parts = (self._listener, self._speaker, self._answering, self._checker)
        self._idling = Idling(self._out, self._conversation, self._turns, parts)
        self._type_settled = rules.heeds and view.type == "transcription"
        self._expires = now + rules.max_session_us
        self._until = now + rules.grace_us
        self._abandon_us: int | None = None
        self._close_reason = (1001, "The session has ended.")

    # -- what a shell may look at -----------------------------------------------------------------------------------

    @property
    def life(self) -> Life:
        return self._life.state

    @property
    def sounding(self) -> tuple[str, ...]:
        """The responses whose sound a call is playing or has yet to play."""
        return self._speaker.playback.responses

    @property
    def turn(self) -> Turn:
        """The user's turn that is open, or was last."""
        return self._turns.turn

    @property
    def keep_from(self) -> int | None:
        """The first sample that the session may still want transcribed; None where nothing is held."""
        return self._listener.keep_from

    @property
    def listen_at(self) -> int | None:
        """The position at which silence decides something next; None where nobody is speaking."""
        return self._listener.listen_at

    def holds(self, job_id: str) -> bool:
        """Whether sound that this job has made may still be wanted, though it was not sent."""
        return self._head_start.owns(job_id)

    @property
    def conversation(self) -> Conversation:
        return self._conversation

    @property
    def checker(self) -> Checker:
        """Who holds what the user says against what else he says."""
        return self._checker

    @property
    def deadline(self) -> int | None:
        """When `TimePassed` is due next; None once closed."""
        if self._life.state is Life.CLOSED:
            return None
        due = self._expires if self._life.state is Life.OPEN else min(self._until, self._expires)
        abandon_us = self._abandon_us if self._speaker.busy else None
        for part in (abandon_us, self._calling.back_by, self._checker.deadline, self._idling.deadline):
            due = due if part is None else min(due, part)
        return min(due, self._out.now + _LOOK_AGAIN_US) if self._speaker.waits_for_playout else due

    # -- the one entrance -------------------------------------------------------------------------------------------

    def receive(self, event: Event, now: int) -> tuple[Effect, ...]:
        """Takes one event at session time `now` (µs) and returns what is to be done. Closed sessions do nothing."""
        if self._life.state is Life.CLOSED:
            return ()
        self._out.now = now
        self._out.attended_us = self._attendance.attended_us(now) if self._rules.returns else now
        match event:
            case ReportCame():
                self._report(event.report)
                if isinstance(event.report, ReplyText):
                    # A reply goes on: no turn, no verdict and no life hangs on its words.
                    return self._out.take()
            case ClientSaid():
                self._client_said(event)
            case ClientErred():
                self._refuse(event.link_id, event.error, event.event_id)
            case AudioHeard():
                if self._life.state is not Life.DRAINING or self._listener.ear.state is Ear.HEARING:
                    self._listener.heard(event)
            case PlayoutMoved():
                self._speaker.played(event.response_id, event.samples)
            case PlayoutEnded():
                self._speaker.played_out(event.response_id)
            case PlayoutLost():
                self._calling.sound_lost(event.response_id)
            case LinkJoined():
                self._joined(event)
            case LinkLeft():
                self._left(event)
            case TimePassed():
                self._time_passed(now)
            case DrainAsked():
                self._life.on(LifeEvent.DRAIN)
                self._until = event.until_us
                self._calling.give_up()
                self._close_reason = (1001, SHUTTING_DOWN)
            case EndAsked():
                self._end(event.reason, now)
            case _:
                assert_never(event)
        for heard in self._listener.take():
            self._editor.transcribed(heard.item_id)
            self._heard(heard)
        self._check()
        self._speaker.advance()
        if self._attendance:  # a client that lost its connection gets its answer when it is back
            self._answering.advance(self._listener, self._checker.take_question)
        self._head_start.follow(self._prospect())
        self._idling.follow(self.view, self._attendance.speaks and self._may_answer)
        self._maybe_settle(now)
        return self._out.take()

    # -- links and life ---------------------------------------------------------------------------------------------

    def _joined(self, event: LinkJoined) -> None:
        self._life.on(LifeEvent.LINK_JOINED)
        self._attendance.joined(event.link_id, event.kind, self._out.now)
        self._abandon_us = None
        self._out.tell(event.link_id, wire.SessionCreated(self.view))
        if event.kind is LinkKind.CALL:
            self._calling.joined(event.link_id)
        elif event.kind not in WITHOUT_SOUND:
            self._calling.give_up()  # the user hears by other means from now on

    def _left(self, event: LinkLeft) -> None:
        kind = self._attendance.left(event.link_id, self._out.now)
        if kind is None:
            return
        self._editor.left(event.link_id)
        if kind is LinkKind.CALL:
            self._calling.lost(may_return=self._life.state is not Life.DRAINING)
        if not self._attendance.speaks:
            self._listener.hang_up()
        if self._attendance:
            return
        if self._rules.abandoned_us:
            self._abandon_us = self._out.now + self._rules.abandoned_us
        if self._life.on(LifeEvent.LAST_LINK_LEFT) is Life.WAITING:
            self._until = self._out.now + self._rules.grace_us

    def _time_passed(self, now: int) -> None:
        self._calling.time_passed(now)
        self._idling.time_passed(self.view)
        if self._abandon_us is not None and now >= self._abandon_us:
            self._abandon_us = None
            self._answering.abandon()
        if now >= self._expires:
            message = _EXPIRED.format(self._rules.max_session_us // (60 * US_PER_S))
            for link_id in self._attendance:
                self._refuse(link_id, SessionClosed(message), None)
            self._close_reason = (1001, message)
            self._close()
        elif self._life.state is Life.WAITING and now >= self._until:
            self._life.on(LifeEvent.GRACE_OVER)
            self._until = now + self._rules.drain_us
        elif self._life.state is Life.DRAINING and now >= self._until:
            self._close()

    def _end(self, reason: str, now: int) -> None:
        """Hang-up: the links close now, transcripts in flight still reach the conversation."""
        self._out.do(CloseLinks(1000, reason))
        self._attendance.clear(now)
        self._listener.hang_up()
        self._calling.end()
        if self._speaker.current is not None:
            self._speaker.cancel(None)
        self._life.on(LifeEvent.DRAIN)
        self._until = now + self._rules.drain_us

    def _maybe_settle(self, now: int) -> None:
        if self._life.state is not Life.DRAINING:
            return
        if not self._idling.is_busy(bool(self._attendance)):
            self._close()

    def _close(self) -> None:
        self._life.on(LifeEvent.SETTLED if self._life.state is Life.DRAINING else LifeEvent.END)
        self._checker.close()
        self._listener.close()
        self._out.do(CloseLinks(*self._close_reason))

    # -- turns ------------------------------------------------------------------------------------------------------

    def _prospect(self) -> Prospect | None:
        begins_early = self._rules.early_replies and self._may_answer
        return self._answering.prospect(self._listener) if begins_early else None

    @property
    def _may_answer(self) -> bool:
        is_open = self._life.state is Life.OPEN and bool(self._attendance)
        return is_open and self.view.type != "transcription"

    def _heard(self, heard: Heard) -> None:
        """A final transcript is in."""
        utterance, turn = heard.utterance, heard.turn
        if utterance is None or not heard.text or self._conversation.get(heard.item_id) is None:
            self._listener.tell(heard, heard.text)
        else:
            began, stop = utterance.began_us, max(utterance.began_us, utterance.stop_us)
            unit = 0 if turn is None else turn.id
            source = Source(heard.item_id, heard.item_id, unit, "speech", began, stop, heard.text)
            source.report, source.work, source.heard = heard.report, utterance.work, heard
            source.asks, source.revision = heard.wants_reply and may_ask(self.view, self._out), 1
            self._checker.said(source)
            if utterance.text and utterance.text_to >= utterance.stop - TAIL_SAMPLES:
                self._checker.recognised_before(source, utterance.text.strip())
        if self.view.type != "transcription" and self._conversation.get(heard.item_id) is not None:
            self._answering.heard(heard)

    def _check(self) -> None:
        """What the user says is held against what else he says."""
        for unit, text in self._speaker.offered:
            self._checker.offer(unit, text)
        self._speaker.offered.clear()
        if self._rules.early_replies and self._listener.early_text:
            self._checker.foresee(self._listener.early_text)
        self._checker.advance()
        if changed := self._checker.changed:
            self._answering.mend(changed, self.view.tools)
            changed.clear()

    def _report(self, report: Report) -> None:
        if self._listener.owns(report.job_id):
            if isinstance(report, Transcribed | Failed):
                self._listener.report(report)
        elif self._speaker.owns(report.job_id):
            self._speaker.report(report)
        elif self._head_start.owns(report.job_id):
            self._head_start.report(report)
        elif self._checker.owns(report.job_id):
            self._checker.report(report)

    # -- what clients say -------------------------------------------------------------------------------------------

    def _refuse(self, link_id: str, error: Exception, event_id: str | None) -> None:
        self._out.tell(link_id, codec.error_event(error, event_id))

    def _client_said(self, said: ClientSaid) -> None:
        try:
            self._obey(said)
        except WireError as error:
            if isinstance(said.event, client.CreateItem):
                self._editor.refused(said.event)
            self._refuse(said.link_id, error, said.event.event_id)

    def _obey(self, said: ClientSaid) -> None:
        event = said.event
        match event:
            case client.UpdateSession():
                self._update(event)
            case client.CommitAudio():
                self._listener.commit(said.position)
            case client.ClearAudio():
                self._listener.clear(said.position)
            case client.CreateItem():
                self._editor.create(event, said, self._life.state is Life.OPEN)
            case client.GiveTokens():
                self._editor.give(event, said, self._life.state is Life.OPEN)
            case client.GiveCaption():
                self._editor.caption(event)
            case client.RetrieveItem():
                self._editor.retrieve(event.item_id)
            case client.TruncateItem():
                self._speaker.truncate(event.item_id, event.content_index, event.audio_end_ms)
            case client.DeleteItem():
                self._editor.delete(event.item_id)
            case client.CreateResponse():
                self._create_response(event)
            case client.CancelResponse():
                self._speaker.cancel(event.response_id)
            case client.ClearPlayout():
                self._speaker.clear_playout()
            case client.AppendAudio():
                raise WireError("invalid_event", "Sound goes to the audio buffer, not to the session's heart")
            case _:
                assert_never(event)

    def _update(self, event: client.UpdateSession) -> None:
        view = updated(
            self.view,
            event.session,
            self._rules,
            audio_started=self._speaker.audio_started,
            type_settled=self._type_settled,
        )
        self._type_settled = True
        self.view = self._checker.view = self._editor.view = view
        self._speaker.view = heeded(view, self._rules)
        self._out.emit(wire.SessionUpdated(view))
        self._listener.configure(self._speaker.view)

    def _create_response(self, event: client.CreateResponse) -> None:
        if self.view.type == "transcription":
            raise WireError("invalid_event", "A transcription session makes no responses")
        params = client.ResponseParams() if event.response is UNSET else event.response
        aside = params.conversation == "none"
        if self._life.state is Life.DRAINING and (aside or self._speaker.current is None):
            message = "The server is shutting down and starts no new responses"
            error = wire.ErrorBody(type="server_error", message=message, code="server_error")
            self._speaker.fail(params, error, self._turns.turn.id)
            return
        if not aside and params.input is None and self._speaker.current is None:
            self._editor.count_typed()
        self._speaker.create(params, self._turns.turn.id)
        if not aside:
            self._turns.close()
            self._answering.asked()
