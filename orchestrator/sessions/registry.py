"""All living sessions: opens, finds, drains and ends them. A place is reserved before anything else happens."""

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestrator.buffers.output_store import OutputStore, StoreStatistics
from orchestrator.clock import US_PER_S, Clock
from orchestrator.errors import Overloaded, SessionClosed
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter, Permit, Refusal
from orchestrator.flow.tenants import Places
from orchestrator.ids import random_id, session_secret
from orchestrator.observability import traceparent
from orchestrator.observability.instrument import Instrument
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.figures import EarlyFigures
from orchestrator.sessions.holdings import Holdings
from orchestrator.sessions.intake import Detector
from orchestrator.sessions.links import LinkKind, SessionPort, SessionRequest
from orchestrator.sessions.rules import SessionRules, on_day
from orchestrator.sessions.runner import SessionRunner
from orchestrator.sessions.tap import Recorder
from orchestrator.wire.session import Session as SessionView
from orchestrator.wire.update import initial

log = logging.getLogger("chorale.session")

KEY_WITHDRAWN = "The key has been withdrawn."

_SESSIONS_A_STEP = 64
_TENANT_RETRY_S = 5.0

_CHOSEN_LENGTH = 32
"""Of what proxies choose (`SessionRequest.session_id`); our own are shorter."""

_NOBODYS = session_secret()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _call_prefix(session_id: str) -> str:
    """Returns what a call's id begins with: what a proxy has chosen for the session, so that it finds the call too."""
    chosen = session_id.removeprefix("sess_")
    return f"rtc_{chosen}" if len(chosen) == _CHOSEN_LENGTH else "rtc"


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """`defaults` is the session that a client gets who asks for nothing; its id and expiry do not count."""

    defaults: SessionView
    rules: SessionRules
    max_sessions: int = 1_000
    log_events: int = 4_096
    log_bytes: int = 16 * 1024 * 1024
    total_log_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RegistryStatistics:
    """`sessions` and `calls` are now, and so is what their output logs hold; `early` counts over all sessions since
    the start."""

    sessions: int
    calls: int
    early: EarlyFigures
    logs: StoreStatistics


