"""The shared voice detector: fair, in order, one thread."""

import asyncio
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from modalities.adapters.silero import SileroDetector
from modalities.audio.phrase_end import PhraseEnd
from orchestrator.sessions.intake import DetectorStream
from orchestrator.workers.voice_activity import MOST_WINDOWS_A_TICK, VoiceActivity


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


async def judged(*streams: DetectorStream) -> None:
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
            service.stream(
                lambda first, found, ends=(), n=n: heard[n].extend(
                    (first + i, p) for i, p in enumerate(found)
                )
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
        file = service.stream(lambda first, found, ends=(): order.append("file"))
        live = service.stream(lambda first, found, ends=(): order.append("live"))
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
        stream = service.stream(lambda first, found, ends=(): None)
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
            name: service.stream(lambda first, judged, ends=(), name=name: found[name].extend(ends))
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
        stream = service.stream(lambda first, found, ends=(): heard.append(first))
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


@pytest.mark.real
def test_voice_activity_hears_a_tone_as_no_speech_with_the_real_model() -> None:
    """The real network runs behind the service."""

    async def main() -> None:
        service = VoiceActivity(SileroDetector())
        found: list[float] = []
        stream = service.stream(lambda first, probabilities, ends=(): found.extend(probabilities))
        tone = (8_000 * np.sin(np.arange(512 * 30) * 2 * np.pi * 440 / 16_000)).astype(np.int16)
        stream.push(0, tone.reshape(30, 512))
        await judged(stream)
        service.close()
        assert len(found) == 30
        assert max(found[5:]) < 0.5

    asyncio.run(main())
