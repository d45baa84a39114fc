"""Sound of calls over real peers: heard where it was spoken, played as long as it is wanted."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from modalities.audio.g711 import decode_mulaw
from orchestrator.peers import close_peer
from orchestrator.sessions.links import Link
from orchestrator.transports.rejoining import Back
from orchestrator.transports.rtp_order import SoundCodec
from tests.transports.calling import (
    Caller,
    Script,
    frames_of,
    loud_extents,
    switchboard,
    tone,
    until,
)
from tests.transports.fake_sessions import FakeSession


def test_sound_lies_where_it_was_spoken() -> None:
    """A tone of 0.2 s that begins 1 s after the first packet is heard there, to within 20 ms; so is one after a pause
    in which nothing was sent at all."""
    burst: list[bytes | str | None] = [*frames_of(tone(0.2))]
    story = [None] * 50 + burst + [None] * 15 + ["skip"] * 25 + burst + [None] * 25

    async def main() -> None:
        async with switchboard() as board:
            await board.dial(Script(story))
            await until(lambda: board.session.intake.position >= 2.4 * 16_000, "the sound")
            first, second = loud_extents(board.session)
            assert first == pytest.approx((1.0, 1.2), abs=0.02)
            assert second == pytest.approx((2.0, 2.2), abs=0.02)
            ((start, stop),) = board.session.ring.buffer.gaps
            assert (start / 16_000, stop / 16_000) == pytest.approx((1.5, 2.0), abs=0.021)

    asyncio.run(main())


def test_sound_of_a_client_without_opus_is_heard_and_answered() -> None:
    """PCMU both ways."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial(
                Script([None] * 10 + frames_of(tone(0.2)) + [None] * 10, SoundCodec.PCMU), codecs=("PCMU",)
            )
            assert "PCMU/8000" in caller.answer
            assert "opus" not in caller.answer
            await until(lambda: board.session.intake.position >= 0.6 * 16_000, "the sound")
            (extent,) = loud_extents(board.session)
            assert extent == pytest.approx((0.2, 0.4), abs=0.02)
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(0.2).tobytes())
            playout.finish("resp_1")
            await until(lambda: board.session.drained, "the drain")
            payloads = [payload for _, _, payload in caller.earpiece._packets]
            assert {len(payload) for payload in payloads} == {160}
            heard = decode_mulaw(b"".join(payloads)).astype(int)
            assert (np.abs(heard) > 4_000).sum() / 8_000 == pytest.approx(0.2 * 2 / 3, abs=0.03)

    asyncio.run(main())


def test_a_response_is_heard_counted_and_drained() -> None:
    """Half a second is played in full, once; the session learns of its end."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(0.5).tobytes())
            playout.finish("resp_1")
            await until(lambda: board.session.drained, "the drain")
            assert board.session.drained == ["resp_1"]
            assert playout.played_samples("resp_1") == 12_000
            await until(lambda: audible_s(caller) >= 0.49, "the sound")
            assert audible_s(caller) == pytest.approx(0.5, abs=0.02)

    asyncio.run(main())


def test_after_a_flush_at_most_40_ms_more_are_heard_than_were_played() -> None:
    """Ten seconds are queued and cut off: what leaves the track afterwards is silence, and time stamps go on."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(10).tobytes())
            await until(lambda: playout.played_samples("resp_1") >= 4_800, "some sound")
            playout.flush()
            played_s = playout.played_samples("resp_1") / 24_000
            received = caller.earpiece.count
            await until(lambda: caller.earpiece.count >= received + 25, "half a second more")
            assert played_s - 0.02 <= audible_s(caller) <= played_s + 0.04
            sound = caller.earpiece.sound()
            assert set(np.diff(sound.positions)) == {960}
            assert board.session.drained == []

    asyncio.run(main())


