"""Long words go in several deltas."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.wire import codec, server, splitting
from orchestrator.wire.splitting import MAX_DELTA_CHARACTERS, parts_of


@given(st.integers(0, 3 * MAX_DELTA_CHARACTERS + 1))
def test_parts_of_a_text_are_the_text(characters: int) -> None:
    """Nothing is lost, no part is empty, none is too long."""
    text = ("ab\n" * characters)[:characters]
    parts = list(parts_of(text))
    assert "".join(parts) == text
    assert all(0 < len(part) <= splitting.MAX_DELTA_CHARACTERS for part in parts)


def test_a_part_fits_into_a_message_whatever_its_characters() -> None:
    """The characters that JSON writes longest, and UTF-8; on a call, too."""
    for character in ("\x01", "\U0001f600", '"'):
        (part,) = parts_of(character * MAX_DELTA_CHARACTERS)
        assert len(codec.encode(server.TextDelta("r", "i", 0, 0, part), "e")) < 60_000
