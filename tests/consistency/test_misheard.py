"""Slots that were said and not recognised: from the recogniser's own doubt to somebody else who listens."""

from dataclasses import replace

from consistency.engine import ConsistencyEngine
from consistency.misheard import Misheard
from consistency.observation import ForcedScore, Observation, Word
from consistency.policy import EngineRules
from consistency.verdict import Accept, Ask, Reheard, Scores, Suspect, WantScore, WantTranscript
from tests.consistency.saying import said, scored, slot, typed
from tests.fakes.judges import ListedDomain, ScriptedDoubt

YORK = "a flight to New York"
NEWARK = "a flight to Newark"
CITIES = ListedDomain({"city": {"Newark": "newark", "Denver": "denver"}})
LOST = "play the best back again"


def heard(text: str, intent: str | None = "fly", **changes: object) -> Observation:
    one = said(text, 1.0, id="u")
    words = tuple(Word(word, 0.6, one.start_us, one.stop_us) for word in text.split())
    return replace(one, words=words, intent=intent, **changes)  # type: ignore[arg-type]


def engine(
    doubt: dict[str, float],
    both: dict[str, float] | None = None,
    rungs: tuple[int, ...] = (1, 2, 3),
    lost: float = 0.5,
) -> ConsistencyEngine:
    misheard = Misheard(ScriptedDoubt(doubt, both), CITIES)
    return ConsistencyEngine(EngineRules(rungs=rungs, lost=lost), misheard=misheard)


def fits(text: str, ratio: float) -> ForcedScore:
    return replace(scored(text, ratio), apart=(("New York", "Newark", ratio),))


def test_listed_value_that_fits_the_sound_stands_for_words_that_are_none() -> None:
    """Both recognisers may be sure of "New York"; the domain knows Newark, and the sound fits it as well."""
    one = engine({})
    verdict = one.observe(heard(YORK), 1, 1)
    assert isinstance(verdict, Suspect)
    assert verdict.wants == (WantScore("u", (NEWARK,)),)
    assert [reason.name for reason in verdict.evidence] == ["lost_slot"]
    verdict = one.observe(Scores("u", (fits(NEWARK, -1.0),), (NEWARK,)), 1)
    assert isinstance(verdict, Accept)
    assert [reason.name for reason in verdict.evidence] == ["forced_score", "lost_slot"]
    reading = one.reading("u")
    assert reading is not None
    assert reading.text == NEWARK
    assert [(token.slot, token.value) for token in one.snapshot.tokens] == [("city", "newark")]


def test_words_that_every_text_has_are_not_taken_for_a_value() -> None:
    """ "What" sounds like "white" and is none."""
    colours = ListedDomain({"colour": {"white": "white"}})
    one = ConsistencyEngine(EngineRules(), misheard=Misheard(ScriptedDoubt({}), colours))
    assert one.observe(heard("what is the time"), 1, 1) == Accept(1)


def test_listed_value_that_does_not_fit_changes_nothing() -> None:
    """What was recognised stands, and nobody else is asked where the recogniser has no doubt."""
    one = engine({})
    one.observe(heard(YORK), 1, 1)
    verdict = one.observe(Scores("u", (fits(NEWARK, -9.0),), (NEWARK,)), 1)
    assert isinstance(verdict, Accept)
    assert verdict.adopted == ()
    assert verdict.verified


def test_another_value_of_the_list_has_to_fit_better_than_the_recognised_one() -> None:
    """Denver was recognised in doubt; Newark in its place would have to be likelier."""
    text = "a flight to Denmark"
    for ratio, adopted in ((-1.0, False), (0.5, True)):
        domain = ListedDomain({"city": {"Newark": "newark", "Denmark": "denmark"}})
        one = ConsistencyEngine(EngineRules(rungs=()), misheard=Misheard(ScriptedDoubt({text: 0.9}), domain))
        verdict = one.observe(heard(text, tokens=(slot("city", "denmark", "fly"),)), 1, 1)
        assert isinstance(verdict, Suspect)
        verdict = one.observe(Scores("u", (fits(NEWARK, ratio),), (NEWARK,)), 1)
        assert isinstance(verdict, Accept)
        assert bool(verdict.adopted) == adopted
        assert [token.value for token in one.snapshot.tokens] == [("newark" if adopted else "denmark")]


def test_second_recogniser_listens_where_the_first_is_in_doubt() -> None:
    """It is asked for its text and for how well the first one's fits under it; where the doubt stays, and it fills a
    slot, its text stands."""
    one = engine({LOST: 0.7}, {LOST: 0.8})
    verdict = one.observe(heard(LOST), 1, 1)
    assert isinstance(verdict, Suspect)
    assert verdict.wants == (WantTranscript("u", 3),)
    better = replace(said("play the best Becca", 1.0, id="u#3"), tokens=(slot("artist", "becca"),))
    verdict = one.observe(Reheard("u", 3, better), 1)
    assert isinstance(verdict, Suspect)
    assert verdict.wants == (WantScore("u", (LOST,), 3),)
    verdict = one.observe(Scores("u", (replace(scored(LOST, -8.0), rung=3),), (LOST,), 3), 1)
    assert isinstance(verdict, Accept)
    assert verdict.adopted == (("u", "u#3"),)
    assert [(reason.name, reason.value) for reason in verdict.evidence] == [
        ("heard_again", 0.8),
        ("lost_slot", 0.7),
    ]


def test_second_recogniser_that_lifts_the_doubt_or_knows_no_more_changes_nothing() -> None:
    """Its text is not better for being another one."""
    for both, tokens in (({LOST: 0.2}, (slot("artist", "becca"),)), ({LOST: 0.9}, ())):
        one = engine({LOST: 0.7}, both)
        one.observe(heard(LOST), 1, 1)
        one.observe(Reheard("u", 3, replace(said("play Becca", 1.0, id="u#3"), tokens=tokens)), 1)
        verdict = one.observe(Scores("u", (), (LOST,), 3), 1)
        assert isinstance(verdict, Accept)
        assert verdict.adopted == ()


