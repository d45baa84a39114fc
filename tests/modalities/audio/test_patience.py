from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.patience import LEAST_MS, Eagerness, SemanticPatience
from modalities.audio.phrase_end import PhraseEnd
from modalities.audio.prosody import Closing, Prosody

EAGERNESS: tuple[Eagerness, ...] = get_args(Eagerness)
MOST: dict[Eagerness, int] = {"low": 8_000, "medium": 4_000, "auto": 4_000, "high": 2_000}


def phrase(held_ms: int = 96, fade_db: float = 18.0, depth: float = 0.0, earlier: int = 0) -> PhraseEnd:
    """Returns a phrase that closes so; by default one that says nothing either way."""
    closing = Closing(fall=0.0, depth=depth, held_ms=held_ms, fade_db=fade_db)
    return PhraseEnd(16_000, Prosody(120.0, 4.0, -20.0, 0.6, closing), (400,) * earlier)


phrases = st.one_of(
    st.none(),
    st.builds(phrase, st.integers(0, 2_000), st.floats(-100, 100), st.floats(-48, 48), st.integers(0, 8)),
)


def test_patience_finished_question_is_answered_soon() -> None:
    """ "What's the weather like?" is complete: the wait is a tenth of the most, though it ends in a preposition."""
    patience = SemanticPatience("medium")
    assert patience.silence_ms("What's the weather like?") <= patience.most_ms // 10


@pytest.mark.parametrize(
    "text", ["Book a table for", "I want to go to the.", "So I was thinking um...", "Well, you know,", "and"]
)
@pytest.mark.parametrize("eagerness", EAGERNESS)
def test_patience_hanging_sentence_gets_all_the_time_there_is(text: str, eagerness: Eagerness) -> None:
    """A preposition, an article, a filler or a comma at the end: the speaker goes on, however the voice closes."""
    patience = SemanticPatience(eagerness)
    assert patience.silence_ms(text) == patience.most_ms
    assert patience.silence_ms(text, phrase(held_ms=0, fade_db=60, depth=12)) == patience.most_ms


@pytest.mark.parametrize(
    ("sooner", "later"),
    [
        ("Stop!", "Book a table for four."),
        ("Book a table for four.", "Book a table"),
        ("Yes.", "yes and"),
        ("Book a table", "That's what it is."),
        ("My name is Phillips.", "P-H-I-L-L"),
        ("That's what it is.", "That's what it is and"),
    ],
)
def test_patience_grows_with_what_the_words_leave_open(sooner: str, later: str) -> None:
    """Answer, statement, bare words, a full stop behind a word that rarely ends, half a sentence: in this order."""
    patience = SemanticPatience("medium")
    assert patience.silence_ms(sooner) < patience.silence_ms(later)


def test_patience_without_the_last_words_waits_for_them() -> None:
    """While no draft has heard the end, the wait is longer than drafts take, and shorter than for half a sentence."""
    for eagerness in EAGERNESS:
        patience = SemanticPatience(eagerness)
        assert 300 < patience.silence_ms(None) < patience.most_ms


def test_patience_hears_a_voice_that_is_held() -> None:
    """The same words with the last syllable drawn out on one note get twice the silence of a voice that fades."""
    patience = SemanticPatience("medium")
    held = patience.silence_ms("I want a light roast", phrase(held_ms=320))
    plain = patience.silence_ms("I want a light roast", phrase())
    faded = patience.silence_ms("I want a light roast", phrase(held_ms=32, fade_db=28, depth=4))
    assert held > plain > faded
    assert held > 2 * faded


def test_patience_lets_no_vowel_outlast_a_question() -> None:
    """ "What's the weather like?" in one even breath is still a question: the voice adds a quarter at most."""
    patience = SemanticPatience("medium")
    plain = patience.silence_ms("What's the weather like?", phrase())
    assert plain < patience.silence_ms("What's the weather like?", phrase(held_ms=512)) <= 1.25 * plain


def test_patience_learns_the_rhythm_of_a_speaker_who_pauses() -> None:
    """Every pause that the speaker went on from makes the next one longer, up to the third."""
    patience = SemanticPatience("medium")
    waits = [patience.silence_ms("Here is another one.", phrase(earlier=n)) for n in range(5)]
    assert waits[0] < waits[1] < waits[2] < waits[3] == waits[4]


def test_patience_takes_a_whisper_by_its_words() -> None:
    """Where there was no voice to judge, the words alone decide."""
    whisper = PhraseEnd(16_000, Prosody(0.0, 0.0, -40.0, 0.0, None))
    patience = SemanticPatience("low")
    assert patience.silence_ms("Come here.", whisper) == patience.silence_ms("Come here.")


@given(st.none() | st.text(max_size=60), phrases, st.sampled_from(EAGERNESS))
def test_patience_is_bounded_for_any_speech(
    text: str | None, said: PhraseEnd | None, eagerness: Eagerness
) -> None:
    """Nobody waits longer than the protocol's 8, 4, 2 s, and no turn ends at once."""
    assert LEAST_MS <= SemanticPatience(eagerness).silence_ms(text, said) <= MOST[eagerness]


@given(st.none() | st.text(max_size=60), phrases)
def test_patience_falls_with_eagerness(text: str | None, said: PhraseEnd | None) -> None:
    """The more eager, the shorter the wait, whatever was said; auto is medium."""
    low, medium, high, auto = (
        SemanticPatience(e).silence_ms(text, said) for e in ("low", "medium", "high", "auto")
    )
    assert low >= medium >= high
    assert auto == medium


@given(st.none() | st.text(max_size=60), phrases, st.floats(0.2, 5))
def test_patience_scale_stretches_every_wait(text: str | None, said: PhraseEnd | None, scale: float) -> None:
    """A sweep over the scale moves all waits one way, within the same bounds."""
    plain, scaled = (SemanticPatience("medium", by).silence_ms(text, said) for by in (1.0, scale))
    assert (scaled >= plain) if scale >= 1 else (scaled <= plain)
    assert LEAST_MS <= scaled <= 4_000
