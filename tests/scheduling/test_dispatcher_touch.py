"""A sign of life of a user reaches the order of jobs."""

from orchestrator.scheduling.work import Replied
from tests.scheduling.dispatching import House, llm, on_virtual_time, tick
from tests.scheduling.jobs import job


def test_dispatcher_who_gives_a_sign_is_served_before_who_came_with_them() -> None:
    """Of two that wait the touched one is next, though it came second; a session that is not there changes nothing."""

    async def main() -> None:
        house = House(llm(1))
        house.listen("busy", "first", "second")
        house.dispatcher.submit(job("j0", "busy"))
        await tick()
        house.dispatcher.submit(job("j1", "first"))
        house.dispatcher.submit(job("j2", "second"))
        house.dispatcher.touch("second")
        house.dispatcher.touch("gone")
        house.workers.report("w", Replied("j0", "stop"))
        await tick()
        assert house.workers.sent == [("w", ["j0"]), ("w", ["j2"])]

    on_virtual_time(main())
