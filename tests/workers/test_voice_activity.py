"""The shared voice detector: fair, in order, one thread."""

import asyncio
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from modalities.adapters.silero import SileroDetector
from modalities.audio.phrase_end import PhraseEnd
from modalities.ports import Pcm
from orchestrator.buffers.audio import SpeechBuffer
from orchestrator.buffers.ring import Overrun
from orchestrator.observability.faults import FAULTS
from orchestrator.sessions.intake import DeliverProbabilities
from orchestrator.workers.voice_activity import MOST_EXTENTS, MOST_WINDOWS_A_TICK, VoiceActivity


class CountingDetector:
    """A stand-in: a window's probability is its first sample; its state counts the stream's windows."""

    window = 512

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.threads: set[int] = set()

    def new_state(self) -> NDArray[np.float32]:
        return np.zeros(1, dtype=np.float32)

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.calls.append(len(windows))
        self.threads.add(threading.get_ident())
        return (windows[:, 0] * 32.768).astype(np.float32), states + 1


class Mouth:
    """A stream and the sound that it is of: what a test says lies in a ring, as a session's does."""

    def __init__(
        self, service: VoiceActivity, deliver: DeliverProbabilities, capacity: int = 6_000_000
    ) -> None:
        self.sound = SpeechBuffer(capacity)
        self.stream = service.stream(deliver, self.sound)

    def push(self, first_window: int, windows: NDArray[np.int16]) -> None:
        self.sound.append_at(first_window * 512, windows.reshape(-1))
        self.stream.push(range(first_window, first_window + len(windows)))

    @property
    def backlog(self) -> int:
        return self.stream.backlog

    @property
    def state(self) -> NDArray[np.float32]:
        return self.stream.state

    def close(self) -> None:
        self.stream.close()


async def judged(*streams: Mouth) -> None:
    """Returns once all windows of these streams have been judged."""
    while any(stream.backlog for stream in streams):  # noqa: ASYNC110 - the detector tells its streams, nobody else
        await asyncio.sleep(0)


def numbered(first: int, count: int) -> NDArray[np.int16]:
    windows = np.zeros((count, 512), dtype=np.int16)
    windows[:, 0] = np.arange(first, first + count) % 1_000
    return windows


def test_voice_activity_judges_all_streams_together_and_each_in_order() -> None:
    """Windows that arrive in one turn of the loop share calls; every stream gets all its own, in order."""

    async def main() -> None:
        detector = CountingDetector()
        service = VoiceActivity(detector)
        heard: dict[int, list[tuple[int, float]]] = {n: [] for n in range(8)}
        streams = [
            Mouth(
                service,
                lambda first, found, ends=(), n=n: heard[n].extend(
                    (first + i, p) for i, p in enumerate(found)
                ),
            )
            for n in range(8)
        ]
        for n, stream in enumerate(streams):
            stream.push(0, numbered(0, 200 if n == 0 else 3))
        await judged(*streams)
        service.close()
        for n, found in heard.items():
            assert [window for window, _ in found] == list(range(200 if n == 0 else 3))
            assert [round(p * 1_000) for _, p in found] == [window % 1_000 for window, _ in found]
        assert detector.calls[:3] == [8, 8, 8]
        assert len(detector.threads) == 1
        assert threading.get_ident() not in detector.threads

    asyncio.run(main())


def test_voice_activity_lets_nobody_wait_for_a_long_file() -> None:
    """A client that sends minutes at once delays another by one tick's share, not by the file."""

    async def main() -> None:
        service = VoiceActivity(CountingDetector())
        order: list[str] = []
        file = Mouth(service, lambda first, found, ends=(): order.append("file"))
        live = Mouth(service, lambda first, found, ends=(): order.append("live"))
        file.push(0, numbered(0, 10_000))
        await asyncio.sleep(0)
        live.push(0, numbered(0, 1))
        await judged(live)
        service.close()
        assert order.index("live") <= 2
        assert len(order) < 10_000 / MOST_WINDOWS_A_TICK

    asyncio.run(main())


def test_voice_activity_starts_afresh_behind_a_hole() -> None:
    """Windows that do not follow the last ones begin a new state: no memory of another place in the sound."""

    async def main() -> None:
        service = VoiceActivity(CountingDetector())
        stream = Mouth(service, lambda first, found, ends=(): None)
        for first, states in ((0, 2.0), (2, 4.0), (50, 2.0)):
            stream.push(first, numbered(first, 2))
            await judged(stream)
            assert stream.state[0] == states
        stream.close()
        stream.push(52, numbered(52, 1))
        assert stream.backlog == 0
        service.close()
        service.close()

    asyncio.run(main())


def test_voice_activity_tells_where_a_speaker_pauses_and_how() -> None:
    """The pause comes with the windows that it is known by, heard in the detector's thread; each stream has its own."""

    async def main() -> None:
        service = VoiceActivity(CountingDetector())
        found: dict[str, list[PhraseEnd]] = {"speaks": [], "rests": []}
        streams = {
            name: Mouth(service, lambda first, judged, ends=(), name=name: found[name].extend(ends))
            for name in found
        }
        spoken = np.tile((9_000 * np.sin(np.arange(512) * 2 * np.pi * 4 / 512)).astype(np.int16), (20, 1))
        spoken[:, 0] = 900
        for first, windows in ((0, spoken), (20, numbered(0, 4))):
            streams["speaks"].push(first, windows)
            streams["rests"].push(first, numbered(0, len(windows)))
            await judged(*streams.values())
        service.close()
        assert [end.stop for end in found["speaks"]] == [20 * 512]
        assert abs(found["speaks"][0].prosody.pitch_hz - 125) < 2
        assert found["rests"] == []

    asyncio.run(main())


