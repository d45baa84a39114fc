"""Work that is done for a request instead of a session: through the same dispatcher, by the same workers.

Of each kind of work only so much is given to the dispatcher at one time that a place is left for who talks; the rest
waits before it (`turnstile`), where it neither fills the queue nor presses on what is served.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Self

from orchestrator.clock import US_PER_S, Clock
from orchestrator.errors import ChoraleError, Overloaded, WireError, WorkerFailed
from orchestrator.flow.limiter import Refusal as NoRoom
from orchestrator.flow.limiter import RefusalReason
from orchestrator.ids import random_id
from orchestrator.observability import traceparent
from orchestrator.observability.instrument import NO_TURN
from orchestrator.observability.refusal_lines import RefusalLines
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.kinds import BATCHED_KINDS, KIND_NAMES, KINDS
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import (
    CONTEXT_EXCEEDED,
    REFUSED,
    Failed,
    LimitLeft,
    ReplyText,
    Report,
    Work,
    WorkKind,
    kind_of,
)
from orchestrator.transports.auth import Principal
from orchestrator.transports.refusals import Refusal, ShuttingDown
from orchestrator.transports.seats import Seats
from orchestrator.transports.turnstile import Turnstile

MOST_ERRANDS = 256
"""Requests whose work is being done, over all tenants …"""

MOST_OF_A_TENANT = 128
"""… and of one of them."""

MOST_REPORTS = 1_024
"""Reports that wait for a slow reader: over three minutes of a sentence's sound. Text that waits is put together."""

_CLOSED = "server_shutting_down"

_LEAST_PAUSE_S = 0.1

_NEVER_AGAIN = {"x-should-retry": "false"}
"""What the client libraries go by: they would try again by themselves where that cannot help, or makes it worse."""


