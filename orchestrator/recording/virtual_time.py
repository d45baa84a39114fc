"""An event loop whose clock jumps to the next timer: an hour of conversation takes as long as its work does.

While something is ready, time stands still; when nothing is, it moves to the next timer at once. It also stands still
while anything is at work outside the loop: threads of the loop's executors, and whatever `hold`s it.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

from orchestrator.errors import InvalidState

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Starts at second 0. Sockets and processes of others have clocks of their own and do not belong on it."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._held = 0
        super().__init__(_Selector(self._pass_time))

    def time(self) -> float:
        return self._now_s

    def hold(self) -> None:
        """Something works outside: time stands still until `release`, once for each."""
        self._held += 1

    def release(self) -> None:
        """What held time has answered. Call it on the loop."""
        self._held -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        self.hold()
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: self.release())
        return future

    def _pass_time(self, timeout_s: float | None) -> float | None:
        """Returns how long to wait for real: until somebody outside answers, or not at all."""
        if self._held and timeout_s != 0:
            return None
        if timeout_s is None:
            raise InvalidState("virtual time", self._now_s, "nothing is ready and no timer is set")
        self._now_s += timeout_s
        return 0


class LoopClock:
    """A `Clock` that reads the running loop."""

    def now_us(self) -> int:
        return round(asyncio.get_running_loop().time() * 1_000_000)


class _Selector(selectors.DefaultSelector):
    """Asks `wait_for` before it would block. What other threads woke the loop with is always taken first."""

    def __init__(self, wait_for: Callable[[float | None], float | None]) -> None:
        super().__init__()
        self._wait_for = wait_for

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, Any]]:
        return super().select(0) or super().select(self._wait_for(timeout))
