"""What the voice detector is not asked, and what it is owed for that."""

import asyncio

import numpy as np
import pytest
from numpy.typing import NDArray

from modalities.adapters.silero import SileroDetector
from modalities.audio.segmenter import Segmenter, SegmenterSettings, SegmentEvent
from orchestrator.workers.stillness import (
    FLOOR,
    MOST_HELD,
    MOST_OWED,
    REST_WINDOWS,
    SETTLED_WINDOWS,
    Stillness,
)
from orchestrator.workers.voice_activity import VoiceActivity
from tests.modalities.adapters.recordings import recordings
from tests.workers.test_voice_activity import CountingDetector, Mouth, judged

STILL = np.full((1, 512), -FLOOR, np.int16)
FAINT = np.full((1, 512), FLOOR + 1, np.int16)


class Follower:
    """A `Stillness` and the number of its next window."""

    def __init__(self) -> None:
        self.stillness = Stillness()
        self.next = 0

    def passes(self, *sound: NDArray[np.int16]) -> bool:
        """Asks for the next windows, whose sound comes in these pieces; goes on behind them where they pass."""
        numbers = range(self.next, self.next + sum(map(len, sound)))
        passed = self.stillness.passes(numbers, sound)
        self.next = numbers.stop if passed else self.next
        return passed

    def judged(self, window: NDArray[np.int16], probability: float) -> None:
        self.stillness.judged(window, (probability,))
        self.next += 1


def settled() -> Follower:
    follower = Follower()
    for _ in range(SETTLED_WINDOWS):
        assert not follower.stillness.is_settled
        assert not follower.passes(STILL)
        follower.judged(STILL, 0.01)
    assert follower.stillness.is_settled
    return follower


def test_still_windows_pass_after_a_second_of_them() -> None:
    """Not before: what was said a moment ago has to be heard out. One that holds something does not pass, in whichever
    piece of the ring it lies."""
    follower = settled()
    assert follower.passes(STILL)
    assert not follower.passes(FAINT)
    assert not follower.passes(STILL, FAINT)
    assert not follower.passes(FAINT, STILL)
    assert follower.passes(STILL, STILL)


@pytest.mark.parametrize(("window", "probability"), [(FAINT, 0.0), (STILL, 0.3)])
def test_what_holds_or_may_hold_speech_begins_the_second_anew(
    window: NDArray[np.int16], probability: float
) -> None:
    """Whether it is loud, or the detector is in doubt about what is not."""
    follower = settled()
    follower.judged(window, probability)
    assert not follower.passes(STILL)


def test_what_passed_is_owed_once_and_in_order() -> None:
    """By its numbers. More than `MOST_HELD` do not pass, and nothing that did is forgotten."""
    follower = settled()
    stillness, first = follower.stillness, follower.next
    assert all(follower.passes(STILL) for _ in range(MOST_OWED))
    assert stillness.owes_many
    assert stillness.owed() == range(first, first + MOST_OWED)
    assert (len(stillness.owed()), stillness.owes_many) == (0, False)
    assert follower.passes(np.repeat(STILL, MOST_HELD, axis=0))
    assert not follower.passes(STILL)
    assert stillness.owed() == range(first + MOST_OWED, first + MOST_OWED + MOST_HELD)
    assert not follower.passes(np.repeat(STILL, MOST_HELD + 1, axis=0))


def test_nothing_is_owed_once_the_state_has_come_to_rest() -> None:
    """After 40 s, until something is heard."""
    follower = settled()
    for _ in range(REST_WINDOWS - SETTLED_WINDOWS):
        assert follower.passes(STILL)
        follower.stillness.owed()
    assert follower.passes(STILL)
    assert len(follower.stillness.owed()) == 0


def test_what_follows_a_hole_has_nothing_before_it() -> None:
    """No second of silence, and nothing owed."""
    follower = settled()
    follower.passes(STILL)
    follower.stillness.begin()
    assert len(follower.stillness.owed()) == 0
    assert not follower.passes(STILL)


