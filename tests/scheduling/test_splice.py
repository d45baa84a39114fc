"""What was told before a worker died is not told again."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.scheduling.splice import Splice
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    ReplyCall,
    ReplyText,
    Report,
    SpeechPiece,
    Spoke,
    Transcribed,
)


def _texts(splice: Splice, *pieces: str) -> str:
    told = [splice.receive(ReplyText("j", piece)) for piece in pieces]
    assert not any(isinstance(one, Failed) for one in told)
    return "".join(one.text for one in told if isinstance(one, ReplyText))


def _piece(index: int, *samples: int) -> SpeechPiece:
    audio = b"".join(value.to_bytes(2, "little", signed=True) for value in samples)
    return SpeechPiece("j", index, 24_000, len(samples), audio)


def test_splice_first_run_passes_through_unchanged() -> None:
    """Without a loss nothing is touched."""
    splice = Splice()
    reports: list[Report] = [
        ReplyText("j", "Hi"),
        ReplyCall("j", 0, "{", "f"),
        ReplyCall("j", 0, "}"),
        Replied("j", "stop"),
        _piece(0, 1, 2),
        Transcribed("j", "text"),
    ]
    assert [splice.receive(one) for one in reports] == reports


def test_splice_same_reply_goes_on_where_it_broke_off() -> None:
    """The repeat is swallowed up to what was told, also where its pieces are cut differently."""
    splice = Splice()
    assert _texts(splice, "Hello ", "wor") == "Hello wor"
    splice.restart()
    assert splice.receive(ReplyText("j", "Hel")) is None
    assert _texts(splice, "lo world", ", again") == "ld, again"
    assert splice.receive(Replied("j", "stop")) == Replied("j", "stop")


def test_splice_other_reply_fails_instead_of_mixing() -> None:
    """Half of one reply and half of another would be nonsense."""
    splice = Splice()
    _texts(splice, "It is noon")
    splice.restart()
    report = splice.receive(ReplyText("j", "It was"))
    assert isinstance(report, Failed)
    assert report.code == "worker_failed"


def test_splice_shorter_repeat_fails() -> None:
    """A repeat that ends before it has said what was told contradicts it."""
    splice = Splice()
    _texts(splice, "It is noon")
    splice.restart()
    splice.receive(ReplyText("j", "It is"))
    assert isinstance(splice.receive(Replied("j", "stop")), Failed)


def test_splice_tool_calls_go_on_one_by_one() -> None:
    """Arguments are continued per call; the name comes once."""
    splice = Splice()
    splice.receive(ReplyCall("j", 0, '{"a"', "f"))
    splice.restart()
    assert splice.receive(ReplyCall("j", 0, '{"a"', "f")) is None
    assert splice.receive(ReplyCall("j", 0, ": 1}")) == ReplyCall("j", 0, ": 1}")
    assert splice.receive(ReplyCall("j", 1, "", "g")) == ReplyCall("j", 1, "", "g")
    splice.restart()
    assert isinstance(splice.receive(ReplyCall("j", 0, '{"b"', "f")), Failed)


def test_splice_sound_goes_on_after_the_samples_already_sent() -> None:
    """By length: the first three samples are skipped, indices go on, the count is of what was sent."""
    splice = Splice()
    assert splice.receive(_piece(0, 1, 2)) == _piece(0, 1, 2)
    assert splice.receive(_piece(1, 3)) == _piece(1, 3)
    splice.restart()
    assert splice.receive(_piece(0, 1, 2)) is None
    assert splice.receive(_piece(1, 3, 4, 5)) == _piece(2, 4, 5)
    assert splice.receive(_piece(2, 6)) == _piece(3, 6)
    assert splice.receive(Spoke("j", 3)) == Spoke("j", 4)


@given(
    st.text("abc", max_size=30), st.lists(st.lists(st.integers(1, 5), max_size=10), min_size=1, max_size=4)
)
def test_splice_any_cuts_and_losses_tell_a_text_exactly_once(text: str, runs: list[list[int]]) -> None:
    """However the runs are cut into pieces and wherever they are lost, the pieces told add up to the text."""
    splice = Splice()
    told = ""
    for cuts in [*runs, [len(text) or 1]]:
        splice.restart()
        position = 0
        for cut in cuts:
            told += _texts(splice, text[position : position + cut])
            position += cut
    assert told == text
    assert splice.receive(Replied("j", "stop")) == Replied("j", "stop")
