"""What the engine decides, case by case, with judges whose opinion is written down."""

import pytest

from consistency.engine import ConsistencyEngine
from consistency.observation import Observation
from consistency.policy import EngineRules, Policy
from consistency.verdict import (
    Accept,
    Ask,
    Evidence,
    Freeze,
    Reheard,
    RollBack,
    Scores,
    Suspect,
    WantScore,
    WantTranscript,
)
from tests.consistency.saying import form, said, scored, slot, typed
from tests.fakes.judges import ScriptedGraph, ScriptedJudge

FIFTY = "set a timer for fifty minutes"
FIFTEEN = "set a timer for 15 minutes"
FULL = "set a timer for 15 minutes please"
TIMER = ScriptedJudge(
    {(FIFTY, FIFTEEN): ("restatement", 0.97), (FIFTEEN, FULL): ("restatement", 0.02)},
    with_sound={(FIFTY, FIFTEEN): ("restatement", 0.97)},
)
SPLICED = "set a timer for 15 minutes"


def engine(judge: ScriptedJudge = TIMER, policy: Policy = "later", **rules: float) -> ConsistencyEngine:
    return ConsistencyEngine(EngineRules(policy=policy, **rules), judge, ScriptedGraph({"loose": 0.4}))  # type: ignore[arg-type]


def conflict(one: ConsistencyEngine, asks: bool = False) -> tuple[Observation, Observation]:
    """Fifty was recognised, fifteen typed at the same time."""
    speech, text = said(FIFTY, 1.0), typed(FIFTEEN, 1.5)
    assert isinstance(one.observe(speech, 2_000_000, 1, asks), Accept)
    assert isinstance(one.observe(text, 2_000_000, 1, asks), Suspect)
    return speech, text


def test_engine_accepts_what_stands_alone() -> None:
    """One thing said is accepted at once, and every accepted unit is a state."""
    one = engine()
    verdict = one.observe(said("hello", 1.0), 1_000_000, 1)
    assert verdict == Accept(1)
    assert one.snapshot.number == 1


def test_engine_scores_a_suspect_pair_under_the_sound_before_it_decides() -> None:
    """What was typed is held against the sound first; nothing is committed meanwhile."""
    one = engine()
    speech, text = said(FIFTY, 1.0), typed(FIFTEEN, 1.5)
    one.observe(speech, 2_000_000, 1)
    before = one.snapshot
    verdict = one.observe(text, 2_000_000, 1)
    assert isinstance(verdict, Suspect)
    assert verdict.wants == (WantScore(speech.id, (FIFTEEN,)),)
    assert verdict.evidence[0] == Evidence("distance", 0.97, f"restatement of {speech.id} in {text.id}")
    assert one.snapshot.number == 0
    assert one.snapshot.digest != before.digest


def test_engine_adopts_a_text_that_fits_the_sound_as_well() -> None:
    """Typed text that is likely under the sound shows that the recogniser was wrong: it stands for what was heard."""
    one = engine()
    speech, text = conflict(one)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -1.0),)), 2_100_000)
    assert isinstance(verdict, Accept)
    assert verdict.adopted == ((speech.id, text.id),)
    assert verdict.verified
    assert verdict.superseded == ()
    assert "forced_score" in {evidence.name for evidence in verdict.evidence}
    reading = one.reading(speech.id)
    assert reading is not None
    assert reading.text == FIFTEEN


def test_engine_lets_the_policy_decide_where_the_sound_says_something_else() -> None:
    """Typed text that cannot have been said is another word of the user's: the later one wins, the other is out."""
    one = engine()
    speech, _ = conflict(one)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -20.0),)), 2_100_000)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == (speech.id,)
    assert verdict.adopted == ()


def test_engine_accepts_a_suspect_that_the_sound_clears() -> None:
    """A distance over .5 that falls below .85 with the sound is no conflict."""
    judge = ScriptedJudge(
        {(FIFTY, FIFTEEN): ("restatement", 0.9)}, with_sound={(FIFTY, FIFTEEN): ("restatement", 0.3)}
    )
    one = engine(judge)
    speech, _ = conflict(one)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -8.0),)), 2_100_000)
    assert isinstance(verdict, Accept)
    assert not verdict.superseded
    assert not verdict.adopted


def test_engine_commits_no_two_texts_that_contradict_each_other_for_want_of_a_clear_sound() -> None:
    """A sound that leaves it open clears nothing: what the texts say of each other still holds."""
    judge = ScriptedJudge(
        {(FIFTY, FIFTEEN): ("restatement", 0.97)}, with_sound={(FIFTY, FIFTEEN): ("restatement", 0.7)}
    )
    one = engine(judge)
    speech, _ = conflict(one)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -20.0),)), 2_100_000)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == (speech.id,)


