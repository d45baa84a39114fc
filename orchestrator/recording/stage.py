"""Plays inputs to a real session on virtual time, with whatever workers and detector there are, and writes it down."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded, SessionClosed
from orchestrator.recording.inputs import Input
from orchestrator.recording.journal import Journal, read, standing_of
from orchestrator.recording.scribe import Opening, Scribe
from orchestrator.recording.sound import Delivery, Mark
from orchestrator.recording.virtual_time import LoopClock, VirtualTimeLoop
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.worker_ports import Workers
from orchestrator.sessions import events as on
from orchestrator.sessions.effects import Effect
from orchestrator.sessions.intake import Detector
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.runner import SessionRunner
from orchestrator.sessions.session import Session as Heart
from orchestrator.wire.session import Session as SessionView

_RATE_HZ = 24_000
SETTLED_AFTER_S = 3.0
"""A session in which nothing has happened for so long, after its last input, has said what it had to say."""

MOST_AFTER_S = 120.0

Tell = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Company:
    """Those who do a session's work. Made and closed on the loop that the session runs on."""

    workers: Workers
    detector: Detector
    close: Callable[[], None] = lambda: None


MakeCompany = Callable[[], Company]


@dataclass(frozen=True, slots=True)
class Performed:
    """How a session went, and what its files would hold."""

    journal: Journal
    data: bytes
    sound: bytes


