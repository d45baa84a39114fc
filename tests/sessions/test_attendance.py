"""Who is there, and for how long somebody was."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sessions.attendance import Attendance
from orchestrator.sessions.links import LinkKind

STEPS = st.lists(
    st.tuples(st.integers(0, 1_000), st.sampled_from("abc"), st.sampled_from([None, *LinkKind])), max_size=30
)


@given(STEPS)
def test_attended_time_runs_while_somebody_but_a_sideband_is_there(
    steps: list[tuple[int, str, LinkKind | None]],
) -> None:
    """Its sum is that of the intervals in which a link of another kind was there; it never runs back."""
    attendance, now, there = Attendance(), 0, 0
    links: dict[str, LinkKind] = {}
    for wait, id, kind in steps:
        if any(one is not LinkKind.SIDEBAND for one in links.values()):
            there += wait
        now += wait
        assert attendance.attended_us(now) == there
        if kind is None:
            assert attendance.left(id, now) is links.pop(id, None)
        else:
            attendance.joined(id, kind, now)
            links[id] = kind
        assert attendance.attended_us(now) == there
        assert list(attendance) == list(links)
        assert set(attendance.calls) == {id for id, one in links.items() if one is LinkKind.CALL}


def test_attendance_knows_who_speaks_and_who_hears() -> None:
    """Sound of the user comes by calls, WebSockets and RPC; the assistant's goes as events to the latter two."""
    expected = {
        LinkKind.WEBSOCKET: (True, True),
        LinkKind.RPC: (True, True),
        LinkKind.CALL: (True, False),
        LinkKind.SIDEBAND: (False, False),
        LinkKind.EVENTS: (False, False),
    }
    for kind in LinkKind:
        attendance = Attendance()
        assert (attendance.speaks, attendance.hears_by_events, len(attendance)) == (False, False, 0)
        attendance.joined("a", kind, 0)
        assert (attendance.speaks, attendance.hears_by_events) == expected[kind]
        attendance.clear(5)
        assert not attendance
