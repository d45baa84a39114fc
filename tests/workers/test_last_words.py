"""The end of what a worker said, without its secrets."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workers.last_words import LINES_KEPT, LONGEST_LINE, LastWords, secrets_of


def test_last_words_keeps_the_last_lines_and_what_was_begun() -> None:
    """Of 100 lines the last twenty stay, the unfinished one included."""
    words = LastWords([])
    for number in range(100):
        words.feed(f"line {number}\n".encode())
    words.feed(b"and th")
    lines = words.text().split("\n")
    assert len(lines) == LINES_KEPT
    assert lines[-2:] == ["line 99", "and th"]


def test_last_words_endless_line_is_bounded() -> None:
    """A progress bar without line ends does not eat memory."""
    words = LastWords([])
    for _ in range(1000):
        words.feed(b"=" * 1000)
    assert len(words.text()) <= LINES_KEPT * (LONGEST_LINE + 1)
    assert len(words._partial) < 20_000


def test_last_words_takes_known_and_typical_secrets_out() -> None:
    """By value where the configuration or environment names them, by shape where they look like keys."""
    words = LastWords(["hunter2hunter2"])
    words.feed(b"password is hunter2hunter2, key is sk-abcDEF1234567890, Authorization: Bearer abc.def\n")
    text = words.text()
    assert "hunter2" not in text
    assert "abcDEF" not in text
    assert "abc.def" not in text
    assert text.count("[secret]") == 3


def test_secrets_are_found_by_name_at_any_depth() -> None:
    """Names decide; short values and harmless names are left."""
    settings = {
        "model": "a-model-path",
        "api_key": "open-sesame",
        "headers": {"Authorization": "Bearer xyz12345", "accept": "everything"},
        "token": "ab",
        "password": 17,
    }
    assert set(secrets_of(settings)) == {"open-sesame", "Bearer xyz12345"}


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), max_size=20))
def test_last_words_any_bytes_cut_anywhere_give_the_same_text(output: bytes, cuts: list[int]) -> None:
    """Decoding never fails and does not depend on how the output arrives."""
    whole, cut_up = LastWords([]), LastWords([])
    whole.feed(output)
    rest = output
    for cut in cuts:
        cut_up.feed(rest[:cut])
        rest = rest[cut:]
    cut_up.feed(rest)
    assert cut_up.text() == whole.text()
