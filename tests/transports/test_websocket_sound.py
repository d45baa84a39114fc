"""Sound over a WebSocket, both ways."""

import asyncio
import base64
import contextlib
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from modalities.audio import g711
from orchestrator.transports.server import MAX_MESSAGE_BYTES
from orchestrator.wire.client import CommitAudio
from tests.transports.running import Running, against, closed, heard, open_session, say


def pcm(samples: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(samples.astype("<i2").tobytes()).decode()


def sine(rate_hz: int, length_s: float = 0.5) -> np.ndarray[Any, Any]:
    return np.round(8_000 * np.sin(2 * np.pi * 440 * np.arange(int(rate_hz * length_s)) / rate_hz))


def test_link_resamples_appended_pcm_as_one_stream() -> None:
    """Appends cut anywhere, even inside a sample, arrive at 16 kHz as the same sine, complete at the commit."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            sound = sine(24_000).astype("<i2").tobytes()
            for start in range(0, len(sound), 961):
                await say(
                    link,
                    "input_audio_buffer.append",
                    audio=base64.b64encode(sound[start : start + 961]).decode(),
                )
            await say(link, "input_audio_buffer.commit")
            await session.wait_for(1)
            assert isinstance(session.submitted[0], CommitAudio)
            taken = np.array(session.intake.sound)
            expected = sine(16_000)
            assert len(taken) == len(expected)
            inside = slice(200, -200)
            assert np.abs(taken[inside] - expected[inside]).max() < 8

    against(test)


@pytest.mark.parametrize("law", ["audio/pcmu", "audio/pcma"])
def test_link_reads_g711_where_the_session_says_so(law: str) -> None:
    """The input format of the session decides how bytes are read, from the update on."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            await say(
                link,
                "session.update",
                session={"type": "realtime", "audio": {"input": {"format": {"type": law}}}},
            )
            encode = g711.encode_mulaw if law == "audio/pcmu" else g711.encode_alaw
            coded = encode(sine(8_000).astype(np.int16))
            await session.wait_for(1)
            await say(link, "input_audio_buffer.append", audio=base64.b64encode(coded).decode())
            await say(link, "input_audio_buffer.commit")
            await session.wait_for(2)
            taken = np.array(session.intake.sound)
            expected = sine(16_000)
            assert len(taken) == len(expected)
            assert np.abs(taken[400:-400] - expected[400:-400]).mean() < 200

    against(test)


def test_link_answers_a_full_buffer_with_an_error() -> None:
    """A manual buffer that would overflow refuses the append by name; the link lives on."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            session.intake.bound = 10
            await say(link, "input_audio_buffer.append", event_id="e1", audio=pcm(sine(24_000)))
            error = (await heard(link))["error"]
            assert (error["code"], error["event_id"]) == ("rate_limit_exceeded", "e1")

    against(test)


def test_link_commits_a_full_buffer() -> None:
    """The resampler's last milliseconds find no room: the commit that empties the buffer goes through all the same."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            await say(link, "input_audio_buffer.append", audio=pcm(sine(24_000)))
            await say(link, "input_audio_buffer.clear")
            await session.wait_for(1)
            await say(link, "input_audio_buffer.append", audio=pcm(sine(24_000, 0.1)))
            session.intake.bound = len(session.intake.sound)
            await say(link, "input_audio_buffer.commit")
            await session.wait_for(2)
            assert isinstance(session.submitted[1], CommitAudio)

    against(test)


def test_link_is_read_no_faster_than_its_sound_is_listened_to() -> None:
    """Sound that ran ahead of the detector waits in the socket; nothing of it is lost once there is time for it."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            session.intake.is_behind = True
            await say(link, "input_audio_buffer.append", audio=pcm(sine(24_000)))
            await say(link, "input_audio_buffer.commit")
            await asyncio.sleep(0.1)
            assert session.intake.sound == []
            session.intake.is_behind = False
            await session.wait_for(1)
            assert len(session.intake.sound) == 8_000

    against(test)


def test_link_takes_an_append_of_fifteen_megabytes() -> None:
    """The largest legal append (20 MiB of base64) arrives whole, and others are served while it is taken."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            session.intake.bound = 20_000_000
            sound = base64.b64encode(bytes(15 * 2**20)).decode()
            await say(link, "input_audio_buffer.append", audio=sound)
            await say(link, "response.create")
            await session.wait_for(1)
            assert session.intake.position > 15 * 2**20 // 2 * 2 // 3 - 100

    against(test)


def test_link_refuses_a_bigger_append_and_closes_on_a_bigger_message() -> None:
    """Over 15 MiB the append is refused; a message over the limit ends the link with 1009."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            await open_session(link, running)
            await say(link, "input_audio_buffer.append", audio="A" * (20 * 2**20 + 4))
            assert (await heard(link))["error"]["param"] == "audio"
            with contextlib.suppress(ConnectionClosed):
                await link.send("x" * (MAX_MESSAGE_BYTES + 1))
            assert (await closed(link))[0] == 1009

    against(test)


def test_link_sends_sound_as_base64_deltas() -> None:
    """Logged PCM becomes `response.output_audio.delta` with all ids and the log's event id."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            session.speak(b"\x01\x00\x02\x00")
            delta = await heard(link)
            assert delta == {
                "event_id": session.event_id(1),
                "type": "response.output_audio.delta",
                "response_id": "resp_1",
                "item_id": "item_1",
                "output_index": 0,
                "content_index": 0,
                "delta": base64.b64encode(b"\x01\x00\x02\x00").decode(),
            }

    against(test)


def test_link_sends_g711_complete_before_the_sound_is_done() -> None:
    """In G.711 the deltas together are as long as the sound, the last of them before `response.output_audio.done`, and
    every event id is different."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            output = {"format": {"type": "audio/pcmu"}}
            await say(link, "session.update", session={"type": "realtime", "audio": {"output": output}})
            await session.wait_for(1)
            sound = sine(24_000).astype("<i2").tobytes()
            for start in range(0, len(sound), 9_600):
                session.speak(sound[start : start + 9_600])
            session.speak(b"", last=True)
            session.emit("response.output_audio.done")
            events: list[dict[str, Any]] = []
            while not events or events[-1]["type"] != "response.output_audio.done":
                events.append(await heard(link))
            coded = b"".join(base64.b64decode(event["delta"]) for event in events[:-1])
            assert len(coded) == len(sound) // 2 // 3
            linear = g711.decode_mulaw(coded).astype(int)
            expected = sine(8_000)
            assert np.abs(linear[100:-100] - expected[100:-100]).mean() < 200
            assert len({event["event_id"] for event in events}) == len(events)

    against(test)
