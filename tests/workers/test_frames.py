"""Frames come out as they went in, however the pipe cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.scheduling.work import (
    Failed,
    Replied,
    ReplyText,
    SpeechPiece,
    Transcribe,
    Transcribed,
    Understand,
)
from orchestrator.workers.frames import (
    BLOCK_BYTES,
    LARGEST_FRAME_BYTES,
    LENGTH_BYTES,
    Beat,
    BrokenFrame,
    Cancel,
    Configure,
    FrameReader,
    FromWorker,
    Loading,
    Ready,
    Run,
    Task,
    ToWorker,
    Unable,
    frame,
    from_worker,
    to_worker,
)
from tests.workers.feeding import feed

TO_WORKER: list[ToWorker] = [
    Configure("asr", "engine", {"path": None, "n": 3, "deep": {"a": [1.5]}}, 2, 8, 5, 0.5, {"A": "b"}),
    Run((Task("j1", Transcribe(0, 3, audio=b"\x00\x01" * 3)), Task("j2", Understand("hé")))),
    Cancel("j1"),
]
FROM_WORKER: list[FromWorker] = [
    Loading(),
    Ready(1.5, 0.25, "a voice"),
    Unable("no model", lasting=True),
    Beat(),
    ReplyText("j", "text"),
    Replied("j", "stop"),
    SpeechPiece("j", 0, 24_000, 2, b"\x01\x02\x03\x04"),
    Transcribed("j", "words"),
    Failed("j", "worker_failed", "no", 1.0),
]


@given(st.lists(st.integers(1, 40), max_size=200))
def test_frames_any_cut_of_the_stream_gives_the_same_messages(cuts: list[int]) -> None:
    """All kinds of messages in one stream, cut anywhere, come out equal and in order."""
    stream = b"".join(frame(message) for message in FROM_WORKER * 2)
    reader = FrameReader()
    payloads = []
    for cut in [*cuts, len(stream)]:
        payloads += feed(reader, stream[:cut])
        stream = stream[cut:]
    assert [from_worker(payload) for payload in payloads] == FROM_WORKER * 2


def test_frames_to_a_worker_come_out_as_they_went_in() -> None:
    """Configuration, jobs and cancels survive the pipe."""
    reader = FrameReader()
    stream = b"".join(frame(message) for message in TO_WORKER)
    assert [to_worker(payload) for payload in feed(reader, stream)] == TO_WORKER


@given(st.lists(st.tuples(st.integers(0, 3 * BLOCK_BYTES), st.integers(1, 2**20)), max_size=8))
def test_frames_of_any_size_are_received_in_place(plan: list[tuple[int, int]]) -> None:
    """Frames smaller and larger than the block, received in pieces of any size: each payload shows the very bytes, and
    after the largest one only the block is held again."""
    sent = [bytes([number]) * (size + 1) for number, (size, _) in enumerate(plan)]
    stream = b"".join(len(payload).to_bytes(LENGTH_BYTES, "big") + payload for payload in sent)
    reader, came = FrameReader(), list[bytes]()
    for _, cut in plan:
        came += feed(reader, stream[:cut])
        stream = stream[cut:]
    came += feed(reader, stream)
    assert came == sent
    assert len(reader.buffer()) == BLOCK_BYTES


def test_frames_that_end_beyond_the_block_are_moved_within_it() -> None:
    """However often the last bytes received are a part of a frame, it is the one block that is received into."""
    reader, stream = FrameReader(), frame(ReplyText("j", "word")) * 20_000
    blocks, came = set(), 0
    while stream:
        room = reader.buffer()
        blocks.add(id(room.obj))
        size = min(len(room), len(stream), 100_003)
        room[:size] = stream[:size]
        came += len(reader.received(size))
        del stream[:size]
    assert came == 20_000
    assert len(blocks) == 1


def test_frames_payloads_are_where_they_were_received() -> None:
    """What is shown is the block itself: nothing was copied between the socket and the decoder."""
    reader = FrameReader()
    room = reader.buffer()
    room[:6] = b"\0\0\0\2ab"
    (payload,) = reader.received(6)
    room[4:6] = b"AB"
    assert bytes(payload) == b"AB"


@pytest.mark.parametrize("prefix", [bytes(4), (LARGEST_FRAME_BYTES + 1).to_bytes(4, "big"), b"garb"])
def test_frames_impossible_length_is_a_broken_pipe(prefix: bytes) -> None:
    """Noise is found by its length before anything is kept for it."""
    with pytest.raises(BrokenFrame):
        feed(FrameReader(), prefix)


def test_frames_payload_of_no_known_message_is_broken() -> None:
    """Valid length, invalid content: no half-decoded message."""
    with pytest.raises(BrokenFrame):
        from_worker(b"\xc1")
    with pytest.raises(BrokenFrame):
        from_worker(frame(Cancel("j"))[4:])
    with pytest.raises(BrokenFrame):
        to_worker(frame(Beat())[4:])
