"""When links are told of the words of a reply."""

import asyncio
from itertools import pairwise

from orchestrator.sessions.waking import GATHER_US, GATHER_WORDS, Waking
from tests.scheduling.dispatching import on_virtual_time


def test_waking_first_word_goes_in_its_turn_of_the_loop() -> None:
    """Nothing is waited for where nothing was written just now; what the same turn brings goes along."""

    async def main() -> None:
        woken: list[str] = []
        waking = Waking(lambda: woken.append("woke"))
        waking.word(0)
        waking.word(0)
        assert woken == []
        await asyncio.sleep(0)
        assert woken == ["woke"]

    on_virtual_time(main())


def test_waking_words_that_come_fast_are_gathered_until_the_last_write_is_old_enough() -> None:
    """One write per `GATHER_US`, and none of them later than that."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        woken_us: list[int] = []
        start_s = loop.time()

        def now_us() -> int:
            return round((loop.time() - start_s) * 1e6)

        def wake() -> None:
            woken_us.append(now_us())
            waking.woke(now_us())

        waking = Waking(wake)
        for _ in range(25):  # for 50 ms
            waking.word(now_us())
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.02)
        assert len(woken_us) == 6
        gaps = [b - a for a, b in pairwise(woken_us)]
        assert all(abs(gap - GATHER_US) < 1_000 for gap in gaps)

    on_virtual_time(main())


def test_waking_many_words_wait_for_no_time() -> None:
    """A burst is passed on as soon as it is a batch, and its timer with it."""

    async def main() -> None:
        woken: list[str] = []
        waking = Waking(lambda: woken.append("woke"))
        waking.woke(0)
        for _ in range(GATHER_WORDS):
            waking.word(1)
        assert woken == ["woke"]
        await asyncio.sleep(1)
        assert woken == ["woke"]

    on_virtual_time(main())


def test_waking_closed_wakes_nobody() -> None:
    """Whatever was waiting is given up."""

    async def main() -> None:
        woken: list[str] = []
        waking = Waking(lambda: woken.append("woke"))
        waking.word(0)
        waking.close()
        await asyncio.sleep(1)
        assert woken == []

    on_virtual_time(main())
