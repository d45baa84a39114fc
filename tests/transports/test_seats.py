"""Places for some, fewer for each tenant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Overloaded
from orchestrator.transports.seats import Seats


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60))
def test_seats_never_hold_more_than_they_may(steps: list[tuple[bool, str]]) -> None:
    """Whoever comes and goes: a place is refused exactly where there is none, and one that is left is free again."""
    seats = Seats(4, 2, "full")
    inside: list[str] = []
    for comes, tenant in steps:
        if comes and len(inside) < 4 and inside.count(tenant) < 2:
            seats.take(tenant)
            inside.append(tenant)
        elif comes:
            with pytest.raises(Overloaded, match="full") as caught:
                seats.take(tenant)
            assert caught.value.is_tenant == (len(inside) < 4), "others would find a place"
        elif tenant in inside:
            seats.leave(tenant)
            inside.remove(tenant)
        assert len(seats) == len(inside)
        assert set(seats._taken) == set(inside), "who has left is forgotten"
