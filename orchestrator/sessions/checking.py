"""Whether what the user said in several ways agrees (heart): observations to the engine, verdicts to the conversation.

Words wait (`Entry.unsettled`) from the moment they could contradict something until the engine has accepted them, or
for `deadline_us`; no prompt is made of words that wait. What stands alone never waits.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from consistency.engine import ConsistencyEngine
from consistency.observation import Observation
from consistency.verdict import (
    Accept,
    Ask,
    Freeze,
    RollBack,
    Suspect,
    Verdict,
)
from orchestrator.scheduling.work import Failed, Report, Understood
from orchestrator.sessions.conversation import Conversation
from orchestrator.sessions.faltering import Faltering
from orchestrator.sessions.observing import Source, Told, observation, tell, verdict_events
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.understanding import Understanding
from orchestrator.sessions.utterance import Heard
from orchestrator.sessions.wanting import Again, Wants
from orchestrator.wire import server as wire
from orchestrator.wire.session import Session

MOST_SOURCES = 64
"""Things said that may still be held against others; the oldest are settled for good."""


class Checker:
    """Holds the engine of one session. `tell` is called once for each transcript, with the words that stand."""

    def __init__(
        self, out: Outbound, conversation: Conversation, view: Session, tell: Callable[[Heard, str], None]
    ) -> None:
        self.view = view
        self.changed: set[int] = set()
        """Units whose words have changed after they were settled: what was answered to them may be wrong."""
        self._out = out
        self._conversation = conversation
        self._tell = tell
        rules = out.rules.consistency
        self._rules = rules
        self._engine = ConsistencyEngine(
            rules.engine,
            rules.judge,
            rules.graph,
            rules.fingerprint,
            rules.read,
            rules.corrections,
            rules.misheard,
        )
        self._understanding = Understanding(out)
        self._faltering = Faltering(out)
        self._sources: OrderedDict[str, Source] = OrderedDict()
        self._deadlines: dict[int, int] = {}
        self._verdicts: dict[int, Told] = {}
        """What was last done about each unit that is held."""
        self._fresh: dict[int, Verdict] = {}
        self._wants = Wants(out)
        self._fast: dict[str, Source] = {}
        self._questions: dict[int, str] = {}

    # -- what others look at ----------------------------------------------------------------------------------------

    @property
    def engine(self) -> ConsistencyEngine:
        return self._engine

    @property
    def deadline(self) -> int | None:
        """When `advance` is due next."""
        return min(self._deadlines.values(), default=None)

    @property
    def waiting(self) -> bool:
        """Whether words wait for a verdict."""
        return bool(self._deadlines)

    def knows(self, item_id: str) -> bool:
        """Whether the words of this item have been said here."""
        return item_id in self._sources

    def place(self, item_id: str) -> tuple[int, int, int] | None:
        """Returns unit, start and stop of an utterance; None where there is none of this item, or not any more."""
        source = self._sources.get(item_id)
        return (
            None
            if source is None or source.modality != "speech"
            else (source.unit, source.start_us, source.stop_us)
        )

    def take_question(self, unit: int) -> str | None:
        """Returns what the user is to be asked instead of an answer to this unit, once."""
        return self._questions.pop(unit, None)

    # -- what the user says -----------------------------------------------------------------------------------------

    def foresee(self, text: str) -> None:
        """The utterance may end with these words."""
        self._understanding.ahead(text)

    def said(self, source: Source) -> None:
        """Something was said, typed, captioned or sent by a form."""
        self._sources[source.id] = source
        if len(self._sources) > MOST_SOURCES:
            _, oldest = self._sources.popitem(last=False)
            self._let_go(oldest)
        if not self._checks(source):
            self._let_stand(source)
            return
        if source.modality == "form":
            self._hold(source)
            self._observe(source, None)
            return
        found = self._understanding.start(source.id, source.text)
        if found is not None:
            self._understood(source, found)
        elif self._stands_alone(source):
            self._observe(source, None)
            self._carry_out(source.unit, self._fresh.pop(source.unit))
        else:
            self._hold(source)

    def recognised_before(self, source: Source, text: str) -> None:
        """A fast pass over all of an utterance had made this of it: once understood, it is held against the final one.
        Nothing waits for it."""
        if not self._checks(source) or _plain(text) == _plain(source.text):
            return
        name = f"{source.id}@{source.revision - 1}"
        self._fast[name] = replace(source, text=text, report=None, heard=None, revision=source.revision - 1)
        found = self._understanding.start(name, text)
        if found is not None:
            self._answered(name, found)
            self._review()

    def _checks(self, source: Source) -> bool:
        """Whether this is held against anything: what is of no turn is history."""
        return self._rules.enabled and source.unit > 0 and self.view.type != "transcription"

    def _let_stand(self, source: Source) -> None:
        """Nothing is held against anything."""
        if source.text and source.modality != "form":
            found = self._understanding.start(source.id, source.text)
            if found is not None:
                self._understanding.show(source.item_id, found, self.view)
        self._settle(source, source.text)

    def _stands_alone(self, source: Source) -> bool:
        """Whether words can be answered before they are understood: nothing to hold them against, no tools to call."""
        bare = observation(source, None)
        return not (self._deadlines or self.view.tools) and self._engine.stands_alone(
            bare, source.unit, source.asks
        )

    def _hold(self, source: Source) -> None:
        entry = self._conversation.get(source.item_id)
        if entry is not None:
            entry.unsettled = True
        self._deadlines.setdefault(source.unit, self._out.now + self._rules.deadline_us)

    def offer(self, unit: int, text: str) -> None:
        """The assistant has said this in answer to a unit."""
        if self._rules.enabled:
            self._engine.offer(unit, text, self._out.now)

    # -- answers ----------------------------------------------------------------------------------------------------

    def owns(self, job_id: str) -> bool:
        return self._wants.owns(job_id) or self._understanding.owns(job_id)

    def report(self, report: Report) -> None:
        """Takes a worker's answer; a failure has no consequence but that less is known."""
        if not self._wants.owns(report.job_id):
            answer = self._understanding.report(report)
            if answer is not None:
                if isinstance(report, Failed) and (source := self._sources.get(answer[0])) is not None:
                    self._faltering.tell(report, "understand", self.view, item_id=source.item_id)
                self._answered(*answer)
        else:
            found = self._wants.report(report)
            if not isinstance(found, Again):
                self._note(self._engine.observe(found, self._out.now))
            elif (meaning := self._understanding.start(found.name, found.text)) is not None:
                self._answered(found.name, meaning)
        self._review()

    def _answered(self, name: str, found: Understood | None) -> None:
        again = self._wants.understood(name, found)
        if again is not None:
            self._note(self._engine.observe(again, self._out.now))
        elif name in self._fast:
            early = self._fast.pop(name)
            if found is not None:
                seen = observation(early, found)
                self._note(self._engine.observe(seen, self._out.now, early.unit, early.asks))
        elif name in self._sources:
            source = self._sources[name]
            if found is not None:
                self._understood(source, found)
            elif self._checks(source):
                self._observe(source, None)

    def _understood(self, source: Source, found: Understood) -> None:
        if source.modality in ("speech", "text") and source.id == source.item_id:
            self._understanding.show(source.item_id, found, self.view)
        if self._checks(source):
            self._observe(source, found)
            self._review()

    def _observe(self, source: Source, found: Understood | None) -> None:
        source.observed = True
        seen = observation(source, found)
        self._note(self._engine.observe(seen, self._out.now, source.unit, source.asks))

    def _note(self, verdict: Verdict) -> None:
        for one in (*self._engine.also, verdict):
            if one.unit:
                self._fresh[one.unit] = one

    def advance(self) -> None:
        """Opens the way for what has waited for too long."""
        for unit, deadline in list(self._deadlines.items()):
            if self._out.now < deadline:
                continue
            for source in list(self._sources.values()):
                if source.unit == unit and not source.observed:
                    self._observe(source, None)
            verdict = self._engine.expire(unit, self._out.now)
            self._note(verdict)
            self._carry_out(unit, self._fresh.pop(unit, verdict))
        self._review()

    def close(self) -> None:
        """The session has ended: whoever waits for a transcript gets it."""
        for source in self._sources.values():
            heard, source.heard = source.heard, None
            if heard is not None:
                self._tell(heard, source.text)

    # -- verdicts ---------------------------------------------------------------------------------------------------

    def _review(self) -> None:
        """Carries out what the engine has decided, once everything is understood that it should know."""
        while self._fresh and not self._understanding.waiting:
            unit = next(iter(self._fresh))
            self._carry_out(unit, self._fresh.pop(unit))

    def _carry_out(self, unit: int, verdict: Verdict) -> None:
        told = self._verdicts.get(unit)
        before = None if told is None else told.verdict
        self._show(unit, verdict, told)
        match verdict:
            case Suspect() | Freeze():
                for source in self._of(unit):
                    self._hold(source)
                for want in verdict.wants:
                    failed = self._wants.start(want, self._sources.get(want.observation_id))
                    if failed is not None:
                        self._note(self._engine.observe(failed, self._out.now))
            case Accept() | RollBack() | Ask():
                if isinstance(verdict, Ask) and not isinstance(before, Ask):
                    self._questions[unit] = verdict.question
                self._settle_unit(unit)

    def _of(self, unit: int) -> list[Source]:
        return [source for source in self._sources.values() if source.unit == unit]

    def _settle_unit(self, unit: int) -> None:
        """What stands goes into the conversation; a unit's words may now be answered."""
        self._deadlines.pop(unit, None)
        first, standing = self._engine.standing()
        corrected = self._engine.corrected()
        for source in list(self._sources.values()):
            if source.unit != unit and (source.unit < first or source.unit in self._deadlines):
                continue
            if source.modality == "caption":
                self._release(source)
                continue
            reading = standing.get(source.id)
            self._set_aside(source, reading)
            self._conversation.reword(source.item_id, corrected.get(source.id))
            text = source.text if reading is None or source.modality != "speech" else reading.text
            self._settle(source, text)

    def _let_go(self, source: Source) -> None:
        """Nothing is held against this any more: its words stand as they are."""
        if source.modality == "caption":
            self._release(source)
        else:
            self._settle(source, source.text if source.told is None else source.told)

    def _release(self, caption: Source) -> None:
        """A caption holds its item too. Where nothing was recognised there, nobody else lets the item go."""
        entry = self._conversation.get(caption.item_id)
        if entry is not None and caption.item_id not in self._sources:
            entry.unsettled = False

    def _set_aside(self, source: Source, reading: Observation | None) -> None:
        """Leaves words out of prompts that lost a conflict, or a form whose tokens were rolled back."""
        entry = self._conversation.get(source.item_id)
        if entry is None:
            return
        told = self._verdicts.get(source.unit)
        verdict = None if told is None else told.verdict
        lost = reading is None or (source.modality == "form" and isinstance(verdict, RollBack))
        lost = lost and not isinstance(verdict, Suspect | Freeze) and source.observed
        if lost != entry.left_out:
            if not entry.unsettled:
                self.changed.add(source.unit)
            entry.left_out = lost

    def _settle(self, source: Source, text: str) -> None:
        """Makes `text` the words that stand for a source, and tells whoever waits for them."""
        entry = self._conversation.get(source.item_id)
        heard, source.heard = source.heard, None
        if source.modality == "speech":
            before = source.text if source.told is None else source.told
            if text != before:
                self._conversation.realign(source.item_id, text)
                self._emit(wire.Realigned(source.unit, source.item_id, text, before))
                if source.told is not None:
                    self.changed.add(source.unit)
            source.told = text
        if heard is not None:
            self._tell(heard, text)
        if entry is not None:
            entry.unsettled = False

    # -- what clients are told --------------------------------------------------------------------------------------

    def _show(self, unit: int, verdict: Verdict, before: Told | None) -> None:
        items = tuple(dict.fromkeys(source.item_id for source in self._of(unit)))
        now = self._verdicts[unit] = tell(verdict, items, self._engine.snapshot.number)
        while len(self._verdicts) > MOST_SOURCES:
            oldest = next(iter(self._verdicts))
            del self._verdicts[oldest]
            self._questions.pop(oldest, None)
        for event in verdict_events(now, before):
            self._emit(event)

    def _emit(self, event: wire.ServerEvent) -> None:
        """Sends an event of Chorale's own to a session that has asked for it."""
        extension = self.view.chorale
        if extension and str(event.__struct_config__.tag) in extension.events:
            self._out.emit(event)


def _plain(text: str) -> str:
    """What of two spellings may differ without anything else being said."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())
