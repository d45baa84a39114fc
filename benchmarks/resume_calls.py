"""Calls for `chorale bench resume`: a caller that is cut off, or leaves, in the middle of spoken replies.

What reached it of the events is compared with what a sideband saw that was never cut. Sound that a caller hears has
been coded, so that its samples are not compared here (`tests/sessions/test_call_returning.py` does, where they are
played); here each reply must be told as played to its end, and none as cut.
"""

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import AsyncExitStack

from benchmarks.resume_outcome import Compared, Received
from benchmarks.resume_server import PACE_S, serving
from orchestrator.clients.address import Event
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.returning import Cursor
from orchestrator.clients.text_socket import RealtimeSocket

SHORTEST_S, LONGEST_S = 0.05, 1.0
"""How long a call lasts before it is cut."""

_ENDS = ("output_audio_buffer.stopped", "output_audio_buffer.cleared")


class Caller:
    """One client with one call after the other. Half of the time the old call is still there when the new one comes, as
    when a client notices first that its line is dead."""

    def __init__(self, url: str, chance: random.Random, got: Received) -> None:
        self._url = url
        self._chance = chance
        self._got = got
        self._line = AsyncExitStack()
        self.cursor = Cursor()
        self.call_id = ""
        self.is_cutting = True

    async def dial(self) -> RealtimeCall:
        """Calls, for the first time or again."""
        line = AsyncExitStack()
        place = Cursor(self.cursor.session_id, self.cursor.secret, self.cursor.last)
        call = await line.enter_async_context(RealtimeCall.connect(self._url, cursor=place))
        await self._line.aclose()
        self._line = line
        self._got.connections += 1
        if not self.cursor.session_id:
            self.cursor = Cursor(place.session_id, place.secret)
            self.call_id = call.call_id
        return call

    async def follow(self, call: RealtimeCall) -> None:
        """Takes what comes, and is cut off again and again."""
        loop = asyncio.get_running_loop()
        while True:
            lasts_s = self._chance.uniform(SHORTEST_S, LONGEST_S)
            end_s = loop.time() + lasts_s if self.is_cutting else None
            try:
                async with asyncio.timeout_at(end_s):
                    async for event in call.events():
                        self._got.take(event, canonical(event), self.cursor)
            except TimeoutError:
                if not self.is_cutting:
                    continue
            if self._chance.random() < 0.5:
                await self._line.aclose()
            call = await self.dial()

    async def close(self) -> None:
        await self._line.aclose()


def canonical(event: Event) -> str:
    """Returns an event as a text that is the same for equal events."""
    return json.dumps(event, sort_keys=True)


async def cut_calls(
    cuts: int, seed: int, deltas: int, tell: Callable[[int], None] = lambda cuts: None
) -> Compared:
    """Follows spoken replies over calls that are cut `cuts` times, and compares. Raises `AssertionError` where a reply
    was not played to its end."""
    whole, got = Received(), Received()
    async with serving(deltas, PACE_S, log_events=8_192) as ports:
        caller = Caller(f"http://127.0.0.1:{ports.http}", random.Random(seed), got)
        tasks: list[asyncio.Task[None]] = []
        try:
            call = await caller.dial()
            async with RealtimeSocket.connect(
                f"http://127.0.0.1:{ports.http}", call_id=caller.call_id
            ) as observer:
                tasks = [
                    asyncio.create_task(_watch(observer, caller.cursor.session_id, whole), name="observer"),
                    asyncio.create_task(caller.follow(call), name="caller"),
                ]
                while True:
                    ended = sum(whole.kinds[kind] for kind in _ENDS)
                    await observer.send({"type": "response.create"})
                    await whole.wait_for(
                        lambda ended=ended: sum(whole.kinds[kind] for kind in _ENDS) > ended,  # type: ignore[misc]
                        tasks,
                    )
                    tell(got.connections - 1)
                    if got.connections > cuts:
                        break
                caller.is_cutting = False
                await got.wait_for(lambda: got.last >= whole.last, tasks)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            await caller.close()
    assert whole.kinds["output_audio_buffer.cleared"] == 0, "a reply was cut"
    return Compared.of(got.connections - 1, whole, got)


async def _watch(observer: RealtimeSocket, session_id: str, whole: Received) -> None:
    cursor = Cursor(session_id)
    while True:
        event = await observer.receive()
        whole.take(event, canonical(event), cursor)
