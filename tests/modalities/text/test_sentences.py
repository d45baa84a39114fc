import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.sentences import Cuts, Sentence, SentenceStream, speakable

reply_text = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "Dr.",
                "3.5",
                "e.g.",
                "U.S.",
                "J.",
                "Yes.",
                "well,",
                "no!",
                "Why?",
                "...",
                "…",
                "\n",
                "\n\n- ",
                "。",
                '"',
                "I.",
            ]
        ),
        st.text(max_size=8),
        st.just("word"),
    ),
    max_size=40,
).map(" ".join)


def _spoken(text: str, size: int = 3, cuts: Cuts | None = None) -> list[Sentence]:
    stream = SentenceStream(cuts)
    found: list[Sentence] = []
    for at in range(0, len(text), size):
        found += stream.feed(text[at : at + size])
    return [*found, *stream.close()]


def _texts(text: str) -> list[str]:
    return [sentence.text for sentence in _spoken(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Sure!", "It is 75.5 degrees in New York.", "Bring a hat."],
        ["Dr. Smith met Mrs. Jones on Jan. 5.", "They talked."],
        ["J. K. Rowling and J. R. R. Tolkien write.", "So do I.", "You too?"],
        ["He lives in the U.S. and works e.g. in the north.", "Fine."],
        ["We meet at 5 p.m.", "Tomorrow at 6 p.m. or later."],
        ['"Really?" she asked.', '"Yes," he said.', "Then he left."],
        ["Then... maybe not.", "Wait…", "What?!", "No."],
        ["It costs 1,000.50 dollars.", "See No. 5.", "No.", "Not that one."],
        ["Visit https://example.com/a.b?c=d today.", "Thanks."],
        ["今日は。", "元気ですか？", "はい"],
        ["What (if anything) is it?", "(Nothing.)", "Good."],
    ],
)
def test_sentence_stream_finds_sentences(sentences: list[str]) -> None:
    """Abbreviations, decimals, initials, ellipses, quotes and addresses do not cut; sentence ends do."""
    joined = "".join(sentences) if sentences[0].endswith("。") else " ".join(sentences)
    assert _texts(joined) == sentences


def test_sentence_stream_line_is_a_piece() -> None:
    """Lists and paragraphs are spoken line by line, whether or not they end in a full stop; rules are not spoken."""
    text = "Steps:\n1. Open the box\n2. Look inside\n\n---\n- done"
    assert _texts(text) == ["Steps:", "1. Open the box", "2. Look inside", "- done"]


def test_sentence_stream_sentence_leaves_with_the_first_letter_of_the_next() -> None:
    """A sentence is not held until the next one is complete: that letter is all it waits for."""
    stream = SentenceStream()
    assert stream.feed("It is sunny.") == ()
    assert stream.feed(" ") == ()
    assert [sentence.text for sentence in stream.feed("A")] == ["It is sunny."]


def test_sentence_stream_long_first_sentence_is_cut_at_a_clause() -> None:
    """The first sound does not wait for the end of a long sentence; later sentences stay whole."""
    first = "If you look at the forecast for today, then you will see that rain is coming."
    second = (
        "And if you look at the forecast for tomorrow, then you will see that the sun is coming back again."
    )
    assert _texts(f"{first} {second}") == [
        "If you look at the forecast for today,",
        "then you will see that rain is coming.",
        second,
    ]


def test_sentence_stream_long_first_sentence_without_a_mark_is_cut_where_a_clause_begins() -> None:
    """A long sentence breathes before "who"; a clause word that comes sooner, and later sentences, are left alone."""
    text = (
        "You and I know a young woman named Emma who finds a garden and a book and a bird in the deep forest"
    )
    assert _texts(text) == [
        "You and I know a young woman named Emma",
        "who finds a garden and a book and a bird in the deep forest",
    ]
    assert _texts("Yes, it is. " + text) == ["Yes, it is.", text]


def test_sentence_stream_does_not_cut_after_a_word_or_two() -> None:
    """ "Well," alone would sound chopped off."""
    assert _texts("Well, nobody really knows what will come of it in the end.") == [
        "Well, nobody really knows what will come of it in the end."
    ]


@given(reply_text, st.lists(st.integers(1, 9), max_size=40))
def test_sentence_stream_result_does_not_depend_on_the_chunks(text: str, sizes: list[int]) -> None:
    """Any way to cut the same reply into deltas gives the same pieces."""
    stream = SentenceStream()
    found: list[Sentence] = []
    at = 0
    for size in [*sizes, len(text)]:
        found += stream.feed(text[at : at + size])
        at += size
    assert [*found, *stream.close()] == _spoken(text, len(text) + 1)


@given(reply_text)
def test_sentence_stream_loses_and_changes_nothing(text: str) -> None:
    """Pieces are slices of the reply, in order, and what lies between them has no letter or digit."""
    at = 0
    for sentence in _spoken(text):
        assert sentence.start >= at
        assert not any(character.isalnum() for character in text[at : sentence.start])
        assert text[sentence.start : sentence.stop] == sentence.text == sentence.text.strip() != ""
        at = sentence.stop
    assert not any(character.isalnum() for character in text[at:])


@given(st.text(alphabet="ab ,", max_size=2_000), st.text(alphabet="x", max_size=900))
def test_sentence_stream_piece_is_bounded(text: str, endless: str) -> None:
    """Text without any end, or without even a space, is still cut: no job and no buffer grows without bound."""
    cuts = Cuts(longest_characters=100)
    assert all(len(sentence.text) <= 200 for sentence in _spoken(text + endless, 7, cuts))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("# The **big** _news_", "The big news"),
        ("- Use `pip` with care", "Use pip with care"),
        ("See [the docs](https://example.com/x) or ![a cat](cat.png).", "See the docs or a cat."),
        ("Go to https://www.example.com/a/b?c=d#e now.", "Go to example.com now."),
        ("Great 😀👍🏽!", "Great !"),
        ("call my_function_name()", "call my function name()"),
        ("| a | b |", "a, b"),
        ("one<br>two", "one two"),
        ("> quoted\n> twice", "quoted twice"),
        ("2 < 3 and 20 °C", "2 < 3 and 20 °C"),
        ("---", ""),
        ("🎉", ""),
        ("```python", ""),
        ("  spaced   out ", "spaced out"),
    ],
)
def test_speakable_leaves_out_what_a_voice_cannot_say(written: str, said: str) -> None:
    """Markup, addresses and pictures are not read out; words and numbers stay."""
    assert speakable(written) == said


@given(st.text(max_size=200))
def test_speakable_of_any_text_is_one_clean_line(text: str) -> None:
    """Whatever a model writes comes out without line breaks, control characters or surrounding space."""
    said = speakable(text)
    assert said == " ".join(said.split())
    assert said.isprintable()
