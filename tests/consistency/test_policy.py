"""Who wins where nothing in the sound decides."""

from hypothesis import given
from hypothesis import strategies as st

from consistency.observation import Modality
from consistency.policy import Policy, place, winner
from tests.consistency.saying import said

MODALITIES: st.SearchStrategy[Modality] = st.sampled_from(["speech", "text", "caption", "form"])
POLICIES: st.SearchStrategy[Policy] = st.sampled_from(["later", "typed", "confirmed", "ask"])


@given(POLICIES, MODALITIES, MODALITIES, st.integers(0, 3), st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_policy_decides_the_same_whichever_side_is_named_first(
    policy: Policy, one: Modality, other: Modality, at: int, support: tuple[int, int]
) -> None:
    """Who wins does not depend on the order of the arguments."""
    a, b = said("x", 1.0, one, id="a"), said("y", float(at), other, id="b")
    assert winner(policy, a, b, support) is winner(policy, b, a, support[::-1])


def test_policy_later_goes_by_when_it_was_said() -> None:
    """The one that began later wins; the place orders by times first."""
    early, late = said("x", 1.0, "text", id="z"), said("y", 2.0, "speech", id="a")
    assert winner("later", late, early, (0, 0)) is late
    assert place(early) < place(late)


def test_policy_typed_and_confirmed_go_by_kind_and_by_company() -> None:
    """Typed wins against speech; whoever has more company wins; without a difference the later one does."""
    typed, spoken = said("x", 1.0, "text", id="a"), said("y", 2.0, "speech", id="b")
    assert winner("typed", spoken, typed, (0, 0)) is typed
    assert winner("confirmed", typed, spoken, (1, 0)) is typed
    assert winner("confirmed", typed, spoken, (1, 1)) is spoken
    assert winner("ask", typed, spoken, (0, 0)) is None


def test_policy_lets_no_caption_win() -> None:
    """A client's recogniser is no word of the user's, and nobody is asked about it."""
    caption, spoken = said("x", 3.0, "caption", id="a"), said("y", 2.0, "speech", id="b")
    for policy in ("later", "typed", "confirmed", "ask"):
        assert winner(policy, caption, spoken, (5, 0)) is spoken
