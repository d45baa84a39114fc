"""The track of a call, on virtual time: paced, counted, silent at once after a flush."""

import asyncio

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from orchestrator.errors import Overloaded
from orchestrator.observability.faults import FAULTS
from orchestrator.sessions.links import Playout
from orchestrator.transports.playing import PlayoutTrack
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.transports.sound_codecs import OpusDecoder
from tests import virtual_time
from tests.transports.calling import tone


class Listener:
    """Takes frames off a track and decodes them."""

    def __init__(self, codec: SoundCodec = SoundCodec.OPUS, limit_s: float = 10) -> None:
        self.drained: list[str] = []
        self.track = PlayoutTrack(virtual_time.VirtualClock(), limit_s, self.drained.append)
        self.track.use(codec)
        self.times_s: list[float] = []
        self.stamps: list[int] = []
        self._decoder = OpusDecoder()

    async def hear(self, frames: int) -> list[bool]:
        """Returns which of the next frames can be heard."""
        heard = []
        for _ in range(frames):
            packet = await self.track.recv()
            self.times_s.append(asyncio.get_running_loop().time())
            assert packet.pts is not None
            self.stamps.append(packet.pts)
            pcm = self._decoder.decode(bytes(packet))
            heard.append(bool(np.abs(pcm.astype(int)).max(initial=0) > 200))
        return heard


def test_a_track_is_a_playout() -> None:
    """What the session sees of it."""
    playout: Playout = PlayoutTrack(virtual_time.VirtualClock(), 1, lambda _: None)
    assert playout.played_samples("unknown") == 0


def test_frames_leave_every_20_ms_whatever_the_receiver_does_between() -> None:
    """Deadlines are absolute and stamps continuous; a slow moment moves nothing."""

    async def main() -> None:
        listener = Listener()
        await listener.hear(10)
        await asyncio.sleep(0.03)
        await listener.hear(10)
        # The eleventh was due at 0.20 and waited for, the twelfth as well: they leave late, the rest in time.
        expected = [round(0.02 * number, 6) for number in range(20)]
        assert listener.times_s == pytest.approx([*expected[:10], 0.21, *expected[11:]])
        assert listener.stamps == [960 * number for number in range(20)]

    virtual_time.run(main())


def test_a_long_stop_skips_time_and_no_sound() -> None:
    """After a second of standing still the stamps are those of the clock, and the sound goes on where it was."""

    async def main() -> None:
        listener = Listener()
        listener.track.play("a", tone(1).tobytes())
        await listener.hear(10)
        await asyncio.sleep(1)
        await listener.hear(1)
        assert listener.stamps[-1] == pytest.approx(listener.times_s[-1] * 48_000, abs=960)
        assert listener.track.played_samples("a") == 11 * 480

    virtual_time.run(main())


def test_after_a_flush_at_most_the_frame_that_was_being_sent_is_heard() -> None:
    """Within 40 ms of `flush` the track is silent, stamps go on, and nothing drains."""

    async def main() -> None:
        listener = Listener()
        listener.track.play("a", tone(5).tobytes())
        assert all((await listener.hear(25))[1:])
        listener.track.flush()
        heard = await listener.hear(20)
        assert not any(heard[2:])
        assert listener.track.played_samples("a") == 25 * 480
        assert listener.stamps == [960 * number for number in range(45)]
        listener.track.finish("a")
        await listener.hear(5)
        assert listener.drained == []

    virtual_time.run(main())


def test_a_new_response_after_a_flush_is_heard_at_the_next_frame() -> None:
    """Nothing of the old one comes back."""

    async def main() -> None:
        listener = Listener()
        listener.track.play("a", tone(5).tobytes())
        await listener.hear(10)
        listener.track.flush()
        await listener.hear(30)
        listener.track.play("b", tone(0.1).tobytes())
        listener.track.finish("b")
        assert (await listener.hear(12)).count(True) in (5, 6)  # 100 ms, and the decoder's look-ahead
        assert listener.drained == ["b"]
        assert listener.track.played_samples("b") == 2_400

    virtual_time.run(main())


def test_the_end_of_a_response_is_told_when_its_last_frame_has_been_sent() -> None:
    """Not while it is on its way: 100 ms of sound drain at 100 ms."""

    async def main() -> None:
        listener = Listener()
        listener.track.play("a", tone(0.1).tobytes())
        listener.track.finish("a")
        await listener.hear(5)
        assert listener.drained == []
        await listener.hear(1)
        assert listener.drained == ["a"]
        assert listener.times_s[-1] == pytest.approx(0.1)

    virtual_time.run(main())


def test_more_than_the_bound_is_refused() -> None:
    """`Overloaded` comes through to the session."""
    track = PlayoutTrack(virtual_time.VirtualClock(), 1, lambda _: None)
    track.play("a", bytes(48_000))
    with pytest.raises(Overloaded):
        track.play("a", bytes(2))
    assert track.queued_s == 1


