"""Guesses at what will be asked next: taken where they make nobody wait, refused without a trace of an overload."""

from collections.abc import Mapping

from msgspec import structs

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import REFUSED, Failed, Replied, ReplyText, Work, WorkKind
from tests.scheduling.dispatching import House, llm, on_virtual_time, tick
from tests.scheduling.jobs import job


def guess(id: str, session: str, work: Work | WorkKind = "llm") -> Job:
    return structs.replace(job(id, session, work), speculative=True)


def room(kind: WorkKind, jobs: int) -> Mapping[str, FreeSlots]:
    return {"w": FreeSlots(kind, jobs)} if jobs else {}


def busy(kind: WorkKind, *sessions: str, waiting: tuple[str, ...] = ()) -> Scheduler:
    """A scheduler that runs a job of each session, and has one waiting of each of the others."""
    scheduler = Scheduler()
    for session in sessions:
        assert scheduler.submit(job(f"of {session}", session, kind), 0) is None
    scheduler.plan(0, room(kind, len(sessions)))
    for session in waiting:
        assert scheduler.submit(job(f"waits {session}", session, kind), 0) is None
    return scheduler


def test_scheduler_takes_guesses_while_less_than_half_of_the_places_are_taken() -> None:
    """Of four places: with one taken there is time, with two there is none."""
    assert busy("llm").spares(guess("g", "a"), room("llm", 4))
    assert busy("llm", "b").spares(guess("g", "a"), room("llm", 3))
    assert not busy("llm", "b", "c").spares(guess("g", "a"), room("llm", 2))
    assert not busy("speech", "b").spares(guess("g", "a", "speech"), room("speech", 0))


def test_scheduler_counts_a_sessions_own_work_as_no_hindrance() -> None:
    """The only place of the voice is taken by the session that guesses: nobody else waits for it."""
    assert busy("speech", "a").spares(guess("g", "a", "speech"), room("speech", 0))
    assert busy("asr", "a", waiting=("a",)).spares(guess("g", "a", "asr"), room("asr", 0))


def test_scheduler_takes_no_guesses_while_others_wait() -> None:
    """Somebody's certain work has no place yet: a guess would stand in its way."""
    for kind in ("llm", "asr", "speech"):
        assert not busy(kind, "b", waiting=("c",)).spares(guess("g", "a", kind), room(kind, 0))


def test_scheduler_takes_guesses_of_batched_work_beside_a_batch() -> None:
    """A recogniser that is busy with others takes the guess into its next batch."""
    assert busy("asr", "b", "c").spares(guess("g", "a", "asr"), room("asr", 0))


def test_scheduler_takes_no_guess_that_nobody_could_do() -> None:
    """No worker is there: a guess would only wait."""
    assert not busy("llm").spares(guess("g", "a"), {})


def test_dispatcher_refusal_of_a_guess_is_no_overload() -> None:
    """The session is told, as of any refusal; no counter of refusals and no permit moves, and certain work goes on."""

    async def main() -> None:
        house = House(llm(2))
        house.listen("a", "b")
        house.dispatcher.submit(job("certain", "b"))
        await tick()
        house.dispatcher.submit(guess("guess", "a"))
        await tick()
        (report,) = house.inbox["a"]
        assert isinstance(report, Failed)
        assert (report.job_id, report.code) == ("guess", REFUSED)
        counts = house.dispatcher.statistics()
        assert (counts.scheduler.declined, counts.scheduler.refused, counts.jobs.refused) == (1, 0, 0)
        assert (counts.scheduler.submitted, counts.jobs.in_flight) == (1, 1)
        house.workers.report("w", Replied("certain", "stop"))
        house.dispatcher.submit(guess("guess", "a"))  # the id is free again, and so is the worker
        await tick()
        assert house.workers.sent[-1] == ("w", ["guess"])
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_repeats_a_guess_of_a_lost_worker_without_a_seam() -> None:
    """A guess that was taken is a job like any other: what was reported before the loss is not reported again."""

    async def main() -> None:
        house = House(llm(2))
        house.listen("a")
        house.dispatcher.submit(guess("guess", "a"))
        await tick()
        house.workers.report("w", ReplyText("guess", "Hello "))
        await tick()
        house.workers.die("w")
        await tick()
        for report in (ReplyText("guess", "Hello "), ReplyText("guess", "you."), Replied("guess", "stop")):
            house.workers.report("w", report)
        await tick()
        texts = [report.text for report in house.inbox["a"] if isinstance(report, ReplyText)]
        assert "".join(texts) == "Hello you."
        assert isinstance(house.inbox["a"][-1], Replied)
        house.dispatcher.close()

    on_virtual_time(main())