def test_engine_freezes_and_has_the_sound_recognised_again_rung_by_rung() -> None:
    """Where the sound is unclear the recogniser is asked again; a text that agrees with the other is realigned to."""
    one = engine()
    speech, _ = conflict(one)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -6.0),)), 2_100_000)
    assert isinstance(verdict, Freeze)
    assert verdict.wants == (WantTranscript(speech.id, 1),)
    verdict = one.observe(Reheard(speech.id, 1, None), 2_200_000)
    assert isinstance(verdict, Freeze)
    assert verdict.wants == (WantTranscript(speech.id, 2),)
    again = said(FULL, 1.0, id=f"{speech.id}#2")
    verdict = one.observe(Reheard(speech.id, 2, again), 2_300_000)
    assert isinstance(verdict, Accept)
    assert verdict.adopted == ((speech.id, again.id),)
    assert verdict.evidence[0].name == "recognised_again"


def test_engine_goes_on_by_policy_when_no_rung_helps() -> None:
    """Every rung was tried once; then the policy decides."""
    one = engine()
    speech, text = conflict(one)
    one.observe(Scores(speech.id, ()), 2_100_000)
    one.observe(Reheard(speech.id, 1, said(FIFTY, 1.0, id="again")), 2_200_000)
    verdict = one.observe(Reheard(speech.id, 2, None), 2_300_000)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == (speech.id,)
    assert one.reading(text.id) is not None


@pytest.mark.parametrize(
    ("policy", "speech_at", "typed_at", "stands"),
    [("later", 1.0, 1.5, "text"), ("later", 3.0, 1.5, "speech"), ("typed", 3.0, 1.5, "text")],
)
def test_engine_follows_its_policy(policy: Policy, speech_at: float, typed_at: float, stands: str) -> None:
    """Later wins by when it was said; typed wins whenever."""
    one = engine(policy=policy)
    pair = {"speech": said(FIFTY, speech_at), "text": typed(FIFTEEN, typed_at)}
    for observation in pair.values():
        one.observe(observation, 5_000_000, 1)
    verdict = one.observe(Scores(pair["speech"].id, (scored(FIFTEEN, -20.0),)), 5_000_000)
    assert isinstance(verdict, Accept)
    loser = "text" if stands == "speech" else "speech"
    assert verdict.superseded == (pair[loser].id,)


def test_engine_lets_the_confirmed_reading_win() -> None:
    """Two that say the same stand against one that says something else, though it came last."""
    one = engine(policy="confirmed")
    one.observe(form(0.5, id="form", minutes="50"), 5_000_000, 1)
    speech = said(FIFTY, 1.0, tokens=(slot("minutes", "50"),))
    text = typed(FIFTEEN, 1.5, tokens=(slot("minutes", "15"),))
    one.observe(speech, 5_000_000, 1)
    one.observe(text, 5_000_000, 1)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -20.0),)), 5_000_000)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == (text.id,)


def test_engine_asks_once_and_takes_the_answer() -> None:
    """The question names the readings; the answer settles which one is committed, and nothing is asked again."""
    one = engine(policy="ask")
    speech, _ = conflict(one, asks=True)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -20.0),)), 2_100_000)
    assert isinstance(verdict, Ask)
    assert verdict.question == "Sorry, fifty or 15?"
    assert one.snapshot.number == 0
    answer = said("fifteen", 6.0)
    verdict = one.observe(answer, 7_000_000, 2, True)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == (speech.id,)
    assert Evidence("answer", 1.0, "15") in verdict.evidence


def test_engine_never_puts_a_question_twice() -> None:
    """An answer that says neither leaves it to the policy of the later word."""
    one = engine(policy="ask")
    speech, _ = conflict(one, asks=True)
    one.observe(Scores(speech.id, (scored(FIFTEEN, -20.0),)), 2_100_000)
    verdict = one.observe(said("what do you mean", 6.0), 7_000_000, 2, True)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == (speech.id,)
    assert Evidence("answer", 0.0, "15") in verdict.evidence


def test_engine_asks_nobody_where_the_server_does_not_answer() -> None:
    """Without leave to ask, the later word wins."""
    one = engine(policy="ask")
    speech, _ = conflict(one, asks=False)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -20.0),)), 2_100_000)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == (speech.id,)


