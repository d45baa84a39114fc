"""The playing side of a call: exact counts, a bound, silence, flushes and deadlines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.buffers.views import MAX_VIEWS
from orchestrator.errors import Overloaded
from orchestrator.transports.tracks import (
    FRAME_BYTES,
    FRAME_SAMPLES,
    FRAME_US,
    KEPT_FRAMES,
    MAX_RESPONSES,
    Due,
    Pacer,
    PlayoutQueue,
)


def sound(samples: int, value: int = 1) -> bytes:
    return value.to_bytes(2, "little") * samples


def take_all(queue: PlayoutQueue, frames: int) -> tuple[list[bytes | None], list[str]]:
    taken: list[bytes | None] = []
    drained: list[str] = []
    for _ in range(frames):
        frame = queue.take()
        taken.append(frame.pcm)
        drained += frame.drained
    return taken, drained


def test_a_response_is_played_and_drained_a_frame_after_its_last_sample() -> None:
    """Two and a half frames: the half is filled with silence, and `drained` comes once it was sent."""
    queue = PlayoutQueue(limit_s=1)
    queue.play("a", sound(1_200))
    queue.finish("a")
    first, second, third = queue.take(), queue.take(), queue.take()
    assert first.pcm == second.pcm == sound(480)
    assert third.pcm == sound(240) + bytes(480)
    assert first.drained == second.drained == third.drained == ()
    assert queue.played_samples("a") == 1_200
    assert (fourth := queue.take()).drained == ("a",)
    assert fourth.pcm is None


def test_sound_that_comes_too_slowly_is_played_in_whole_frames() -> None:
    """While a response is open, less than a frame waits; silence is sent and nothing is counted as played."""
    queue = PlayoutQueue(limit_s=1)
    queue.play("a", sound(400))
    assert queue.take().pcm is None
    assert queue.played_samples("a") == 0
    queue.play("a", sound(100))
    assert queue.take().pcm == sound(480)
    queue.finish("a")
    assert queue.take().pcm == sound(20) + bytes(920)
    assert queue.played_samples("a") == 500


def test_one_response_follows_another_within_a_frame() -> None:
    """No silence is put between two responses that are both there; each gets its own count."""
    queue = PlayoutQueue(limit_s=1)
    queue.play("a", sound(100, 1))
    queue.finish("a")
    queue.play("b", sound(500, 2))
    assert queue.take().pcm == sound(100, 1) + sound(380, 2)
    assert (queue.played_samples("a"), queue.played_samples("b")) == (100, 380)


def test_over_the_bound_new_sound_is_refused_and_the_old_stays() -> None:
    """`Overloaded` says when there is room for it; nothing of the refused piece is queued."""
    queue = PlayoutQueue(limit_s=1)
    queue.play("a", sound(20_000))
    with pytest.raises(Overloaded) as caught:
        queue.play("a", sound(10_000))
    assert caught.value.retry_after_s == pytest.approx(6_000 / 24_000)
    assert queue.queued_s == pytest.approx(20_000 / 24_000)
    queue.play("a", sound(4_000))


def test_responses_are_bounded_too() -> None:
    """Many tiny responses are refused like much sound."""
    queue = PlayoutQueue(limit_s=1)
    for number in range(MAX_RESPONSES):
        queue.play(str(number), sound(1))
    with pytest.raises(Overloaded):
        queue.play("one more", sound(1))


def test_playout_queue_is_bounded_in_pieces_too() -> None:
    """Sound in the smallest pieces is refused beyond their number, long before its seconds are too many; nothing of
    the refused one is queued, and what there is is played and drained as ever."""
    queue = PlayoutQueue(limit_s=120)
    for _ in range(MAX_VIEWS):
        queue.play("a", sound(1))
    held_s = queue.queued_s
    with pytest.raises(Overloaded):
        queue.play("a", sound(1))
    assert queue.queued_s == held_s
    queue.finish("a")
    frames = 0
    while "a" not in queue.take().drained:
        frames += 1
    assert frames == -(-MAX_VIEWS // 480)
    assert queue.played_samples("a") == MAX_VIEWS
    assert queue.is_idle


def test_a_flush_drops_everything_and_what_it_dropped_never_drains() -> None:
    """The next frame is silence; a `finish` that comes later is no drain, and the count stays that of what was sent."""
    queue = PlayoutQueue(limit_s=1)
    queue.play("a", sound(2_000))
    queue.take()
    queue.flush()
    queue.finish("a")
    assert take_all(queue, 5) == ([None] * 5, [])
    assert queue.played_samples("a") == FRAME_SAMPLES
    assert queue.queued_s == 0


def test_a_flush_between_the_last_sample_and_its_drain_takes_the_drain_back() -> None:
    """The session has called it cut: it cannot end a second time."""
    queue = PlayoutQueue(limit_s=1)
    queue.play("a", sound(480))
    queue.finish("a")
    queue.take()
    queue.flush()
    assert queue.take().drained == ()


def test_a_response_without_sound_drains_at_the_next_frame() -> None:
    """`finish` of what was never played, or has been played to the end, is answered."""
    queue = PlayoutQueue(limit_s=1)
    queue.finish("text only")
    queue.play("a", sound(480))
    assert queue.take().drained == ("text only",)
    queue.finish("a")
    assert take_all(queue, 2)[1] == ["a"]


def test_half_a_sample_is_our_own_fault() -> None:
    """An odd number of bytes is refused before it shifts everything behind it."""
    with pytest.raises(ValueError, match="even"):
        PlayoutQueue(limit_s=1).play("a", b"\0\0\0")


def test_sound_stays_where_it_is_until_its_frame_is_due() -> None:
    """Nothing of what waits is copied: a frame shows the sound as it lies there when the frame is taken."""
    queue, lies_there = PlayoutQueue(limit_s=1), bytearray(sound(960, 1))
    queue.play("a", lies_there)
    first = queue.take()
    lies_there[:] = sound(960, 2)
    assert first.pcm == sound(480, 1)
    assert queue.take().pcm == sound(480, 2)


def test_a_frame_is_put_together_of_small_pieces() -> None:
    """However finely a voice cuts its sound, frames are whole and in order, and the end is found."""
    queue = PlayoutQueue(limit_s=1)
    for number in range(1_000):
        queue.play("a", number.to_bytes(2, "little"))
    queue.finish("a")
    frames, drained = take_all(queue, 4)
    whole = b"".join(number.to_bytes(2, "little") for number in range(1_000))
    assert b"".join(frame or b"" for frame in frames) == whole.ljust(3 * FRAME_BYTES, b"\0")
    assert drained == ["a"]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("play"), st.sampled_from("ab"), st.integers(1, 3_000)),
            st.tuples(st.sampled_from(["finish", "flush", "take"]), st.sampled_from("ab"), st.integers(1, 4)),
        ),
        max_size=60,
    )
)
def test_every_sample_is_played_once_or_dropped_by_a_flush(story: list[tuple[str, str, int]]) -> None:
    """In any story the counts are those of the frames, order is kept, and the bound holds."""
    queue, waiting, played = PlayoutQueue(limit_s=0.25), b"", {"a": 0, "b": 0}
    for kind, response_id, count in story:
        match kind:
            case "play":
                piece = sound(count, 1 if response_id == "a" else 2)
                try:
                    queue.play(response_id, piece)
                    waiting += piece
                except Overloaded:
                    assert len(waiting) + len(piece) > 12_000
            case "finish":
                queue.finish(response_id)
            case "flush":
                queue.flush()
                waiting = b""
            case _:
                for _ in range(count):
                    pcm = queue.take().pcm or b""
                    taken = pcm.rstrip(b"\0")
                    taken += b"\0" * (len(taken) % 2)
                    assert waiting.startswith(taken)
                    waiting = waiting[len(taken) :]
                    played["a"] += taken.count(b"\1\0")
                    played["b"] += taken.count(b"\2\0")
        assert round(queue.queued_s * 48_000) == len(waiting)
        assert {key: queue.played_samples(key) for key in played} == played


def test_frames_are_due_at_absolute_times() -> None:
    """Waking up late does not move the deadlines after it."""
    pacer = Pacer()
    assert [pacer.due(now).at_us for now in (1_000, 5_000, 35_000, 41_500)] == [1_000, 21_000, 41_000, 61_000]


def test_a_sender_that_is_late_owes_its_frames_but_not_for_ever() -> None:
    """Up to 200 ms are made up for; after a longer stop frames are skipped, and stamps stay those of the clock."""
    pacer = Pacer(max_behind_us=200_000)
    pacer.due(0)
    late = pacer.due(150_000)
    assert (late.at_us, late.skipped) == (20_000, 0)
    stopped = pacer.due(1_040_000)
    assert (stopped.at_us, stopped.skipped) == (1_040_000, 50)
    assert pacer.due(1_040_000).at_us == 1_060_000


def test_a_sender_that_rested_owes_nothing() -> None:
    """However short the rest was: it goes on with the frame that is due now, and says how many were not sent."""
    pacer = Pacer()
    assert (pacer.rest_us(20, 0), pacer.wake(0)) == (0, 0)
    pacer.due(0)
    assert pacer.rest_us(20, 5_000) == 395_000
    assert pacer.wake(95_000) == 3
    assert pacer.due(95_000) == Due(80_000, 0)
    assert (pacer.wake(97_000), pacer.due(97_000)) == (0, Due(100_000, 0))


def test_a_frame_is_20_ms_of_24_khz() -> None:
    """The constants agree with each other."""
    assert (FRAME_US, FRAME_SAMPLES, FRAME_BYTES) == (20_000, 480, 960)


@given(st.lists(st.integers(1, 2_000), min_size=1, max_size=8), st.integers(0, 20), st.integers(0, 20))
def test_what_is_unplayed_counts_as_it_did_then(pieces: list[int], taken: int, since: int) -> None:
    """Frames that went out after a time leave no trace in the counts; those before do."""
    queue = PlayoutQueue(limit_s=10)
    for number, samples in enumerate(pieces):
        queue.play(f"r{number}", sound(samples))
        queue.finish(f"r{number}")
    counts = []
    for at in range(1, taken + 1):
        queue.take(at)
        counts.append([queue.played_samples(f"r{number}") for number in range(len(pieces))])
    queue.unplay(since)
    expected = ([[0] * len(pieces), *counts])[min(since, taken)]
    assert [queue.played_samples(f"r{number}") for number in range(len(pieces))] == expected


def test_unplaying_goes_no_further_back_than_is_remembered() -> None:
    """Ten seconds of frames with sound; silence is not remembered and costs none of that."""
    queue = PlayoutQueue(limit_s=100)
    queue.play("a", sound(FRAME_SAMPLES * (KEPT_FRAMES + 5)))
    for at in range(KEPT_FRAMES + 5):
        queue.take(at + 1)
    for at in range(KEPT_FRAMES):
        queue.take(KEPT_FRAMES + 6 + at)
    queue.unplay(0)
    assert queue.played_samples("a") == FRAME_SAMPLES * 5
