"""Work that is done for a request instead of a session: through the same dispatcher, by the same workers."""

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator
from typing import Self

from orchestrator.clock import Clock
from orchestrator.errors import ChoraleError, WireError, WorkerFailed
from orchestrator.flow.limiter import Refusal as NoRoom
from orchestrator.flow.limiter import RefusalReason
from orchestrator.ids import random_id
from orchestrator.observability.instrument import NO_TURN
from orchestrator.observability.refusal_lines import RefusalLines
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import CONTEXT_EXCEEDED, REFUSED, Failed, ReplyText, Report, Work, kind_of
from orchestrator.transports.auth import Principal
from orchestrator.transports.refusals import Refusal, ShuttingDown
from orchestrator.transports.seats import Seats

log = logging.getLogger(__name__)

MOST_ERRANDS = 256
"""Requests whose work is being done, over all tenants …"""

MOST_OF_A_TENANT = 128
"""… and of one of them."""

MOST_REPORTS = 1_024
"""Reports that wait for a slow reader: over three minutes of a sentence's sound. Text that waits is put together."""

_CLOSED = "server_shutting_down"

_NEVER_AGAIN = {"x-should-retry": "false"}
"""What the client libraries go by: they would try again by themselves where that cannot help, or makes it worse."""


class Errands:
    """The requests whose work is being done now."""

    def __init__(self, dispatcher: Dispatcher, clock: Clock, best_tier: Tier | None = None) -> None:
        """`best_tier`: no request's work is done at a better one, whatever its key is worth. None: at the key's own."""
        self._dispatcher = dispatcher
        self._clock = clock
        self._best_tier = best_tier
        self._open: dict[str, Errand] = {}
        self._seats = Seats(MOST_ERRANDS, MOST_OF_A_TENANT, "too many requests are being answered")
        self._empty = asyncio.Event()
        self._refusals = RefusalLines(log)
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def tell_refused(self, tenant: str, refusal: NoRoom) -> None:
        """Has the log say whose request found its quota used up before there was a job of it."""
        now = self._clock.now_us()
        self._refusals.note(tenant, "request", refusal.reason.value, now, refusal.retry_after_s)

    def open(self, principal: Principal) -> "Errand":
        """Makes room for a request's work. Raises `Overloaded`, `ShuttingDown`."""
        if self._closed:
            raise ShuttingDown
        self._seats.take(principal.tenant)
        tier = principal.tier if self._best_tier is None else max(principal.tier, self._best_tier)
        errand = Errand(self, self._dispatcher, self._clock, principal.tenant, tier)
        self._open[errand.id] = errand
        self._empty.clear()
        self._dispatcher.listen(errand.id, errand.take, principal.tenant)
        return errand

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


class Errand:
    """One request's work, one piece after another. Leaving the block, or `close`, takes back what is not done: nothing
    is computed for a caller who has gone."""

    def __init__(
        self, errands: Errands, dispatcher: Dispatcher, clock: Clock, tenant: str, tier: Tier
    ) -> None:
        self.id = random_id("http")
        self.tenant = tenant
        self.tier = tier
        self._errands = errands
        self._dispatcher = dispatcher
        self._clock = clock
        self._count = 0
        self._job_id = ""
        self._reports: deque[Report] = deque(maxlen=MOST_REPORTS)
        self._came = asyncio.Event()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Takes back what is not done. Idempotent."""
        self._closed = True
        self._errands.ended(self)

    def book(self) -> None:
        """Puts one request on the tenant's account, where its work costs nothing by itself. Raises `Refusal` (429)."""
        refusal = self._dispatcher.book(self.tenant, self.tier)
        if isinstance(refusal, NoRoom):
            self._errands.tell_refused(self.tenant, refusal)
            wait_s = refusal.retry_after_s
            when = f"; try again in {wait_s:.1f} s" if wait_s else ""
            raise _over_quota(f"the quota of this key is used up{when}", wait_s)

    async def run(
        self, work: Work, within_us: int, param: str | None = None, patience_us: int = 0
    ) -> AsyncGenerator[Report, None]:
        """Yields the reports of one piece of work, to its last. Leaving the iteration takes the work back. It is missed
        `patience_us` later than what somebody waits for in a talk.

        Raises `Refusal` (429 over the quota, 503 with a time to come back, 504 not done in time), `WorkerFailed`,
        `ShuttingDown`, and `WireError` naming `param` where it does not fit into the model.
        """
        if self._closed:
            raise ShuttingDown
        self._count += 1
        self._job_id = job_id = f"{self.id}_{self._count}"
        self._reports.clear()
        now = self._clock.now_us()
        job = Job(
            job_id,
            self.id,
            work,
            self.tier,
            int(self.tier),
            now,
            now + within_us,
            due_us=now + patience_us,
        )
        self._dispatcher.submit(job, NO_TURN)
        ended = False
        try:
            while not ended:
                report = await self._next()
                ended = ends_a_job(report)
                if isinstance(report, Failed):
                    raise error_of(report, work, param)
                yield report
        finally:
            self._job_id = ""
            if not ended:
                self._dispatcher.cancel(job_id)

    def take(self, report: Report) -> None:
        """Takes a report from the dispatcher."""
        if report.job_id != self._job_id:
            return
        if isinstance(report, ReplyText) and self._reports and isinstance(self._reports[-1], ReplyText):
            self._reports[-1] = ReplyText(report.job_id, self._reports[-1].text + report.text)
        elif len(self._reports) < MOST_REPORTS - 1 or ends_a_job(report):
            self._reports.append(report)
        else:
            self._dispatcher.cancel(self._job_id)
            self._reports.append(Failed(self._job_id, REFUSED, "the answer was read too slowly"))
            self._job_id = ""
        self._came.set()

    def shut(self) -> None:
        """The server stops: what runs ends, and nothing more is begun."""
        self._closed = True
        if self._job_id:
            self._dispatcher.cancel(self._job_id)
            self.take(Failed(self._job_id, _CLOSED, ""))

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