@pytest.mark.parametrize(("direction", "answered"), [("recvonly", "a=sendonly"), ("sendonly", "a=recvonly")])
def test_one_sided_offers_are_answered_accordingly(direction: str, answered: str) -> None:
    """Who only listens hears, who only speaks is heard; a response ends although nobody hears it."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial(Script(frames_of(tone(1))), direction=direction)
            assert answered in caller.answer
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(0.2).tobytes())
            playout.finish("resp_1")
            await until(lambda: board.session.drained, "the drain")
            if direction == "recvonly":
                await until(lambda: audible_s(caller) > 0.15, "the reply's sound")
                assert board.session.intake.position == 0
            else:
                await until(lambda: loud_extents(board.session), "the caller's sound")
                assert caller.earpiece.count == 0

    asyncio.run(main())


def test_two_calls_do_not_hear_each_other() -> None:
    """Each session gets its own caller's sound and events."""

    async def main() -> None:
        async with switchboard() as board:
            loud = await board.dial(Script(frames_of(tone(2))))
            quiet = await board.dial(Script())
            talking, silent = board.directory.sessions
            await until(lambda: talking.intake.position > 16_000 < silent.intake.position, "a second of each")
            assert loud_extents(talking)
            assert not loud_extents(silent)
            talking.emit("only.here")
            await until(lambda: "only.here" in loud.types(), "the event")
            assert "only.here" not in quiet.types()

    asyncio.run(main())


def test_a_session_that_ended_gets_no_more_sound() -> None:
    """From `close` on nothing is handed to its intake, although packets still come."""

    async def main() -> None:
        async with switchboard() as board:
            await board.dial(Script(frames_of(tone(5))))
            await until(lambda: board.session.intake.position > 3_000, "some sound")
            board.session.link.close(1000, "over")
            position = board.session.intake.position
            await until(lambda: board.door.calls == 0, "the call to be gone")
            assert board.session.intake.position == position

    asyncio.run(main())


def audible_s(caller: Caller) -> float:
    """How much sound over the noise floor a caller has received."""
    samples = caller.earpiece.sound().samples.astype(int)
    blocks = samples[: len(samples) // 240 * 240].reshape(-1, 240)  # 5 ms
    return float((np.abs(blocks).max(axis=1) > 500).sum() * 0.005)


@pytest.mark.parametrize("takes_over", [True, False])
def test_sound_that_was_sent_to_a_client_that_is_gone_was_not_played(takes_over: bool) -> None:
    """The client falls silent and the answer plays on to nobody: when another call takes over, or the line is given up,
    the session is told that it was not played."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial(Script([None] * 10 + ["skip"] * 5_000))
            await until(lambda: caller.microphone.sent > 50, "the silence")
            told: list[int] = []
            playout = board.session.link.playout
            assert playout is not None
            watch(board.session, lambda: told.append(playout.played_samples("resp_1")))
            playout.play("resp_1", tone(5).tobytes())
            await until(lambda: playout.played_samples("resp_1") > 24_000, "a second of the answer")
            if takes_over:
                await board.dial(back=Back(board.session, None))
            else:
                await close_peer(caller.peer)
            await until(lambda: told, "the session to hear of it")
            assert told[0] < 12_000

    asyncio.run(main())


def test_sound_that_was_sent_to_a_client_that_only_listens_was_played() -> None:
    """One that never sent sound is believed to hear."""

    async def main() -> None:
        async with switchboard() as board:
            listener = await board.dial(direction="recvonly")
            told: list[int] = []
            playout = board.session.link.playout
            assert playout is not None
            watch(board.session, lambda: told.append(playout.played_samples("resp_1")))
            playout.play("resp_1", tone(5).tobytes())
            await until(lambda: playout.played_samples("resp_1") > 24_000, "a second of the answer")
            await close_peer(listener.peer)
            await until(lambda: told, "the session to hear of it")
            assert told[0] > 24_000

    asyncio.run(main())


def watch(session: FakeSession, tell: Callable[[], None]) -> None:
    """Has `tell` called whenever a link comes to a session, or leaves it."""
    attach, detach = session.attach, session.detach

    def attached(link: Link, after: int | None = None) -> int:
        tell()
        return attach(link, after)

    def detached(link_id: str) -> None:
        tell()
        detach(link_id)

    session.attach, session.detach = attached, detached  # type: ignore[method-assign]
