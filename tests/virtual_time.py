"""An event loop whose clock jumps: an hour of conversation runs in milliseconds, always in the same order.

`run(main())` is `asyncio.run` on that loop. While something is ready, time stands still; when nothing is, it moves to
the next timer at once. Work in threads (`asyncio.to_thread`) takes no virtual time: the clock waits for it. Where
nothing is ready and nothing is scheduled, nothing can ever happen again: `Deadlock` says which tasks wait, and where.
Real sockets and child processes have clocks of their own and do not belong on this loop.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Ready = list[tuple[selectors.SelectorKey, int]]


class Deadlock(AssertionError):
    """Every task waits and no timer is set."""


class VirtualClock:
    """An `orchestrator.clock.Clock` that reads the running loop."""

    def now_us(self) -> int:
        return round(asyncio.get_running_loop().time() * 1_000_000)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Starts at second 0."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._in_threads = 0
        self._pool = ThreadPoolExecutor(thread_name_prefix="virtual-time")
        super().__init__(_Selector(self._pass_time))

    def time(self) -> float:
        return self._now_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        self._in_threads += 1
        future = super().run_in_executor(executor or self._pool, func, *args)
        future.add_done_callback(self._leave_thread)
        return future

    def close(self) -> None:
        self._pool.shutdown()
        super().close()

    def _leave_thread(self, _: asyncio.Future[Any]) -> None:
        self._in_threads -= 1

    def _pass_time(self, timeout_s: float | None) -> float | None:
        """Returns how long to wait for real: until a thread is done, or not at all."""
        if self._in_threads and timeout_s != 0:
            return None
        if timeout_s is None:
            raise Deadlock(self._who_waits())
        self._now_s += timeout_s
        return 0

    def _who_waits(self) -> str:
        lines = [f"at {self._now_s:.6f} s nothing is ready and no timer is set; these tasks wait for ever:"]
        for task in sorted(asyncio.all_tasks(self), key=lambda task: task.get_name()):
            stack = task.get_stack(limit=1)
            where = f"{stack[0].f_code.co_filename}:{stack[0].f_lineno}" if stack else "?"
            lines.append(f"  {task.get_name()} ({getattr(task.get_coro(), '__qualname__', '?')}) at {where}")
        return "\n".join(lines)


class _Selector(selectors.DefaultSelector):
    """Asks `wait_for` before it would block. What other threads woke the loop with is always taken first."""

    def __init__(self, wait_for: Callable[[float | None], float | None]) -> None:
        super().__init__()
        self._wait_for = wait_for

    def select(self, timeout: float | None = None) -> Ready:
        return super().select(0) or super().select(self._wait_for(timeout))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Returns what `main` returns; other tasks are cancelled then, as by `asyncio.run`. Raises `Deadlock`."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
