"""A call to a Realtime server that is made again, to the same session, when it broke."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Self

import numpy as np

from orchestrator.clients.address import CallFailed, Event, ServerAway, ServerRefused
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.recording import Samples
from orchestrator.clients.returning import GONE, PASSING, STEADY_S, Backoff, Cursor, Rules

Dialling = Callable[[Cursor], AbstractAsyncContextManager[RealtimeCall]]


class ReturningCall:
    """Use as ``async with ReturningCall.connect(url) as call``: `call.now` is the call that is there. What a call that
    broke had yet to play is played in the next one."""

    def __init__(self, dial: Dialling, rules: Rules) -> None:
        self._dial = dial
        self._rules = rules
        self._backoff = Backoff(rules.random)
        self._stack = AsyncExitStack()
        self._heard: list[Samples] = []
        self._now: RealtimeCall | None = None
        self._opened_s = self._wait_s = 0.0
        self.failure: str | None = None
        """Why there is no call any more, once that is so."""

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        key: str | None = None,
        session: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
    ) -> AsyncIterator[Self]:
        """Calls, and hangs up at the end. Raises as `RealtimeCall.connect`."""

        def dial(cursor: Cursor) -> AbstractAsyncContextManager[RealtimeCall]:
            return RealtimeCall.connect(url, key, session, cursor=cursor)

        calling = cls(dial, rules or Rules())
        try:
            await calling._open(Cursor())
            yield calling
        finally:
            await calling._stack.aclose()

    @property
    def now(self) -> RealtimeCall:
        """The call that is there, or was last."""
        assert self._now is not None, "it was connected"
        return self._now

    async def events(self) -> AsyncIterator[Event]:
        """Yields what the server says, each event once and in order, until there is no call any more (`failure`)."""
        try:
            while True:
                async for event in self.now.events():
                    yield event
                await self._return()
        except CallFailed as failed:
            self.failure = str(failed)

    def heard(self) -> Samples:
        """Returns the sound of all calls so far, one behind the other."""
        return np.concatenate([*self._heard, self.now.received_pcm().samples])

    async def _return(self) -> None:
        """Comes back. Raises `CallFailed`: why the call broke."""
        broke = CallFailed(self.now.failure or "the call has ended")
        if not self.now.cursor.may_return:
            raise broke
        self._rules.notice(f"{broke}; calling again")
        if asyncio.get_running_loop().time() - self._opened_s > STEADY_S:
            self._backoff.steady()
        self._heard.append(self.now.received_pcm().samples)
        await self._stack.aclose()
        try:
            async with asyncio.timeout(self._rules.give_up_s):
                while not await self._attempt(broke):
                    pass
        except TimeoutError:
            raise broke from None

    async def _attempt(self, broke: CallFailed) -> bool:
        await asyncio.sleep(self._backoff.next_s(self._wait_s))
        self._wait_s = 0.0
        try:
            await self._open(self.now.cursor)
        except (ServerAway, CallFailed):
            return False
        except ServerRefused as refused:
            if refused.status in PASSING:
                self._wait_s = refused.retry_after_s
                return False
            raise (broke if refused.status == GONE else refused) from None
        return True

    async def _open(self, cursor: Cursor) -> None:
        self._now = await self._stack.enter_async_context(self._dial(cursor))
        self._opened_s = asyncio.get_running_loop().time()
