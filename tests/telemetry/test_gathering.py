"""Jobs of a turn leave with its end; memory is bounded whatever comes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.observability.instrument import NO_TURN
from orchestrator.observability.traceparent import TraceParent
from orchestrator.telemetry.gathering import Bundle, Gathering
from tests.telemetry.records import job, turn


def test_gathering_gives_a_turn_its_jobs() -> None:
    """Those of other turns and sessions stay."""
    gathering = Gathering()
    assert gathering.job(job()) is None
    assert gathering.job(job(turn=2)) is None
    assert gathering.job(job(session_id="sess_2")) is None
    bundle = gathering.turn(turn())
    assert bundle.turn == turn()
    assert bundle.jobs == (job(),)
    assert len(gathering) == 2


def test_gathering_a_job_that_ends_after_its_turn_finds_its_trace() -> None:
    """It is told of at once, as a child of the same remote span."""
    gathering = Gathering()
    remote = TraceParent(7, 8, sampled=True)
    gathering.turn(turn(remote=remote))
    assert gathering.job(job()) == Bundle("sess_1", 1, None, (job(),), remote)
    assert len(gathering) == 0


def test_gathering_a_turn_with_very_many_jobs_is_told_of_in_parts() -> None:
    """The part leaves without its root, which comes with the end."""
    gathering = Gathering(most_jobs=2)
    assert gathering.job(job()) is None
    early = gathering.job(job(kind="speech"))
    assert early is not None
    assert len(early.jobs) == 2
    assert gathering.turn(turn()).jobs == ()


def test_gathering_parts_of_a_turn_belong_to_the_clients_span() -> None:
    """Also those that leave before its end: with many jobs, with many turns, when the server stops. Whether they are
    told of at all is the client's to say."""
    remote = TraceParent(7, 8, sampled=False)
    gathering = Gathering(most_jobs=2, most_turns=2)
    gathering.job(job(remote=remote))
    many = gathering.job(job(remote=remote))
    assert many is not None
    assert (len(many.jobs), many.remote) == (2, remote)
    left = [gathering.job(job(turn=number, remote=remote)) for number in (2, 3, 4)]
    assert [part.remote for part in left if part is not None] == [remote]
    assert [part.remote for part in gathering.rest()] == [remote, remote]


def test_gathering_too_many_open_turns_let_the_oldest_go() -> None:
    """A turn whose end never comes does not stay for ever."""
    gathering = Gathering(most_turns=2)
    for number in (1, 2):
        assert gathering.job(job(turn=number)) is None
    early = gathering.job(job(turn=3))
    assert early is not None
    assert early.number == 1


def test_gathering_keeps_nothing_of_a_request() -> None:
    """No turn will end it: its jobs are told of at once, and take nobody's place."""
    gathering = Gathering(most_turns=1)
    assert gathering.job(job()) is None
    for _ in range(3):
        one = job(session_id="http_1", turn=NO_TURN)
        assert gathering.job(one) == Bundle("http_1", NO_TURN, None, (one,), None)
        traced = replace(one, remote=TraceParent(1, 2, True))
        assert gathering.job(traced) == Bundle("http_1", NO_TURN, None, (traced,), traced.remote)
    assert gathering.turn(turn()).jobs == (job(),)


def test_gathering_gives_the_rest_at_the_end() -> None:
    """Nothing is lost when the server stops; what was given is forgotten."""
    gathering = Gathering()
    gathering.job(job())
    gathering.job(job(turn=2))
    assert [bundle.number for bundle in gathering.rest()] == [1, 2]
    assert gathering.rest() == []


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3)), max_size=200),
)
def test_gathering_every_job_leaves_exactly_once_and_few_are_held(steps: list[tuple[bool, int, int]]) -> None:
    """In any order of jobs and ends of turns."""
    gathering = Gathering(most_turns=3, most_jobs=4)
    put, left = 0, 0
    for is_job, session, number in steps:
        if is_job:
            put += 1
            bundle = gathering.job(job(session_id=str(session), turn=number))
            left += len(bundle.jobs) if bundle is not None else 0
        else:
            left += len(gathering.turn(turn(session_id=str(session), turn=number)).jobs)
        assert len(gathering) == put - left <= 3 * 4
    assert put - left == sum(len(bundle.jobs) for bundle in gathering.rest())
