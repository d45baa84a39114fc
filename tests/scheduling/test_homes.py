"""Scores go where their sound was heard, wait for that worker, and go anywhere once it is lost."""

from orchestrator.scheduling.homes import HOMES_KEPT, Homes
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Score, Transcribe
from tests.scheduling.jobs import job

S = 16_000


def score(near: str, seconds: int = 1) -> Score:
    return Score(0, seconds * S, ("fifty",), "fifteen", near)


def plan(scheduler: Scheduler, *workers: str, room: int = 1) -> dict[str, list[str]]:
    found = scheduler.plan(0, {worker: FreeSlots("asr", room) for worker in workers})
    return {one.worker_id: [job.id for job in one.jobs] for one in found.assignments}


def submit(scheduler: Scheduler, *jobs: Job) -> None:
    for one in jobs:
        assert scheduler.submit(one, 0) is None


def heard_by(scheduler: Scheduler, worker: str, *jobs: Job) -> None:
    """One worker does these recognitions."""
    submit(scheduler, *jobs)
    assert plan(scheduler, worker, room=len(jobs)) == {worker: [one.id for one in jobs]}
    for one in jobs:
        assert scheduler.finish(one.id, 0)


def test_score_goes_to_the_worker_that_has_heard_its_sound() -> None:
    """Not to the one that would have been first."""
    scheduler = Scheduler()
    heard_by(scheduler, "b", job("t", "s", Transcribe(0, S)))
    submit(scheduler, job("c", "s", score("t")))
    assert plan(scheduler, "a") == {}
    assert plan(scheduler, "a", "b") == {"b": ["c"]}


def test_score_that_waits_for_its_worker_holds_up_nobody_else() -> None:
    """What others ask goes past it, on its own level and on lower ones."""
    scheduler = Scheduler()
    heard_by(scheduler, "b", job("t", "s", Transcribe(0, S)))
    submit(scheduler, job("c", "s", score("t"), level=1), job("x", "x", Transcribe(0, S), level=1))
    submit(scheduler, job("y", "y", Transcribe(0, S), level=3))
    assert plan(scheduler, "a") == {"a": ["x"]}
    assert scheduler.finish("x", 0)
    assert plan(scheduler, "a") == {"a": ["y"]}
    assert plan(scheduler, "b") == {"b": ["c"]}


def test_score_goes_anywhere_once_its_worker_is_lost() -> None:
    """The sound is then heard anew."""
    scheduler = Scheduler()
    heard_by(scheduler, "b", job("t", "s", Transcribe(0, S)))
    submit(scheduler, job("c", "s", score("t")))
    scheduler.lost("b", 0)
    assert plan(scheduler, "a") == {"a": ["c"]}


def test_score_of_an_unknown_recognition_goes_anywhere() -> None:
    """So does one that names none."""
    scheduler = Scheduler()
    submit(scheduler, job("c", "s", score("t")), job("d", "r", score("")))
    assert plan(scheduler, "a", room=2) == {"a": ["c", "d"]}


def test_score_never_overtakes_its_transcript() -> None:
    """Both stand in one lane, however urgent the score is."""
    scheduler = Scheduler()
    submit(scheduler, job("t", "s", Transcribe(0, S)), job("c", "s", score("t"), level=0))
    assert plan(scheduler, "a", "b") == {"a": ["t"]}
    assert plan(scheduler, "b") == {}
    assert scheduler.finish("t", 0)
    assert plan(scheduler, "b") == {}
    assert plan(scheduler, "a") == {"a": ["c"]}


def test_scores_of_one_worker_and_length_go_together() -> None:
    """A batch takes no score of another worker's sound, none of another length, and no recognition."""
    scheduler = Scheduler()
    heard_by(scheduler, "a", *(job(f"t{n}", f"s{n}", Transcribe(0, S)) for n in range(3)))
    heard_by(scheduler, "b", job("other", "o", Transcribe(0, S)))
    submit(
        scheduler, job("c0", "s0", score("t0")), job("co", "o", score("other")), job("c1", "s1", score("t1"))
    )
    submit(scheduler, job("c2", "s2", score("t2", 12)), job("t9", "z", Transcribe(0, S)))
    assert plan(scheduler, "a", room=8) == {"a": ["c0", "c1"]}


def test_homes_are_bounded_and_take_no_note_of_drafts() -> None:
    """The oldest is forgotten; a draft leaves nothing that could be scored."""
    homes = Homes()
    homes.note(job("draft", "s", Transcribe(0, S, draft=True)), "b")
    assert homes.allow(score("draft"), "a")
    for n in range(HOMES_KEPT + 1):
        homes.note(job(f"t{n}", "s", Transcribe(0, S)), "b")
    assert homes.allow(score("t0"), "a")
    assert not homes.allow(score("t1"), "a")
    assert homes.allow(score("t1"), "b")
