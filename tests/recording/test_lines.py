"""Lines of a journal: numbered, checked, and readable wherever the file was cut off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.recording.lines import JournalDamaged, contents, is_torn, seal, unseal

CONTENTS = [b'{"n":%d,"text":"line \xc3\xa9 %d"}' % (n, n) for n in range(4)]
DATA = b"".join(map(seal, CONTENTS))


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.text(), min_size=1))
def test_a_line_comes_back_as_it_was(members: dict[str, int | str]) -> None:
    """Whatever JSON object is sealed comes out again, and is one line."""
    import msgspec

    content = msgspec.json.encode(members)
    line = seal(content)
    assert line.count(b"\n") == 1
    assert unseal(line[:-1]) == content


def test_a_journal_that_is_cut_off_anywhere_gives_all_whole_lines() -> None:
    """Cut at every byte: the lines before the cut are there, and a torn one is told."""
    for cut in range(len(DATA) + 1):
        whole = DATA[:cut].count(b"\n")
        assert list(contents(DATA[:cut])) == CONTENTS[:whole]
        assert is_torn(DATA[:cut]) == (cut > 0 and DATA[cut - 1 : cut] != b"\n")


def test_a_last_line_of_wrong_bytes_is_left_out() -> None:
    """After a power cut a file may have its length and not its bytes: such a last line counts as torn."""
    zeroed = DATA[:-20] + bytes(19) + b"\n"
    assert list(contents(zeroed)) == CONTENTS[:-1]
    assert is_torn(zeroed)


@pytest.mark.parametrize("at", [5, len(seal(CONTENTS[0])) + 8])
def test_damage_in_the_middle_is_told_with_its_line(at: int) -> None:
    """A changed byte that is not in the last line is no crash: the file is refused, and the line named."""
    broken = DATA[:at] + b"#" + DATA[at + 1 :]
    with pytest.raises(JournalDamaged, match=f"line {broken[:at].count(10) + 1} "):
        list(contents(broken))


def test_missing_lines_are_noticed() -> None:
    """A line that was taken out leaves a gap in the numbers."""
    lines = DATA.splitlines(keepends=True)
    with pytest.raises(JournalDamaged, match="lines are missing"):
        list(contents(lines[0] + lines[2] + lines[3]))