def test_a_muted_stream_is_answered_at_once_and_its_detector_catches_up() -> None:
    """Every window gets its answer, in order; the detector's state sees each of them once, up to the rest."""

    async def main() -> None:
        detector = CountingDetector()
        service = VoiceActivity(detector)
        heard: list[tuple[int, float]] = []
        stream = Mouth(
            service, lambda first, found, ends=(): heard.extend((first + i, p) for i, p in enumerate(found))
        )
        muted = SETTLED_WINDOWS + MOST_HELD
        for window in range(muted):
            stream.push(window, np.zeros((1, 512), np.int16))
            if window < SETTLED_WINDOWS:
                await judged(stream)
            assert len(heard) == window + 1
        stream.push(muted, np.full((1, 512), 100, np.int16))
        await judged(stream)
        service.close()
        assert [window for window, _ in heard] == list(range(muted + 1))
        assert [p for _, p in heard[:muted]] == [0.0] * muted
        assert heard[muted][1] > 0.0
        assert stream.state[0] == muted + 1

    asyncio.run(main())


@pytest.mark.parametrize("piece", [20, 100, 500])
def test_a_detector_misses_nothing_of_silence_that_comes_in_large_pieces(piece: int) -> None:
    """A client sends a file as fast as it is taken: the detector's state sees each window of it all the same."""

    async def main() -> None:
        detector = CountingDetector()
        service = VoiceActivity(detector)
        heard: list[int] = []
        stream = Mouth(service, lambda first, found, ends=(): heard.extend(range(first, first + len(found))))
        for window in range(SETTLED_WINDOWS):
            stream.push(window, STILL)
            await judged(stream)
        last = SETTLED_WINDOWS + 1_000
        for window in range(SETTLED_WINDOWS, last, piece):
            stream.push(window, np.repeat(STILL, piece, axis=0))
        stream.push(last, FAINT)
        await judged(stream)
        service.close()
        assert heard == list(range(last + 1))
        assert stream.state[0] == last + 1

    asyncio.run(main())


def test_a_muted_streams_detector_is_asked_now_and_then() -> None:
    """Some windows at a time, so that few are left for when somebody speaks."""

    async def main() -> None:
        detector = CountingDetector()
        service = VoiceActivity(detector)
        stream = Mouth(service, lambda first, found, ends=(): None)
        for window in range(SETTLED_WINDOWS):
            stream.push(window, np.zeros((1, 512), np.int16))
            await judged(stream)
        for window in range(SETTLED_WINDOWS, SETTLED_WINDOWS + MOST_OWED):
            stream.push(window, np.zeros((1, 512), np.int16))
        while stream.state[0] < SETTLED_WINDOWS + MOST_OWED:  # noqa: ASYNC110 - nobody else tells of it
            await asyncio.sleep(0)
        assert len(detector.calls) == SETTLED_WINDOWS + MOST_OWED
        service.close()

    asyncio.run(main())


@pytest.mark.real
def test_no_utterance_begins_or_ends_elsewhere_because_of_it() -> None:
    """Recorded speech behind 1 to 60 s of a muted microphone, with the real network: the same extents as without."""
    detector = SileroDetector()
    chance = np.random.default_rng(4)
    for number, recording in enumerate(recordings("command", "far_field")[:12]):
        sound = recording.pcm()[: 16_000 * 4]
        still = chance.integers(-2, 3, 512 * (31 + 200 * (number % 6) if number < 6 else 1_900))
        whole = np.concatenate((still, sound, np.zeros(512 * 60))).astype(np.int16)
        windows = whole[: len(whole) // 512 * 512].reshape(-1, 512)
        assert asyncio.run(_found(detector, windows)) == _plain(detector, windows), recording.file.name


def _plain(detector: SileroDetector, windows: NDArray[np.int16]) -> list[SegmentEvent]:
    state, segmenter = detector.new_state()[None], Segmenter(SegmenterSettings(silence_ms=200))
    found: list[SegmentEvent] = []
    for number, window in enumerate(windows):
        probability, state = detector.detect(window[None].astype(np.float32) / 32_768, state)
        found += segmenter.observe([float(probability[0])], number)
    return found


async def _found(detector: SileroDetector, windows: NDArray[np.int16]) -> list[SegmentEvent]:
    service, segmenter = VoiceActivity(detector), Segmenter(SegmenterSettings(silence_ms=200))
    found: list[SegmentEvent] = []
    stream = Mouth(service, lambda first, heard, ends=(): found.extend(segmenter.observe(heard, first)))
    for number in range(0, len(windows), 8):
        stream.push(number, windows[number : number + 8])
        await judged(stream)
    service.close()
    return found