def test_engine_does_not_hold_complements_against_each_other() -> None:
    """Speech and text that add to each other merge; only one slot with two values is a conflict."""
    judge = ScriptedJudge({("book a table", "at luigi's at seven"): ("complement", 0.99)})
    one = engine(judge)
    one.observe(said("book a table", 1.0, tokens=(slot("place", "here"),)), 2_000_000, 1)
    verdict = one.observe(typed("at luigi's at seven", 1.5, tokens=(slot("time", "7"),)), 2_000_000, 1)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == ()
    assert {token.slot for token in one.snapshot.tokens} == {"place", "time"}
    two = engine(judge)
    two.observe(said("book a table", 1.0, tokens=(slot("time", "8"),)), 2_000_000, 1)
    verdict = two.observe(typed("at luigi's at seven", 1.5, tokens=(slot("time", "7"),)), 2_000_000, 1)
    assert isinstance(verdict, Accept)
    assert verdict.superseded == ()
    assert [token.value for token in two.snapshot.tokens] == ["7"]


def test_engine_lets_a_correction_stand_and_mends_what_was_misheard() -> None:
    """ "No, fifteen" is no conflict. Where the sound of what it corrects says fifteen too, the transcript is mended."""
    judge = ScriptedJudge({(FIFTY, "no, fifteen"): ("correction", 0.9)})
    one = engine(judge)
    speech = said(FIFTY, 1.0)
    one.observe(speech, 2_000_000, 1)
    verdict = one.observe(said("no, fifteen", 5.0), 6_000_000, 2)
    mended = "set a timer for fifteen minutes"
    assert isinstance(verdict, Suspect)
    assert verdict.wants == (WantScore(speech.id, (mended,)),)
    verdict = one.observe(Scores(speech.id, (scored(mended, -0.5),)), 6_000_000)
    assert isinstance(verdict, Accept)
    assert verdict.unit == 2
    assert verdict.superseded == ()
    reading = one.reading(speech.id)
    assert reading is not None
    assert reading.text == mended


def test_engine_compares_only_what_lies_near_and_is_of_another_kind() -> None:
    """Two things said in the same way are two requests; after 8 s nobody restates."""
    one = engine()
    one.observe(said(FIFTY, 1.0), 2_000_000, 1)
    verdict = one.observe(said(FIFTEEN, 4.0), 5_000_000, 2)
    assert isinstance(verdict, Accept)
    far = engine()
    far.observe(said(FIFTY, 1.0), 2_000_000, 1)
    verdict = far.observe(typed(FIFTEEN, 10.1), 11_000_000, 2)
    assert isinstance(verdict, Accept)
    near = engine()
    near.observe(said(FIFTY, 1.0), 2_000_000, 1)
    assert isinstance(near.observe(typed(FIFTEEN, 9.9), 11_000_000, 2), Suspect)


def test_engine_holds_forms_against_what_was_said() -> None:
    """A form that names another value for a slot is a conflict: the later value is committed. Words say more than one
    slot and stay; a form that has lost all of its slots says nothing more."""
    speech = said("a table at seven", 1.0, tokens=(slot("time", "7"), slot("place", "here")))
    for at, stands, superseded in ((2.0, ["8", "here"], ()), (0.5, ["7", "here"], ("form",))):
        one = engine()
        one.observe(speech, 2_000_000, 1)
        verdict = one.observe(form(at, id="form", time="8"), 2_000_000, 1)
        assert isinstance(verdict, Accept)
        assert verdict.superseded == superseded
        assert sorted(token.value for token in one.snapshot.tokens) == stands
        assert any(
            evidence.name == "slot" and evidence.about.startswith("time") for evidence in verdict.evidence
        )


def test_engine_believes_a_clients_caption_only_where_the_sound_does() -> None:
    """What a client's recogniser wrote wins by the sound alone, whatever the policy."""
    for ratio, adopted in ((-20.0, False), (-1.0, True)):
        one = engine(policy="typed")
        speech, caption = said(FIFTY, 1.0), said(FIFTEEN, 1.2, "caption", id="caption")
        one.observe(caption, 2_000_000, 1)
        assert isinstance(one.observe(speech, 2_000_000, 1), Suspect)
        verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, ratio),)), 2_000_000)
        assert isinstance(verdict, Accept)
        assert bool(verdict.adopted) == adopted
        assert verdict.superseded == (() if adopted else ("caption",))


def test_engine_holds_the_passes_over_one_utterance_against_each_other() -> None:
    """The final pass stands, unless the sound says that the fast one was right."""
    for ratio, text in ((-2.0, FIFTY), (2.0, FIFTEEN)):
        one = engine()
        fast, final = said(FIFTEEN, 1.0, id="u", revision=0), said(FIFTY, 1.0, id="u", revision=1)
        one.observe(fast, 2_000_000, 1)
        verdict = one.observe(final, 2_000_000, 1)
        assert isinstance(verdict, Suspect)
        verdict = one.observe(Scores("u", (scored(FIFTEEN, ratio),)), 2_000_000)
        assert isinstance(verdict, Accept)
        reading = one.reading("u")
        assert reading is not None
        assert reading.text == text


