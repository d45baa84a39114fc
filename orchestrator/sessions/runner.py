"""The shell of a session: waits on its inbox, lets the heart decide, carries out the effects without waiting."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from orchestrator.buffers.output_log import OutputLog
from orchestrator.buffers.output_store import OutputStore
from orchestrator.clock import Clock
from orchestrator.errors import SessionClosed, WireError
from orchestrator.ids import event_tag
from orchestrator.observability.instrument import Instrument, Silent
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.work import ReplyText, Report, SpeechPiece
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.alarm import Alarm
from orchestrator.sessions.askers import Askers
from orchestrator.sessions.clip_reading import forgotten, without_content
from orchestrator.sessions.clips import ClipStore
from orchestrator.sessions.gaps import Gaps
from orchestrator.sessions.holdings import Holdings, RunnerStatistics
from orchestrator.sessions.inbox import TURN_US, Inbox
from orchestrator.sessions.intake import Detector, SpeechIntake
from orchestrator.sessions.links import Link, LinkKind, LogEntry
from orchestrator.sessions.pictures import PictureStore
from orchestrator.sessions.pieces import Pieces
from orchestrator.sessions.playouts import Playouts
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.session import Session
from orchestrator.sessions.states import Life
from orchestrator.sessions.submitting import Submitting
from orchestrator.sessions.tap import Recorder
from orchestrator.sessions.turn_watch import TurnWatch
from orchestrator.sessions.waking import Waking
from orchestrator.sessions.writing import Writing
from orchestrator.wire.client import AnyClientEvent, CreateItem, UpdateSession
from orchestrator.wire.session import Session as SessionView

log = logging.getLogger("chorale.session")


class SessionRunner:
    """One per session; implements `SessionPort`. `run` is its task; everything else is called on the same loop."""

    def __init__(
        self,
        view: SessionView,
        secret: str,
        rules: SessionRules,
        clock: Clock,
        dispatcher: Dispatcher,
        detector: Detector,
        log_bounds: tuple[int, int] = (4_096, 16 * 1024 * 1024),
        tenant: str = "",
        recorder: Recorder | None = None,
        store: OutputStore | None = None,
        instrument: Instrument | None = None,
        remote: TraceParent | None = None,
    ) -> None:
        self.call_id: str | None = None
        self.tenant = tenant
        self.make_room: Callable[[], None] = lambda: None
        """Called when the log has grown, whose size the store knows by then, and when nobody reads it any more."""
        self._secret = secret
        self._clock = clock
        self._dispatcher = dispatcher
        self._origin = clock.now_us()
        self._heart = Session(view, rules, event_tag(view.id), 0)
        self._inbox = Inbox()
        self._log: OutputLog[LogEntry] = OutputLog(*log_bounds)
        self._links: dict[str, Link] = {}
        self._askers = Askers()
        self._playouts = Playouts(view.id, self._links, self._log)
        self._shown = self._stored = 0
        self._waking = Waking(self._wake_for_words)
        self._alarm = Alarm(self._now, lambda: self._inbox.put_nowait(on.TimePassed()))
        self._pieces = Pieces()
        self._writing = Writing(view.id, secret, self._log, self._pieces)
        self._clips, self._pictures = ClipStore(), PictureStore(rules.images)
        self._intake = SpeechIntake(detector, int(rules.buffer_s * 16_000), self._now, self._inbox.put_nowait)
        self._tap = recorder.open(view, rules, event_tag(view.id), secret) if recorder is not None else None
        self._intake.tap = self._tap
        self._jobs = Submitting(
            view.id,
            dispatcher,
            self._intake,
            self._clips,
            self._pictures,
            self._origin,
            self._inbox.put_nowait,
        )
        self._watch = TurnWatch(view.id, int(rules.tier), self._origin, (instrument or Silent()).turn, remote)
        self._store = store or OutputStore(log_bounds[1])
        self._store.detached(view.id)
        self._gaps = Gaps(self._log)
        self._dispatcher.listen(view.id, self._deliver, tenant, remote)

    # -- what doors see (SessionPort) -------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._heart.view.id

    @property
    def secret(self) -> str:
        return self._secret

    @property
    def view(self) -> SessionView:
        return self._heart.view

    @property
    def intake(self) -> SpeechIntake:
        return self._intake

    @property
    def heart(self) -> Session:
        return self._heart

    @property
    def last(self) -> int:
        return self._log.last

    def attach(self, link: Link, after: int | None = None) -> int:
        """As in `SessionPort`; what cannot be given any more is told as in `Gaps`."""
        if self._heart.life is Life.CLOSED:
            raise SessionClosed("The session has ended.")
        if after is not None and not 0 <= after <= self._log.last:
            raise WireError("invalid_value", "There is no such event in this session yet.", "after")
        cursor = self._log.last if after is None else after  # what its coming sets off is for it too
        if link.id not in self._links:
            if link.kind is LinkKind.CALL:
                self._follow_playout()  # of the call that it takes over from
                self._playouts.renewed()
            self._links[link.id] = link
            # At once and not by the inbox: nothing may reach a link before its session.created.
            self._take(on.LinkJoined(link.id, link.kind))
            self._store.attached(self.id)
            if (gap := self._gaps.joined(after, self._heart.view)) is not None:
                self._perform(do.Tell(link.id, gap))
            self._guide_intake()
            self._wake_links()
        return max(cursor, self._log.first - 1)

    def detach(self, link_id: str) -> None:
        if link_id in self._links:
            self._follow_playout()
            del self._links[link_id]
            self._inbox.put_nowait(on.LinkLeft(link_id))
            if not self._links:
                self._gaps.all_left()
                self._store.detached(self.id)
                self.make_room()

    async def submit(self, link_id: str, event: AnyClientEvent, age_us: int = 0) -> None:
        sent = max(0, self._now() - age_us)
        if isinstance(event, CreateItem):
            try:
                event = await without_content(event, self._clips, self._pictures, self._tap)
            except WireError as error:
                self.refuse(link_id, error, event.event_id)
                return
        try:
            await self._inbox.put(on.ClientSaid(link_id, event, self._intake.position, sent))
        except asyncio.CancelledError:
            forgotten(event, self._clips, self._pictures)
            raise
        if isinstance(event, UpdateSession):
            await self._inbox.handled()

    async def perform(self, event: AnyClientEvent, age_us: int = 0) -> tuple[bytes, ...]:
        with self._askers.ask() as asker:
            await self.submit(asker.id, event, age_us)
            if not await self._inbox.handled():
                raise SessionClosed("The session has ended.")
            return asker.answers

    def refuse(self, link_id: str, error: Exception, event_id: str | None) -> None:
        self._inbox.put_nowait(on.ClientErred(link_id, error, event_id))

    def playout_drained(self, response_id: str) -> None:
        self._inbox.put_nowait(on.PlayoutEnded(response_id))

    def read(self, cursor: int, limit: int) -> list[tuple[int, LogEntry]]:
        return self._log.read(cursor, limit)

    # -- what the registry asks -------------------------------------------------------------------------------------

    def drain(self, within_us: int) -> None:
        """Finish what runs, start nothing, end in time."""
        self._inbox.put_nowait(on.DrainAsked(self._now() + within_us))

    def end(self, reason: str, code: int | None = None) -> None:
        """End now; transcripts in flight still reach the conversation. With a `code` the links are closed by it."""
        if code is not None:
            self._close_links(code, reason)
        self._inbox.put_nowait(on.EndAsked(reason))

    async def run(self) -> None:
        """Lives until the session has ended. Cancelling it ends the session at once. `close` comes after it."""
        while (deadline := self._heart.deadline) is not None:
            self._alarm.set(deadline)
            events = await self._inbox.take()
            self._follow_playout()
            began_us = self._now()
            for event in events:
                if self._now() - began_us >= TURN_US:
                    self._show()
                    await asyncio.sleep(0)
                    began_us = self._now()
                self._take(event)
            self._show()

    def forget_log(self) -> None:
        """Lets go of what was sent: nobody is there to read it, and others need the room."""
        self._log.clear()
        self._stored = 0

    def close(self) -> None:
        """Lets go of links, jobs and sound. Idempotent."""
        self._close_links(1001, "The session has ended.")
        self._inbox.close()
        self._alarm.close()
        self._waking.close()
        self._dispatcher.drop_session(self.id)
        self._store.ended(self.id)
        self._watch.close(self._now())
        self._intake.close()
        if self._tap is not None:
            self._tap.close()
        self._pieces.clear()
        self._clips.clear()
        self._pictures.clear()

    def statistics(self) -> RunnerStatistics:
        held, clip_bytes = len(self._pieces), self._clips.held_bytes + self._pictures.held_bytes
        log, inbox, dropped = self._log.statistics(), self._inbox.statistics(), self._intake.dropped_windows
        early = replace(self._heart.early)
        return RunnerStatistics(len(self._links), log, inbox, held, clip_bytes, dropped, early)

    def add_to(self, sums: Holdings) -> None:
        """Adds what the session holds now, and what it has let go: cheap, for a thousand sessions at each scrape."""
        log, intake = self._log.statistics(), self._intake
        sums.sessions += 1
        sums.ring_samples += min(intake.position, intake.capacity)
        sums.ring_capacity += intake.capacity
        sums.detector_windows += intake.backlog
        sums.inbox_events += self._inbox.held
        sums.clip_bytes += self._clips.held_bytes + self._pictures.held_bytes
        sums.spoken_pieces += len(self._pieces)
        sums.log_events += log.last - log.first + 1
        sums.log_bytes += log.size
        self.add_losses_to(sums)

    def add_losses_to(self, sums: Holdings) -> None:
        """Adds what the session has let go: all that is left of one that has ended."""
        sums.log_dropped += self._log.first - 1
        sums.windows_dropped += self._intake.dropped_windows
        sums.events_refused += self._inbox.refused
        sums.clips_refused += self._clips.refused

    # -- inside -----------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        return self._clock.now_us() - self._origin

    def _show(self) -> None:
        """Tells who follows, once for all that was taken: a link sends what is there in one write."""
        self._guide_intake()
        self._wake_links()
        if (grown := self._log.size - self._stored) != 0:
            self._stored += grown
            self._store.grew(self.id, grown)
            self.make_room()

    def _wake_links(self) -> None:
        if self._log.last != self._shown:
            self._shown = self._log.last
            self._waking.woke(self._now())
            for link in self._links.values():
                link.wake()

    def _take(self, event: on.Event) -> None:
        """Takes an event, under the eyes of who measures turns."""
        now = self._now()
        effects = self._receive(event, now)
        if effects:
            self._measure(effects, now)
        for effect in effects:
            self._perform(effect)
        if self._pieces and isinstance(event, on.ReportCame):
            piece = event.report
            if isinstance(piece, SpeechPiece) and not self._heart.holds(piece.job_id):
                self._pieces.drop(piece)  # not wanted, or sent by now

    def _measure(self, effects: tuple[do.Effect, ...], now: int) -> None:
        """Shows a step to who measures turns: every one, but of the words that go straight only those that do more."""
        heart = self._heart
        if self._watch.saw(effects, now, heart.turn.id, heart.view.type != "transcription"):
            self._jobs.touch(now)

    def _guide_intake(self) -> None:
        """Tells the intake what the heart wants of sound now."""
        self._intake.detecting = self._heart.view.audio.input.turn_detection is not None
        self._intake.keep_from(self._heart.keep_from)
        self._intake.listen_at(self._heart.listen_at)

    def _receive(self, event: on.Event, now: int) -> tuple[do.Effect, ...]:
        """Lets the heart decide. What it fails at is written down too: that is what a recording is read for."""
        if self._tap is None:
            return self._heart.receive(event, now)
        effects: tuple[do.Effect, ...] | None = None
        try:
            effects = self._heart.receive(event, now)
        finally:
            self._tap.stepped(event, now, effects, self._heart)
        return effects

    def _follow_playout(self) -> None:
        """Tells the heart how far a call's track has come, before it judges anything by it."""
        for response_id in self._heart.sounding:
            for samples in self._playouts.played_samples(response_id):
                self._take(on.PlayoutMoved(response_id, samples))

    def _perform(self, effect: do.Effect) -> None:
        match effect:
            case do.Emit():
                self._writing.write(effect.event)
            case do.EmitAudio():
                self._playouts.play(effect.response_id, self._writing.sound(effect).pcm)
            case do.Tell():
                reader = self._links.get(effect.link_id) or self._askers.get(effect.link_id)
                if reader is not None:
                    self._writing.tell(reader, effect.event)
            case do.Start():
                self._jobs.start(effect.job, self._watch.number)
            case do.Cancel():
                self._dispatcher.cancel(effect.job_id)
                self._pieces.forget(effect.job_id)
            case do.FinishPlayout() | do.FlushPlayout():
                self._playouts.end(effect)
            case do.ResumePlayout():
                if not self._playouts.resume(effect.response_id, effect.start, effect.stop):
                    self._inbox.put_nowait(on.PlayoutLost(effect.response_id))
            case do.NoteTurn(times=times):
                log.info("turn", extra={"session": self.id, **times.stages_ms(), "early": times.early})
            case do.ForgetClip():
                self._clips.forget(effect.clip)
            case do.ForgetPicture():
                self._pictures.forget(effect.name)
            case do.CloseLink():
                if (link := self._links.pop(effect.link_id, None)) is not None:
                    link.close(effect.code, effect.reason)
            case do.CloseLinks():
                self._close_links(effect.code, effect.reason)
            case _:
                assert_never(effect)

    def _deliver(self, report: Report) -> None:
        """Takes a report from the dispatcher; its sound stays here, the heart sees only how much there is.

        More text of a reply goes straight through where nothing is before it: no task is woken for a token. While a
        call sounds it takes its turn, since a deadline may hang on how much is left to be played.
        """
        if isinstance(report, ReplyText) and self._inbox.is_awaited and not self._heart.sounding:
            self._go_straight(on.ReportCame(report))
            return
        if isinstance(report, SpeechPiece):
            report = self._pieces.keep(report)
        self._inbox.put_nowait(on.ReportCame(report))

    def _go_straight(self, event: on.ReportCame) -> None:
        now = self._now()
        with self._inbox.instead():  # of `run`
            effects = self._receive(event, now)
            if len(effects) > 1:
                self._measure(effects, now)
            for effect in effects:
                self._perform(effect)
        self._waking.word(now)

    def _wake_for_words(self) -> None:
        """Wakes links for the words that have come, and not where `run` is about to."""
        if self._inbox.is_awaited:
            self._wake_links()

    def _close_links(self, code: int, reason: str) -> None:
        while self._links:
            _, link = self._links.popitem()
            link.wake()
            link.close(code, reason)