class Memory:
    """A recording in memory: a `Recorder` of one session, and its `Tap`."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._scribe: Scribe | None = None
        self.data = bytearray()
        self.sound = bytearray()
        self.last_us = 0

    def open(self, view: SessionView, rules: SessionRules, tag: str, secret: str) -> "Memory":
        self._scribe = Scribe(Opening(view, rules, tag, secret, self._began))
        self.data += self._scribe.header()
        return self

    def heard(self, at_us: int, position: int, pcm: bytes, live: bool) -> None:
        self._sounded((Mark(at_us, position, len(pcm) // 2, live),), pcm, None)

    def clip(self, name: str, pcm: bytes) -> None:
        self._sounded((), pcm, name)

    def stepped(self, event: on.Event, now: int, effects: tuple[Effect, ...] | None, heart: Heart) -> None:
        assert self._scribe is not None
        self.data += self._scribe.step(event, now, effects, standing_of(heart))
        if effects or isinstance(event, on.AudioHeard):
            self.last_us = now

    def close(self) -> None:
        if self._scribe is not None:
            self.data += self._scribe.end("closed")
            self._scribe = None

    def journal(self, name: str) -> Journal:
        return read(bytes(self.data), bytes(self.sound), name)

    def _sounded(self, marks: tuple[Mark, ...], pcm: bytes, clip: str | None) -> None:
        assert self._scribe is not None
        line, block = self._scribe.sound(marks, np.frombuffer(pcm, "<i2"), clip)
        self.data += line
        self.sound += block


@dataclass(slots=True)
class _Segment:
    response_id: str
    start_s: float
    samples: int


class _Playout:
    """A call's track that plays by the loop's clock."""

    def __init__(self, drained: Callable[[str], None]) -> None:
        self._drained = drained
        self._segments: list[_Segment] = []
        self._free_s = 0.0
        self._ends: dict[str, asyncio.TimerHandle] = {}

    def play(self, response_id: str, pcm: bytes) -> None:
        start_s = max(asyncio.get_running_loop().time(), self._free_s)
        self._segments.append(_Segment(response_id, start_s, len(pcm) // 2))
        self._free_s = start_s + len(pcm) / 2 / _RATE_HZ

    def finish(self, response_id: str) -> None:
        loop = asyncio.get_running_loop()
        self._ends[response_id] = loop.call_at(max(loop.time(), self._free_s), self._end, response_id)

    def flush(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for one in self._segments:
            one.samples = self._played(one, now_s)
        self._free_s = now_s
        for handle in self._ends.values():
            handle.cancel()
        self._ends.clear()

    def played_samples(self, response_id: str) -> int:
        now_s = asyncio.get_running_loop().time()
        return sum(self._played(one, now_s) for one in self._segments if one.response_id == response_id)

    def _end(self, response_id: str) -> None:
        del self._ends[response_id]
        self._segments = [one for one in self._segments if one.response_id != response_id]
        self._drained(response_id)

    def _played(self, one: _Segment, now_s: float) -> int:
        return min(one.samples, max(0, int((now_s - one.start_s) * _RATE_HZ)))


@dataclass(slots=True)
class _Link:
    """A connection whose client has said already what it says."""

    id: str
    kind: LinkKind
    playout: _Playout | None = None
    closed: list[tuple[int, str]] = field(default_factory=list)

    def wake(self) -> None:
        pass

    def tell(self, data: bytes) -> None:
        pass

    def close(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))
        if self.playout is not None:
            self.playout.flush()


def perform(
    view: SessionView,
    rules: SessionRules,
    inputs: Sequence[Input],
    make: MakeCompany,
    name: str = "performance",
    began: float = 0.0,
    tell: Tell | None = None,
) -> Performed:
    """Runs a session from its first input until it has settled after the last one; returns how it went. `tell` hears
    how much of it is done, in [0, 1]."""
    memory = Memory(began)

    async def main() -> None:
        company = make()
        try:
            await _play(view, rules, inputs, company, memory, tell or (lambda done: None))
        finally:
            company.close()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())
    return Performed(memory.journal(name), bytes(memory.data), bytes(memory.sound))


async def _play(
    view: SessionView,
    rules: SessionRules,
    inputs: Sequence[Input],
    company: Company,
    memory: Memory,
    tell: Tell,
) -> None:
    clock = LoopClock()
    dispatcher = Dispatcher(company.workers, clock)
    dispatcher.start()
    session = SessionRunner(view, "", rules, clock, dispatcher, company.detector, recorder=memory)
    running = asyncio.create_task(session.run())
    links: dict[str, _Link] = {}
    try:
        for number, one in enumerate(inputs):
            await asyncio.sleep(one.at_us / US_PER_S - asyncio.get_running_loop().time())
            if running.done():
                break
            await _do(session, one, clock, links)
            tell(number / len(inputs))
        await _settle(session, running, memory, clock)
        session.end("the recording has ended")
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        session.close()
        dispatcher.close()
        tell(1.0)


async def _settle(
    session: SessionRunner, running: "asyncio.Task[None]", memory: Memory, clock: LoopClock
) -> None:
    last_us = clock.now_us()
    end_us = last_us + MOST_AFTER_S * US_PER_S
    while not running.done() and clock.now_us() < end_us:
        quiet_s = (clock.now_us() - max(last_us, memory.last_us)) / US_PER_S
        if quiet_s >= SETTLED_AFTER_S and not session.heart.sounding:
            return
        await asyncio.sleep(0.1)


async def _do(session: SessionRunner, one: Input, clock: LoopClock, links: dict[str, _Link]) -> None:
    what = one.what
    try:
        match what:
            case Delivery(live=True):
                session.intake.append_at(what.position, what.pcm)
            case Delivery():
                session.intake.append(what.pcm)
            case on.LinkJoined():
                playout = _Playout(session.playout_drained) if what.kind is LinkKind.CALL else None
                links[what.link_id] = _Link(what.link_id, what.kind, playout)
                session.attach(links[what.link_id])
            case on.LinkLeft():
                session.detach(what.link_id)
                if (link := links.pop(what.link_id, None)) is not None:
                    link.close(1000, "gone")  # its track plays no further
            case on.ClientSaid():
                await session.submit(what.link_id, what.event, max(0, clock.now_us() - what.sent_us))
            case on.ClientErred():
                session.refuse(what.link_id, what.error, what.event_id)
            case on.DrainAsked():
                session.drain(what.until_us - one.at_us)
            case on.EndAsked():
                session.end(what.reason)
    except (Overloaded, SessionClosed):
        pass  # a client would have been told so; what is missing shows in what follows