def test_engine_rolls_tokens_back_that_hang_loose() -> None:
    """Tokens below .6 leave, the state is the last stable one, and what is said later may still lean on the text."""
    one = engine()
    one.observe(said("a table", 1.0, tokens=(slot("place", "here"),)), 2_000_000, 1)
    stable = one.snapshot
    verdict = one.observe(said("mumble", 20.0, id="mumble", tokens=(slot("time", "loose"),)), 21_000_000, 2)
    assert isinstance(verdict, RollBack)
    assert verdict.to == 1
    assert verdict.evidence[0] == Evidence("connectivity", 0.4)
    assert one.snapshot is stable
    graph = one._graph
    assert isinstance(graph, ScriptedGraph)
    one.observe(said("at seven", 40.0, tokens=(slot("time", "7"),)), 41_000_000, 3)
    recent = [(one.text, len(one.tokens)) for past in graph.surroundings[-1].recent for one in past.said]
    assert recent == [("a table", 1), ("mumble", 0)]
    assert one.snapshot.number == 3
    assert [token.value for token in one.snapshot.tokens] == ["here", "7"]


def test_engine_lets_later_values_stem_from_what_the_assistant_said() -> None:
    """Answers stand with the turns that they were made to."""
    one = engine()
    one.observe(said("a table", 1.0), 2_000_000, 1)
    one.offer(1, "At seven?", 3_000_000)
    one.observe(said("yes", 6.0, tokens=(slot("time", "7"),)), 7_000_000, 2)
    graph = one._graph
    assert isinstance(graph, ScriptedGraph)
    assert [past.answers for past in graph.surroundings[-1].recent] == [("At seven?",)]


def test_engine_accepts_unverified_what_it_has_no_time_for_and_mends_it_later() -> None:
    """A deadline opens the way; the answer that comes after it still counts."""
    one = engine()
    speech, text = conflict(one)
    verdict = one.expire(1, 4_000_000)
    assert isinstance(verdict, Accept)
    assert not verdict.verified
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -1.0),)), 5_000_000)
    assert isinstance(verdict, Accept)
    assert verdict.adopted == ((speech.id, text.id),)


def test_engine_judges_later_units_again_when_something_late_comes_in() -> None:
    """The transcript of what was said first may come last: what was typed behind it is held against it then."""
    one = engine()
    text = typed(FIFTEEN, 4.0)
    assert isinstance(one.observe(text, 4_000_000, 2), Accept)
    verdict = one.observe(said(FIFTY, 1.0), 5_000_000, 1)
    assert verdict == Accept(1)
    assert isinstance(one.also[0], Suspect)
    assert one.also[0].unit == 2


def test_engine_asks_no_judge_where_words_are_the_same() -> None:
    """Cheap checks come first."""
    judge = ScriptedJudge({})
    one = engine(judge)
    one.observe(said("Hello.", 1.0), 2_000_000, 1)
    verdict = one.observe(typed("hello", 1.5), 2_000_000, 1)
    assert verdict == Accept(1, (Evidence("distance", 0.0, "the same words"),))
    assert judge.asked == []


def test_engine_says_when_an_observation_stands_alone() -> None:
    """Something is held against what lies within the window and was said in another way, and against nothing else."""
    one = engine()
    speech = said(FIFTY, 1.0)
    assert one.stands_alone(speech, 1)
    one.observe(speech, 2_000_000, 1)
    assert one.stands_alone(speech, 1)
    assert not one.stands_alone(typed(FIFTEEN, 3.0), 1)
    assert one.stands_alone(said(FIFTEEN, 3.0), 2)
    assert one.stands_alone(typed(FIFTEEN, 30.0), 2)


def test_engine_holds_a_bounded_part_of_a_long_conversation() -> None:
    """After 10,000 units it holds what it held after a hundred; what comes for an old one is told to be late."""
    one = engine()
    held = []
    for number in range(1, 10_001):
        one.observe(said(f"hello {number}", 3.0 * number), 3_000_000 * number, number)
        held.append(one.statistics())
    assert held[-1] == held[100]
    late = one.observe(said("once", 4.0), 30_000_000_000, 1)
    assert late == Accept(1, (Evidence("late", 1.0, "its unit is settled for good"),), verified=False)
    with pytest.raises(LookupError, match="older than what is held"):
        one.roll_back(3)