class Registry:
    """Implements `SessionDirectory`. `run` is its task; sessions live as tasks below it."""

    def __init__(
        self,
        settings: RegistrySettings,
        clock: Clock,
        dispatcher: Dispatcher,
        detector: Detector,
        recorder: Recorder | None = None,
        instrument: Instrument | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._dispatcher = dispatcher
        self._detector = detector
        self._recorder = recorder
        self._instrument = instrument
        self._store = OutputStore(settings.total_log_bytes)
        self._places = Places()
        self._limiter = Limiter(FixedLimit(settings.max_sessions))
        self._sessions: dict[str, SessionRunner] = {}
        self._calls: dict[str, SessionRunner] = {}
        self._keys: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._early_of_gone = EarlyFigures()
        self._lost_of_gone = Holdings()
        self._draining = False
        self._refused = 0
        self.may_open: Callable[[], Refusal | None] = lambda: None
        """Says why no session is opened now, though there is a place: there is too much to do for those that are."""
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def draining(self) -> bool:
        return self._draining

    @property
    def refused(self) -> int:
        """How many sessions were not opened since the start, for want of room or time."""
        return self._refused

    def statistics(self) -> RegistryStatistics:
        early = replace(self._early_of_gone)
        for runner in self._sessions.values():
            early.add(runner.heart.early)
        return RegistryStatistics(len(self._sessions), len(self._calls), early, self._store.statistics())

    def logs(self) -> StoreStatistics:
        """Returns what the output logs of all sessions hold together."""
        return self._store.statistics()

    def holdings(self) -> Holdings:
        """Returns what all sessions hold now; what ended sessions let go is counted too."""
        sums = replace(self._lost_of_gone)
        for runner in self._sessions.values():
            runner.add_to(sums)
        return sums

    async def holdings_in_steps(self) -> Holdings:
        """As `holdings`, but the loop turns in between: a thousand sessions take some milliseconds."""
        sums = replace(self._lost_of_gone)
        for number, runner in enumerate(list(self._sessions.values()), start=1):
            runner.add_to(sums)
            if number % _SESSIONS_A_STEP == 0:
                await asyncio.sleep(0)
        return sums

    # -- SessionDirectory -------------------------------------------------------------------------------------------

    def open(self, request: SessionRequest, kind: LinkKind) -> SessionRunner:
        if self._draining:
            raise self._no_room("The server is shutting down", 5.0)
        if (shed := self.may_open()) is not None:
            raise self._no_room("There is too much to do for another session now", shed.retry_after_s)
        most = request.allowance.sessions
        if not self._places.take(request.tenant, most):
            raise Overloaded(f"All {most} sessions of this key's tenant are in use", _TENANT_RETRY_S, True)
        permit = self._limiter.acquire(self._clock.now_us())
        if isinstance(permit, Refusal):
            self._places.give_back(request.tenant)
            raise self._no_room(
                f"All {self._settings.max_sessions} sessions are in use", permit.retry_after_s
            )
        try:
            runner = self._make(request)
        except BaseException:
            self._places.give_back(request.tenant)
            permit.ignored(self._clock.now_us())
            raise
        self._keys[runner.id] = request.key_id
        self._adopt(runner, permit)
        return runner

    def withdraw(self, key_ids: frozenset[str]) -> None:
        """Ends every session that was opened by one of these keys."""
        for session_id in [session_id for session_id, key_id in self._keys.items() if key_id in key_ids]:
            self._sessions[session_id].end(KEY_WITHDRAWN, 1008)

    def open_call(
        self, request: SessionRequest, session: SessionPort | None = None
    ) -> tuple[str, SessionPort]:
        runner = self.open(request, LinkKind.CALL) if session is None else self._living(session)
        if runner.call_id is not None:
            self._calls.pop(runner.call_id, None)
        runner.call_id = random_id(_call_prefix(runner.id))
        self._calls[runner.call_id] = runner
        return runner.call_id, runner

    def by_call(self, call_id: str, tenant: str) -> SessionRunner:
        runner = self._calls.get(call_id)
        if runner is None or runner.tenant != tenant:
            raise SessionClosed(f"There is no call '{call_id}'")
        return runner

    def by_id(self, session_id: str, secret: str, tenant: str | None) -> SessionRunner:
        runner = self._sessions.get(session_id)
        # Compared where there is no session too, so that the time taken does not tell whether there is one.
        is_known = hmac.compare_digest(_digest(secret), _digest(runner.secret if runner else _NOBODYS))
        if runner is None or not is_known or tenant not in (None, runner.tenant):
            raise SessionClosed("There is no such session, or its secret is another")
        return runner

    def key_of(self, session: SessionPort) -> str:
        return self._keys.get(session.id, "")

    def _living(self, session: SessionPort) -> SessionRunner:
        runner = self._sessions.get(session.id)
        if runner is None:
            raise SessionClosed("The session has ended")
        return runner

    def end(self, session: SessionPort, reason: str) -> None:
        runner = self._sessions.get(session.id)
        if runner is not None:
            runner.end(reason)

    # -- life of the server -----------------------------------------------------------------------------------------

    async def drain(self, within_s: float) -> None:
        """Lets running turns finish, opens nothing new; returns when all sessions have ended. Cancelling it leaves
        the rest running."""
        self._draining = True
        for runner in list(self._sessions.values()):
            runner.drain(int(within_s * US_PER_S))
        await self._empty.wait()

    async def close(self) -> None:
        """Ends every session at once. Idempotent."""
        self._draining = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _no_room(self, why: str, retry_after_s: float) -> Overloaded:
        self._refused += 1
        return Overloaded(why, max(1.0, retry_after_s))

    def _make(self, request: SessionRequest) -> SessionRunner:
        settings = self._settings
        session_id = request.session_id
        if session_id is None or session_id in self._sessions:
            session_id = random_id("sess")
        expires_at = int(time.time()) + settings.rules.max_session_us // US_PER_S
        view = initial(session_id, request.model, expires_at, settings.defaults, request.initial)
        runner = SessionRunner(
            view,
            session_secret(),
            replace(on_day(settings.rules, time.time()), tier=Tier(request.tier)),
            self._clock,
            self._dispatcher,
            self._detector,
            (settings.log_events, settings.log_bytes),
            request.tenant,
            self._recorder,
            self._store,
            self._instrument,
            traceparent.parse(request.traceparent),
        )
        runner.make_room = self._make_room
        return runner

    def _make_room(self) -> None:
        """Clears the logs of sessions that nobody is connected to, where all logs together are too large."""
        for session_id in self._store.over():
            log.info("output log cleared for others", extra={"session": session_id})
            self._sessions[session_id].forget_log()

    def _adopt(self, runner: SessionRunner, permit: Permit) -> None:
        self._sessions[runner.id] = runner
        self._empty.clear()
        task = asyncio.get_running_loop().create_task(self._live(runner), name=f"session {runner.id}")
        self._tasks[runner.id] = task
        # Not in the task's own `finally`: a task that is cancelled before its first step never gets there.
        task.add_done_callback(lambda _: self._gone(runner, permit))

    async def _live(self, runner: SessionRunner) -> None:
        """A task border: a fault of ours in one session ends that session and no other."""
        try:
            await runner.run()
        except Exception:
            log.exception("session failed", extra={"session": runner.id})

    def _gone(self, runner: SessionRunner, permit: Permit) -> None:
        runner.close()
        self._places.give_back(runner.tenant)
        self._keys.pop(runner.id, None)
        permit.succeeded(self._clock.now_us())
        if self._sessions.pop(runner.id, None) is not None:
            self._early_of_gone.add(runner.heart.early)
            runner.add_losses_to(self._lost_of_gone)
        self._tasks.pop(runner.id, None)
        if runner.call_id is not None:
            self._calls.pop(runner.call_id, None)
        if not self._sessions:
            self._empty.set()
