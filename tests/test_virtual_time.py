import asyncio

import pytest

from tests.virtual_time import Deadlock, VirtualClock, run


def test_an_hour_of_sleep_passes_at_once_and_exactly() -> None:
    """The clock jumps to the next timer and stands at it, to the microsecond."""

    async def main() -> list[int]:
        clock, seen = VirtualClock(), []
        for _ in range(3):
            await asyncio.sleep(1_200)
            seen.append(clock.now_us())
        return seen

    assert run(main()) == [1_200_000_000, 2_400_000_000, 3_600_000_000]


def test_timers_fire_in_the_order_of_their_deadlines() -> None:
    """Tasks interleave by deadline, ties by the order in which they were set."""

    async def main() -> list[str]:
        seen: list[str] = []

        async def note(name: str, *delays_s: float) -> None:
            for delay_s in delays_s:
                await asyncio.sleep(delay_s)
                seen.append(f"{name}@{asyncio.get_running_loop().time():g}")

        async with asyncio.TaskGroup() as group:
            group.create_task(note("a", 2, 2, 2))
            group.create_task(note("b", 3, 1))
            group.create_task(note("c", 1))
        return seen

    assert run(main()) == ["c@1", "a@2", "b@3", "a@4", "b@4", "a@6"]


def test_a_timeout_expires_in_virtual_time() -> None:
    """`asyncio.timeout` sees the loop's clock."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400 * 3):
                await asyncio.sleep(86_400 * 30)
        return asyncio.get_running_loop().time()

    assert run(main()) == 86_400 * 3


def test_time_stands_still_while_a_thread_works() -> None:
    """A timer does not overtake work that was handed to a thread before, however long that takes."""

    async def main() -> tuple[str, float]:
        loop, release = asyncio.get_running_loop(), asyncio.Event()
        timer = loop.call_later(5, release.set)
        answer = await asyncio.to_thread(lambda: f"{sum(range(200_000))}")
        overtaken = release.is_set()
        timer.cancel()
        assert not overtaken
        return answer, loop.time()

    assert run(main()) == ("19999900000", 0.0)


def test_a_deadlock_names_the_tasks_that_wait() -> None:
    """Where nothing can happen any more, the error says who waits and where; the loop ends cleanly."""
    cleaned = []

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("for_ever")

    async def main() -> None:
        waiting = asyncio.create_task(for_ever(), name="the-forgotten-one")
        await asyncio.sleep(1)
        await waiting

    with pytest.raises(Deadlock, match=r"at 1\.0+ s [\s\S]*the-forgotten-one \(.*for_ever\) at .+:\d+"):
        run(main())
    assert cleaned == ["for_ever"]


def test_a_call_from_another_thread_is_not_taken_for_a_deadlock() -> None:
    """A task may wait for a thread that wakes it with `call_soon_threadsafe`."""

    async def main() -> str:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()
        await asyncio.to_thread(loop.call_soon_threadsafe, answer.set_result, "woken")
        return await answer

    assert run(main()) == "woken"


def test_an_error_of_the_main_task_travels() -> None:
    """`run` raises what the coroutine raises."""

    async def main() -> None:
        await asyncio.sleep(1)
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        run(main())
