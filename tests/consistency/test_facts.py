"""Whether facts of two texts contradict each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.facts import conflicts, missing
from consistency.observation import Fact


def _facts(*told: str) -> list[Fact]:
    """Facts written as ``kind=value``."""
    return [Fact(kind, value) for kind, _, value in (one.partition("=") for one in told)]


def _pairs(one: list[Fact], other: list[Fact]) -> list[tuple[str, str]]:
    return [(a.value if a else "", b.value if b else "") for a, b in conflicts(one, other)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("number=15", "number=50"),
        ("time=7:00", "time=11:00"),
        ("time=19:30", "time=8:30"),
        ("half_day=am", "half_day=pm"),
        ("weekday=monday", "weekday=sunday"),
        ("relative_day=+0", "relative_day=+1"),
        ("relative_day=weekend+0", "relative_day=week+0"),
        ("date=--05-21", "date=--05-22"),
        ("date=2026-05-21", "date=2027-05-21"),
        ("date=5/6", "date=--05-07"),
        ("date=--05", "date=--06-01"),
        ("duration=900", "duration=3000"),
        ("money=USD 15.00", "money=EUR 15.00"),
        ("percent=15", "percent=50"),
        ("spelling=bob", "spelling=rob"),
        ("number=7", "time=11:00"),
        ("number=15", "duration=3000"),
        ("polarity=off/on:on", "polarity=off/on:off"),
        ("polarity=start/stop:start close/open:open", "polarity=close/open:close closed/shut:shut"),
    ],
)
def test_conflicts_between_two_values_of_a_kind(one: str, other: str) -> None:
    """Both ways round."""
    assert _pairs(_facts(one), _facts(other)) == [(one.split("=")[1], other.split("=")[1])]
    assert _pairs(_facts(other), _facts(one)) == [(other.split("=")[1], one.split("=")[1])]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("time=7:30", "time=19:30"),
        ("time=7:30", "time=07:30"),
        ("time=12:15", "time=00:15"),
        ("number=7", "time=19:00"),
        ("number=730", "time=7:30"),
        ("number=15", "duration=900"),
        ("number=15", "money=USD 15.00"),
        ("number=21", "ordinal=21"),
        ("ordinal=21", "date=--05-21"),
        ("number=1984", "year=1984"),
        ("date=5/6", "date=--06-05"),
        ("date=5/6", "date=--05-06"),
        ("date=--05", "date=--05-21"),
        ("date=2026-05-21", "date=--05-21"),
        ("weekday=monday", "relative_day=+1"),
        ("weekday=monday", "date=--05-21"),
        ("number=15", "weekday=monday"),
        ("withdrawn=number:15", "number=50"),
        ("polarity=off/on:on", "polarity=down/up:down"),
        ("percent=15", "money=USD 20.00"),
    ],
)
def test_conflicts_not_between_what_agrees_or_cannot_be_compared(one: str, other: str) -> None:
    """Open halves, other words for a number, weekdays against relative days, what was taken back."""
    assert conflicts(_facts(one), _facts(other)) == []
    assert conflicts(_facts(other), _facts(one)) == []


def test_conflicts_count_how_often_a_number_is_said() -> None:
    """One plus one is not one plus two; a weekday said twice is said once."""
    assert _pairs(_facts("number=1", "number=1"), _facts("number=1", "number=2")) == [("1", "2")]
    assert conflicts(_facts("weekday=monday", "weekday=monday"), _facts("weekday=monday")) == []


def test_conflicts_of_a_number_that_another_number_happens_to_read_like() -> None:
    """Fifteen people at three against fifty at three: the matched hour, 15 on a clock, does not hide the people."""
    assert _pairs(_facts("number=15", "time=3:00"), _facts("number=50", "time=3:00")) == [("15", "50")]
    assert _pairs(_facts("number=21", "date=--05-21"), _facts("number=22", "date=--05-21")) == [("21", "22")]


def test_conflicts_of_half_days_where_the_hour_agrees() -> None:
    """Seven am and 19:00 agree by the clock's face only."""
    assert _pairs(_facts("time=07:00", "half_day=am"), _facts("time=19:00", "half_day=pm")) == [("am", "pm")]