def test_number_of_no_intent_is_no_slot_that_was_lost() -> None:
    """A garbled text in which some number stands does not replace what was recognised."""
    one = engine({LOST: 0.7}, {LOST: 0.8})
    one.observe(heard(LOST), 1, 1)
    garbled = replace(said("that is the range of 2019", 1.0, id="u#3"), tokens=(slot("number", "2019", ""),))
    one.observe(Reheard("u", 3, garbled), 1)
    verdict = one.observe(Scores("u", (replace(scored(LOST, -8.0), rung=3),), (LOST,), 3), 1)
    assert isinstance(verdict, Accept)
    assert verdict.adopted == ()


def test_wide_beam_listens_where_there_is_no_second_recogniser() -> None:
    """Its other likely texts tell how sure the words are."""
    one = engine({LOST: 0.7}, rungs=(1, 2))
    verdict = one.observe(heard(LOST), 1, 1)
    assert isinstance(verdict, Suspect)
    assert verdict.wants == (WantTranscript("u", 2),)
    better = replace(said("play the best Becca", 1.0, id="u#2"), tokens=(slot("artist", "becca"),))
    verdict = one.observe(Reheard("u", 2, better), 1)
    assert isinstance(verdict, Accept)
    assert verdict.adopted == (("u", "u#2"),)


def test_nothing_is_looked_for_where_no_slot_is_wanted() -> None:
    """Chat that has no intent of the domain, a recogniser without doubt, typed text, and an engine told not to."""
    for one in (heard(LOST, intent=None), heard("play some music"), replace(heard(LOST), modality="text")):
        assert engine({LOST: 0.7}).observe(one, 1, 1) == Accept(1)
    assert engine({LOST: 0.7}, lost=1.0).observe(heard(LOST), 1, 1) == Accept(1)


def test_utterance_in_doubt_does_not_stand_alone() -> None:
    """It waits until it is understood; an utterance without doubt does not."""
    one = engine({LOST: 0.7})
    assert not one.stands_alone(heard(LOST, intent=None), 1)
    assert one.stands_alone(heard("play some music", intent=None), 1)


def test_lost_slot_that_there_is_no_time_for_is_accepted_unverified() -> None:
    """And mended when the answer comes after all."""
    one = engine({})
    one.observe(heard(YORK), 1, 1)
    verdict = one.expire(1, 2)
    assert isinstance(verdict, Accept)
    assert not verdict.verified
    verdict = one.observe(Scores("u", (fits(NEWARK, -1.0),), (NEWARK,)), 3)
    assert isinstance(verdict, Accept)
    assert verdict.verified
    assert verdict.adopted


FIFTY, FIFTEEN = "a timer for fifty minutes", "a timer for fifteen minutes"


def timer(text: str = FIFTY) -> Observation:
    number = "fifty" if text is FIFTY else "fifteen"
    return heard(text, tokens=(slot("duration", f"{number} minutes", "fly"), slot("city", "Denver", "fly")))


def test_number_that_sounds_like_another_is_left_to_the_user_where_the_sound_leaves_it_open() -> None:
    """He is asked; what he says stands for what was recognised, with every other slot of it."""
    one = engine({})
    assert not one.stands_alone(timer(), 1, asks=True)
    verdict = one.observe(timer(), 1, 1, True)
    assert isinstance(verdict, Suspect)
    assert verdict.wants == (WantScore("u", (FIFTEEN,)),)
    verdict = one.observe(Scores("u", (scored(FIFTEEN, -1.0),), (FIFTEEN,)), 1)
    assert isinstance(verdict, Ask)
    assert verdict.question == "Sorry, fifty minutes or fifteen minutes?"
    assert one.snapshot.number == 0
    verdict = one.observe(said("fifteen minutes", 6.0), 2, 2, True)
    assert isinstance(verdict, Accept)
    assert (verdict.adopted, verdict.superseded) == ((("u", "u~number"),), ())
    values = {(token.slot, token.value) for token in one.snapshot.tokens}
    assert values == {("duration", "fifteen minutes"), ("city", "Denver")}


def test_number_that_was_recognised_stands_where_it_is_confirmed_or_nobody_answers() -> None:
    """A question that is not answered leaves it at what the recogniser heard."""
    for answer in ("fifty minutes", "what do you mean"):
        one = engine({})
        one.observe(timer(), 1, 1, True)
        one.observe(Scores("u", (scored(FIFTEEN, -1.0),), (FIFTEEN,)), 1)
        verdict = one.observe(said(answer, 6.0), 2, 2, True)
        assert isinstance(verdict, Accept)
        assert (verdict.adopted, verdict.superseded) == ((), ())
        assert "fifty minutes" in {token.value for token in one.snapshot.tokens}


def test_nobody_is_asked_about_a_number_that_is_clear_or_was_typed_too() -> None:
    """The sound may be clear, the user may have typed it, or may not be asked at all."""
    one = engine({})
    one.observe(timer(), 1, 1, True)
    assert isinstance(one.observe(Scores("u", (scored(FIFTEEN, -5.0),), (FIFTEEN,)), 1), Accept)
    one = engine({})
    one.observe(replace(typed(FIFTY, 0.5), tokens=timer().tokens), 1, 1, True)
    assert isinstance(one.observe(timer(), 1, 1, True), Accept)
    one = engine({})
    assert one.stands_alone(timer(), 1)
    assert isinstance(one.observe(timer(), 1, 1), Accept)