class FailingDetector(CountingDetector):
    """Fails on loud windows."""

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        if windows.max() > 0.9:
            raise RuntimeError("bad window")
        return super().detect(windows, states)


def test_voice_activity_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """What the model fails on is lost and said so once; every session is heard again behind it."""

    async def main() -> None:
        service = VoiceActivity(FailingDetector())
        heard: list[int] = []
        stream = Mouth(service, lambda first, found, ends=(): heard.append(first))
        for first, level in ((0, 32_767), (1, 32_767), (2, 0)):
            stream.push(first, np.full((1, 512), level, dtype=np.int16))
            await judged(stream)
        stream.push(3, numbered(3, 1))
        await judged(stream)
        service.close()
        assert heard == [2, 3]
        assert stream.state[0] == 2.0

    asyncio.run(main())
    assert caplog.text.count("voice detection fails") == 1


def test_voice_activity_passes_over_what_was_overwritten_before_its_turn() -> None:
    """The ring went round while windows waited: they are counted, never heard as the sound that lies there now; what
    comes then is heard, and nothing before it is remembered."""

    async def main() -> None:
        service, heard = VoiceActivity(CountingDetector()), list[tuple[int, float]]()
        mouth = Mouth(
            service,
            lambda first, found, ends=(): heard.extend((first + at, p) for at, p in enumerate(found)),
            capacity=10 * 512,
        )
        mouth.push(0, numbered(0, 2))
        await judged(mouth)
        mouth.push(2, numbered(2, 6))
        mouth.sound.append(numbered(8, 7).reshape(-1))
        await judged(mouth)
        assert [window for window, _ in heard] == [0, 1]
        assert mouth.stream.passed_over == 6
        mouth.stream.push(range(8, 15))
        await judged(mouth)
        service.close()
        assert [(window, round(p * 1_000)) for window, p in heard[2:]] == [(at, at) for at in range(8, 15)]
        assert mouth.state[0] == 7

    asyncio.run(main())


def test_voice_activity_hears_nothing_of_a_copy_that_was_lapped() -> None:
    """The ring is written while the detector's thread copies: what it has then is a mixture, and is not judged."""

    class Lapped(SpeechBuffer):
        def read_into(self, start: int, view: Pcm) -> None:
            super().read_into(start, view)
            raise Overrun(start, start + 1)

    async def main() -> None:
        detector = CountingDetector()
        service, heard = VoiceActivity(detector), list[int]()
        sound = Lapped(100 * 512)
        stream = service.stream(lambda first, found, ends=(): heard.append(first), sound)
        sound.append(numbered(0, 4).reshape(-1))
        stream.push(range(4))
        while stream.backlog:  # noqa: ASYNC110 - nobody else tells of it
            await asyncio.sleep(0)
        service.close()
        assert (heard, stream.passed_over, detector.calls) == ([], 4, [])

    asyncio.run(main())


def test_voice_activity_keeps_few_extents_of_a_stream_that_waits() -> None:
    """A client sends far more than is judged, window by window: numbers of windows join, and all come out in order."""

    async def main() -> None:
        service, heard = VoiceActivity(CountingDetector()), list[int]()
        mouth = Mouth(service, lambda first, found, ends=(): heard.extend(range(first, first + len(found))))
        for window in range(5_000):
            mouth.push(window, numbered(window, 1))
        assert len(mouth.stream.pending) <= MOST_EXTENTS + 5_000 / MOST_WINDOWS_A_TICK + 1
        await judged(mouth)
        service.close()
        assert heard == list(range(5_000))

    asyncio.run(main())


@pytest.mark.real
def test_voice_activity_hears_a_tone_as_no_speech_with_the_real_model() -> None:
    """The real network runs behind the service."""

    async def main() -> None:
        service = VoiceActivity(SileroDetector())
        found: list[float] = []
        stream = Mouth(service, lambda first, probabilities, ends=(): found.extend(probabilities))
        tone = (8_000 * np.sin(np.arange(512 * 30) * 2 * np.pi * 440 / 16_000)).astype(np.int16)
        stream.push(0, tone.reshape(30, 512))
        await judged(stream)
        service.close()
        assert len(found) == 30
        assert max(found[5:]) < 0.5

    asyncio.run(main())


def test_voice_activity_of_others_goes_on_though_one_session_fails_over_its_answer() -> None:
    """One session raises at every answer, first in every batch: the other hears all of its windows."""

    class Broken(Exception):
        """Nothing foreseen."""

    async def main() -> None:
        before = FAULTS.counts().get("voice detection", 0)
        service = VoiceActivity(CountingDetector())
        got: list[int] = []

        def broken(first: int, heard: tuple[float, ...], ends: tuple[PhraseEnd, ...] = ()) -> None:
            raise Broken

        one = Mouth(service, broken)
        other = Mouth(
            service,
            lambda first, probabilities, ends=(): got.extend(range(first, first + len(probabilities))),
        )
        for first in range(0, 40, 2):
            one.push(first, numbered(first, 2))
            other.push(first, numbered(first, 2))
            async with asyncio.timeout(120):
                await judged(one, other)
        assert got == list(range(40))
        assert FAULTS.counts()["voice detection"] > before
        service.close()

    asyncio.run(main())