def test_conflicts_by_a_negation_of_one_side() -> None:
    """Paired with nothing: there is no word for not denying."""
    assert _pairs(_facts("negation=not"), []) == [("not", "")]
    assert _pairs([], _facts("negation=not", "negated=play")) == [("", "not")]
    assert conflicts(_facts("negation=not"), _facts("negation=not")) == []


def test_conflicts_of_a_negation_and_an_opposite_cancel() -> None:
    """Don't turn it off does not contradict leave it on."""
    one, other = _facts("negation=not", "polarity=off/on:off"), _facts("polarity=off/on:on")
    assert conflicts(one, other) == []
    assert len(conflicts([*one, *_facts("number=1")], [*other, *_facts("number=2")])) == 3


def test_conflicts_by_opposites_only_where_the_other_side_lacks_the_word() -> None:
    """Turn off the light that is on: said twice, it has both sides twice."""
    both = _facts("polarity=off/on:off", "polarity=off/on:on")
    assert conflicts(both, both) == []
    assert conflicts(both, _facts("polarity=off/on:on")) == []


def test_words_that_share_a_side_conflict_only_by_what_they_are_best_known_for() -> None:
    """Late and early are both of the past; that does not join them. Lesser senses part nobody."""
    early, late = "polarity=early/late:early past/present:past", "polarity=early/late:late past/present:past"
    assert len(conflicts(_facts(early), _facts(late))) == 1
    loose = "polarity=a/b:a c/d:c early/late:late"
    assert conflicts(_facts("polarity=x/y:x c/d:c early/late:early"), _facts(loose)) == []


def test_missing_tells_what_one_side_leaves_open() -> None:
    """No contradiction, but not the same either."""
    found = missing(_facts("number=15", "weekday=monday"), _facts("weekday=monday", "half_day=pm"))
    assert found == [(Fact("number", "15"), None), (None, Fact("half_day", "pm"))]


def test_missing_leaves_out_what_the_other_says_in_its_own_way() -> None:
    """A day is a day, a number may be a time."""
    assert missing(_facts("weekday=monday", "number=7"), _facts("relative_day=+1", "time=7:00")) == []


_fact = st.one_of(
    st.builds(lambda value: Fact("number", str(value)), st.integers(0, 60)),
    st.builds(
        lambda hour, minute: Fact("time", f"{hour}:{minute:02d}"), st.integers(0, 23), st.integers(0, 59)
    ),
    st.builds(lambda value: Fact("duration", str(value)), st.integers(0, 90_000)),
    st.builds(
        lambda month, day: Fact("date", f"--{month:02d}-{day:02d}"), st.integers(1, 12), st.integers(1, 31)
    ),
    st.builds(lambda month, day: Fact("date", f"{month}/{day}"), st.integers(1, 12), st.integers(1, 12)),
    st.sampled_from(_facts("negation=not", "half_day=am", "half_day=pm", "weekday=monday", "weekday=friday")),
    st.sampled_from(_facts("polarity=off/on:on", "polarity=off/on:off", "polarity=off/on:off down/up:up")),
)
_some = st.lists(_fact, max_size=6)


@given(_some)
def test_conflicts_of_a_text_with_itself_are_none(facts: list[Fact]) -> None:
    """Whatever it says, and whatever it leaves open."""
    assert conflicts(facts, facts) == []
    assert missing(facts, facts) == []


def test_conflicts_of_days_that_agree_with_one_another_are_symmetric() -> None:
    """A day that may be read in two ways agrees with both readings, whichever side says it."""
    one = _facts("date=--01-01", "date=--02-01")
    other = _facts("date=--02-01", "date=1/2")
    assert len(conflicts(one, other)) == len(conflicts(other, one))


@given(_some, _some)
def test_conflicts_are_symmetric(one: list[Fact], other: list[Fact]) -> None:
    """As many from either side, of the same kinds."""
    assert len(conflicts(one, other)) == len(conflicts(other, one))


@given(_some, _some)
def test_conflicts_do_not_depend_on_the_order_of_facts(one: list[Fact], other: list[Fact]) -> None:
    """How many there are, at least: which of several numbers is paired with which may differ."""
    shuffled = sorted(one, key=lambda fact: (fact.value, fact.kind))
    assert len(conflicts(one, other)) == len(conflicts(shuffled, other))
