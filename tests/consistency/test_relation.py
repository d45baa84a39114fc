"""How two things that a user said stand to each other."""

import pytest

from consistency.distance import TextJudge
from consistency.features import measure
from consistency.judge import Relation
from consistency.relation import relate
from consistency.wording import wording
from tests.consistency.texts import said, typed


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ("book a table", "at luigi's, 7 pm", "complement"),
        ("turn on the lights", "in the kitchen", "complement"),
        ("remind me to call anna", "tomorrow at noon", "complement"),
        ("at seven pm", "book a table for two", "complement"),
        ("set an alarm for fifty minutes", "no, fifteen", "correction"),
        ("set an alarm for seven", "sorry, I meant eight", "correction"),
        ("fly to austin on friday", "not austin, boston", "correction"),
        ("book a table for seven pm", "make it eight", "correction"),
        ("set an alarm for seven am", "set an alarm for 7 am", "restatement"),
        ("set an alarm for seven am", "set an alarm for 7 pm", "restatement"),
        ("how is lasagne made", "how is last any mail", "restatement"),
        ("book a table for seven pm", "at nine pm", "restatement"),
        ("play some jazz", "what is the weather in berlin", "unrelated"),
        ("set an alarm for seven am", "who wrote hamlet", "unrelated"),
        ("play some jazz", "no thanks", "complement"),
    ],
)
def test_relate_tells_relations_apart(earlier: str, later: str, expected: Relation) -> None:
    """Parts of a request, corrections, restatements (contradicted or not) and other requests."""
    assert TextJudge().compare(said(earlier), typed(later)).relation == expected


def test_relate_names_what_a_correction_replaces() -> None:
    """The words of the earlier text in whose place others were said."""
    one, other = said("set an alarm for fifty minutes"), typed("no, set an alarm for fifteen minutes")
    ours, theirs = wording(one), wording(other)
    assert relate(one, other, measure(one, other, ours, theirs), ours, theirs).replaces == "fifty minutes"
