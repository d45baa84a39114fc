"""The part of the consistency bench that plays a long session."""

from dataclasses import replace

from benchmarks.consistency_cost import session
from benchmarks.consistency_pairs import observe

SAID = (
    ("set a timer for fifty minutes", "set a timer for fifteen minutes"),
    ("turn it on", "turn it on please"),
)


def test_session_of_the_bench_answers_every_want_and_holds_no_more_at_its_end() -> None:
    """Each unit costs something, the conflicts among them too, and what is held is that of a few units."""
    pairs = [(replace(observe(heard), modality="speech"), observe(typed)) for heard, typed in SAID]
    held = session(pairs, 90)
    assert (held.spent > 0).all()
    assert held.before == held.after
    assert held.after[1] == 2 * held.after[0]