def test_g711_frames_are_160_bytes_of_its_own_clock() -> None:
    """Its stamps advance by 160."""

    async def main() -> None:
        listener = Listener(SoundCodec.PCMA)
        packets = [await listener.track.recv() for _ in range(5)]
        assert [len(bytes(packet)) for packet in packets] == [160] * 5
        assert [packet.pts for packet in packets] == [0, 160, 320, 480, 640]

    virtual_time.run(main())


def test_a_call_that_listens_to_nothing_plays_all_the_same() -> None:
    """Responses end in their own time; the track's end ends it."""

    async def main() -> None:
        listener = Listener()
        listener.track.run_dry()
        listener.track.play("a", tone(0.5).tobytes())
        listener.track.finish("a")
        await asyncio.sleep(0.49)
        assert listener.drained == []
        await asyncio.sleep(0.04)
        assert listener.drained == ["a"]
        listener.track.stop()
        await asyncio.sleep(0.1)
        assert len(asyncio.all_tasks()) == 1

    virtual_time.run(main())


def test_a_stopped_track_ends_its_sender() -> None:
    """aiortc is told in its own terms."""

    async def main() -> None:
        listener = Listener()
        listener.track.stop()
        with pytest.raises(MediaStreamError):
            await listener.track.recv()

    virtual_time.run(main())


def test_a_track_with_nothing_to_say_rests_and_its_stamps_stay_true() -> None:
    """After two seconds of silence an empty frame every 400 ms, as Opus at rest; each stamp is that of its time."""

    async def main() -> None:
        listener = Listener()
        await listener.hear(100)
        packets = [await listener.track.recv() for _ in range(5)]
        now_s = asyncio.get_running_loop().time()
        assert [len(bytes(packet)) for packet in packets] == [1] * 5
        assert [packet.pts for packet in packets] == [960 * (100 + 20 * number) for number in range(5)]
        assert now_s == pytest.approx((packets[-1].pts or 0) / 48_000)

    virtual_time.run(main())


def test_sound_wakes_a_resting_track_at_once() -> None:
    """Its first frame leaves when it comes, wherever in the rest that is; then they are 20 ms apart, all heard."""

    async def main() -> None:
        listener = Listener()
        await listener.hear(101)
        rested_s = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_later(0.133, listener.track.play, "a", tone(0.2).tobytes())
        heard = await listener.hear(10)
        assert listener.times_s[101] == pytest.approx(rested_s + 0.133)
        assert listener.times_s[102:111] == pytest.approx([rested_s + 0.14 + 0.02 * n for n in range(9)])
        assert all(heard[1:])
        assert np.diff(listener.stamps[101:]).tolist() == [960] * 9
        assert listener.stamps[101] / 48_000 == pytest.approx(listener.times_s[101], abs=0.02)
        assert listener.track.played_samples("a") == 4_800

    virtual_time.run(main())


def test_what_happens_in_the_session_wakes_a_resting_track() -> None:
    """A player gets silence for two seconds from then on, and is in step when the reply comes."""

    async def main() -> None:
        listener = Listener()
        await listener.hear(101)
        rested_s = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_later(0.133, listener.track.expect_sound)
        packets = [await listener.track.recv() for _ in range(101)]
        assert [len(bytes(packet)) > 1 for packet in packets] == [True] * 100 + [False]
        now_s = asyncio.get_running_loop().time()
        assert now_s == pytest.approx(rested_s + 0.12 + 100 * 0.02)
        assert packets[-1].pts == round(now_s * 48_000)

    virtual_time.run(main())


def test_a_response_without_sound_is_told_by_a_resting_track_too() -> None:
    """Whoever waits for its end does not wait for the next frame."""

    async def main() -> None:
        listener = Listener()
        await listener.hear(101)
        rested_s = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_later(0.1, listener.track.finish, "a")
        await listener.hear(1)
        assert listener.drained == ["a"]
        assert listener.times_s[-1] == pytest.approx(rested_s + 0.1)

    virtual_time.run(main())


@pytest.mark.parametrize("codec", [SoundCodec.PCMU, SoundCodec.OPUS])
def test_a_peer_that_wants_all_silence_gets_it(codec: SoundCodec) -> None:
    """G.711 has no other, and of Opus a peer may ask for it."""

    async def main() -> None:
        track = PlayoutTrack(virtual_time.VirtualClock(), 1, lambda _: None)
        track.use(codec, may_rest=codec is not SoundCodec.OPUS)
        for _ in range(200):
            await track.recv()
        assert asyncio.get_running_loop().time() == pytest.approx(199 * 0.02)

    virtual_time.run(main())


def test_a_call_plays_on_though_who_is_told_of_an_end_fails() -> None:
    """The end of a response is told to a session that raises: the next response is heard all the same."""

    def broken(_: str) -> None:
        raise KeyError("nothing foreseen")

    async def main() -> None:
        before = FAULTS.counts().get("call playout", 0)
        listener = Listener()
        listener.track._drained = broken
        for response in ("one", "two"):
            listener.track.play(response, tone(0.1).tobytes())
            listener.track.finish(response)
            assert any(await listener.hear(10))
        assert FAULTS.counts()["call playout"] == before + 2

    virtual_time.run(main())