def places_of_requests(kind: WorkKind, places: int) -> int:
    """Returns how many of the places for a kind of work requests may have at one time: all but one. What is done in
    batches lasts as long as all that is in it: half a batch."""
    return max(1, places // 2 if kind in BATCHED_KINDS else places - 1)


class Errands:
    """The requests whose work is being done now."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        clock: Clock,
        best_tier: Tier | None = None,
        places: Mapping[WorkKind, int] | None = None,
    ) -> None:
        """`best_tier`: no request's work is done at a better one, whatever its key is worth. None: at the key's own.
        Its quotas stay the key's. `places` are those of all workers of a kind (`places_of_requests`), fewer where these
        may have fewer jobs now; of one that is not named there are as many as there are requests."""
        self._dispatcher = dispatcher
        self._clock = clock
        self._best_tier = best_tier
        self._open: dict[str, Errand] = {}
        self._seats = Seats(MOST_ERRANDS, MOST_OF_A_TENANT, "too many requests are being answered")
        self._places = places or {}
        self.turnstiles = {kind: Turnstile(partial(self._most, kind)) for kind in KINDS}
        self._refusals = RefusalLines(logging.getLogger("chorale.flow"))
        self.refused = 0
        """How many found no seat."""
        self._empty = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def _most(self, kind: WorkKind) -> int:
        """Returns how many jobs of a kind are done for requests at one time."""
        places = self._places.get(kind, 2 * MOST_ERRANDS)
        return places_of_requests(kind, min(places, self._dispatcher.places(kind) or places))

    def open(self, principal: Principal, trace: str | None = None) -> "Errand":
        """Makes room for a request's work, which belongs to the client's span that the header `trace` (traceparent)
        names. Raises `Overloaded`, `ShuttingDown`."""
        if self._closed:
            raise ShuttingDown
        self.take(self._seats, principal.tenant)
        tier = principal.tier if self._best_tier is None else max(principal.tier, self._best_tier)
        errand = Errand(self, self._dispatcher, self._clock, principal, tier)
        self._open[errand.id] = errand
        self._empty.clear()
        remote = traceparent.parse(trace)
        self._dispatcher.listen(errand.id, errand.take, principal.tenant, remote, principal.tier)
        return errand

    def take(self, seats: Seats, tenant: str) -> Callable[[], None]:
        """Takes a seat; returns what gives it back. The log is told of who finds none. Raises `Overloaded`."""
        try:
            seats.take(tenant)
        except Overloaded as full:
            self.refused += 1
            reason = RefusalReason.TENANT if full.is_tenant else RefusalReason.FULL
            self._refusals.note(tenant, "request", reason.value, self._clock.now_us(), full.retry_after_s)
            raise
        return partial(seats.leave, tenant)

    def left(self, principal: Principal) -> tuple[LimitLeft, ...]:
        """Returns what is left of a key's quotas."""
        return self._dispatcher.left(principal.tenant, principal.tier)

    def ended(self, errand: "Errand") -> None:
        """An errand is closed. Idempotent."""
        if self._open.pop(errand.id, None) is None:
            return
        self._dispatcher.drop_session(errand.id)
        self._seats.leave(errand.tenant)
        if not self._open:
            self._empty.set()

    async def wait_empty(self) -> None:
        """Waits until no request is being answered. Cancelling loses nothing."""
        while self._open:
            await self._empty.wait()

    def close(self) -> None:
        """Ends every errand: whoever waits for its work is told so. Takes no more. Idempotent."""
        self._closed = True
        for errand in list(self._open.values()):
            errand.shut()
        for turnstile in self.turnstiles.values():
            turnstile.close()


class Errand:
    """One request's work, one piece after another. Leaving the block, or `close`, takes back what is not done: nothing
    is computed for a caller who has gone."""

    def __init__(
        self, errands: Errands, dispatcher: Dispatcher, clock: Clock, principal: Principal, tier: Tier
    ) -> None:
        self.id = random_id("http")
        self.tenant = principal.tenant
        self.tier = tier
        self._account = principal.tier
        self._errands = errands
        self._dispatcher = dispatcher
        self._clock = clock
        self._count = 0
        self._job_id = ""
        self._reports: deque[Report] = deque(maxlen=MOST_REPORTS)
        self._came = asyncio.Event()
        self._turnstile: Turnstile | None = None
        self._has_begun = False
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Takes back what is not done. Idempotent."""
        self._closed = True
        self._errands.ended(self)
        self._leave()

    def sit(self, seats: Seats) -> Callable[[], None]:
        """Takes one of these seats (`Errands.take`)."""
        return self._errands.take(seats, self.tenant)

    def book(self) -> None:
        """Puts one request on the tenant's account, where its work costs nothing by itself. Raises `Refusal` (429)."""
        refusal = self._dispatcher.book(self.tenant, self._account)
        if isinstance(refusal, NoRoom):
            wait_s = refusal.retry_after_s
            when = f"; try again in {wait_s:.1f} s" if wait_s else ""
            raise _over_quota(f"the quota of this key is used up{when}", wait_s)

    async def run(
        self, work: Work, within_us: int, param: str | None = None, patience_us: int = 0
    ) -> AsyncGenerator[Report, None]:
        """Yields the reports of one piece of work, to its last. Leaving the iteration takes the work back. It is missed
        `patience_us` later than what somebody waits for in a talk.

        What was let in is done to its end: once one piece of an errand's work is done, a further one that is refused
        for now (a quota, too much to do) is asked for again when it is told to be.

        Raises `Refusal` (429 over the quota, 503 with a time to come back, 504 not done in time), `WorkerFailed`,
        `ShuttingDown`, and `WireError` naming `param` where it does not fit into the model.
        """
        by_us = self._clock.now_us() + within_us
        failed = None
        while failed is None or await self._pauses(failed, by_us):
            failed = None
            job_id = await self._begin(work, by_us, patience_us)
            ended = given = False
            try:
                while not ended:
                    report = await self._next()
                    ended = ends_a_job(report)
                    if isinstance(report, Failed):
                        failed = report
                        break
                    given = True
                    yield report
            finally:
                self._job_id = ""
                self._leave()
                if not ended:
                    self._dispatcher.cancel(job_id)
            if failed is None:
                self._has_begun = True
                return
            if given or not self._has_begun:
                break
        assert failed is not None
        raise error_of(failed, work, param)

    async def _begin(self, work: Work, by_us: int, patience_us: int) -> str:
        """Submits the work once there is a place for it; returns its job's id."""
        kind = kind_of(work)
        if not self._closed:
            await self._enter(self._errands.turnstiles[kind], work, by_us)
        if self._closed:
            self._leave()
            raise ShuttingDown
        self._count += 1
        self._job_id = job_id = f"{self.id}_{self._count}"
        self._reports.clear()
        now = self._clock.now_us()
        due_us = now + patience_us
        job = Job(job_id, self.id, work, self.tier, int(self.tier), now, by_us, due_us=due_us)
        self._dispatcher.submit(job, NO_TURN)
        return job_id

    async def _enter(self, turnstile: Turnstile, work: Work, by_us: int) -> None:
        try:
            async with asyncio.timeout(max(0, by_us - self._clock.now_us()) / US_PER_S):
                await turnstile.enter(self.tenant, int(self.tier))
        except TimeoutError:
            late = f"{KIND_NAMES[kind_of(work)]} did not answer in time"
            raise error_of(Failed("", "deadline_exceeded", late), work) from None
        self._turnstile = turnstile

    def _leave(self) -> None:
        turnstile, self._turnstile = self._turnstile, None
        if turnstile is not None:
            turnstile.leave()

    async def _pauses(self, failed: Failed, by_us: int) -> bool:
        """Waits until refused work may be asked for again; False where that is never, or too late."""
        pause_s = max(_LEAST_PAUSE_S, failed.retry_after_s)
        if not failed.retry_after_s or self._clock.now_us() + pause_s * US_PER_S >= by_us:
            return False
        self._came.clear()
        try:
            async with asyncio.timeout(pause_s):
                while not self._closed:
                    await self._came.wait()
        except TimeoutError:
            pass
        return True

    def take(self, report: Report) -> None:
        """Takes a report from the dispatcher."""
        if report.job_id != self._job_id:
            return
        if ends_a_job(report):
            self._leave()
        if isinstance(report, ReplyText) and self._reports and isinstance(self._reports[-1], ReplyText):
            self._reports[-1] = ReplyText(report.job_id, self._reports[-1].text + report.text)
        elif len(self._reports) < MOST_REPORTS - 1 or ends_a_job(report):
            self._reports.append(report)
        else:
            self._dispatcher.cancel(self._job_id)
            self._leave()
            self._reports.append(Failed(self._job_id, REFUSED, "the answer was read too slowly"))
            self._job_id = ""
        self._came.set()

    def shut(self) -> None:
        """The server stops: what runs ends, and nothing more is begun."""
        self._closed = True
        if self._job_id:
            self._dispatcher.cancel(self._job_id)
            self.take(Failed(self._job_id, _CLOSED, ""))
        self._came.set()

    async def _next(self) -> Report:
        while not self._reports:
            self._came.clear()
            await self._came.wait()
        return self._reports.popleft()


def error_of(failed: Failed, work: Work, param: str | None = None) -> ChoraleError:
    """Returns a failed job as an error of the request."""
    match failed.code:
        case code if code == REFUSED and failed.reason == RefusalReason.TENANT.value:
            return _over_quota(failed.message, failed.retry_after_s)
        case code if code == REFUSED or failed.retry_after_s:
            wait = str(max(1, math.ceil(failed.retry_after_s)))
            return Refusal(503, code, failed.message, headers={"Retry-After": wait})
        case code if code == CONTEXT_EXCEEDED:
            return WireError(code, failed.message, param)
        case "deadline_exceeded":
            return Refusal(504, failed.code, failed.message, headers=_NEVER_AGAIN)
        case code if code == _CLOSED:
            return ShuttingDown()
        case _:
            return WorkerFailed(kind_of(work), failed.message)


def _over_quota(message: str, retry_after_s: float) -> Refusal:
    """429. Where waiting does not help, clients that try again by themselves are told not to."""
    if not retry_after_s:
        return Refusal(429, REFUSED, message, headers=_NEVER_AGAIN)
    return Refusal(429, REFUSED, message, headers={"Retry-After": str(max(1, math.ceil(retry_after_s)))})
