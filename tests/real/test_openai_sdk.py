"""The `openai` package's own realtime client, unchanged, against a server with its real models."""

import asyncio
import base64
import json
from typing import Any

import numpy as np
import pytest
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from modalities.adapters.registry import build
from modalities.audio.resample import Resampler
from modalities.ports import Pcm
from orchestrator.clients.microphone import Microphone

pytestmark = pytest.mark.real

WITHIN_S = 60
WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


@pytest.fixture(scope="module")
def question() -> Pcm:
    """A spoken question, 24 kHz, with a second of silence behind it."""
    voice = build("speech", "piper", {"variation": 0.0})
    resampler = Resampler(voice.sample_rate_hz, 24_000)
    pieces = [resampler.feed(piece) for piece in voice.synthesize("What is the capital of France?")]
    return np.concatenate((*pieces, resampler.flush(), np.zeros(24_000, dtype=np.int16)))


def client(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(
        api_key="none", base_url=f"{url}/v1", websocket_base_url=f"{url}/v1".replace("http", "ws")
    )


async def until(connection: AsyncRealtimeConnection, *wanted: str) -> list[Any]:
    """Returns the events up to the first of a wanted type. An `error` event is a failure, unless it is wanted."""
    events: list[Any] = []
    async with asyncio.timeout(WITHIN_S):
        async for event in connection:
            events.append(event)
            if event.type in wanted:
                return events
            assert event.type != "error", event
    raise AssertionError(f"the connection ended before {wanted}")


async def send(connection: AsyncRealtimeConnection, sound: Pcm) -> None:
    """Sends sound in real time and then silence for ever, as a microphone does."""
    start = 0
    while True:
        piece = np.zeros(2_400, dtype="<i2")
        said = sound[start : start + 2_400]
        piece[: len(said)] = said
        await connection.input_audio_buffer.append(audio=base64.b64encode(piece.tobytes()).decode())
        start += 2_400
        await asyncio.sleep(0.1)


async def ask(connection: AsyncRealtimeConnection, text: str) -> None:
    await connection.conversation.item.create(
        item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    )


def test_sdk_takes_a_text_turn(server_url: str) -> None:
    """Deltas join to the reply's text; response.done has the item and its usage."""

    async def main() -> None:
        async with client(server_url).realtime.connect(model="chorale") as connection:
            await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            await ask(connection, "What is the capital of France?")
            await connection.response.create()
            events = await until(connection, "response.done")
            text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
            response = events[-1].response
            assert response.status == "completed"
            assert response.output[0].content[0].text == text
            assert "Paris" in text
            assert response.usage.total_tokens > 10

    asyncio.run(main())


def test_sdk_takes_an_audio_turn(server_url: str, question: Pcm) -> None:
    """Spoken in real time: transcript, spoken answer with sound that is not silence."""

    async def main() -> None:
        async with client(server_url).realtime.connect(model="chorale") as connection:
            await connection.session.update(
                session={
                    "type": "realtime",
                    "audio": {
                        "input": {
                            "transcription": {"model": "whisper-1"},
                            "turn_detection": {"type": "semantic_vad"},
                        }
                    },
                }
            )
            microphone = asyncio.create_task(send(connection, question))
            events = await until(connection, "response.done")
            transcripts = [
                e.transcript for e in events if e.type.endswith("input_audio_transcription.completed")
            ]
            assert len(transcripts) == 1
            assert "capital of France" in transcripts[0]
            sound = b"".join(
                base64.b64decode(e.delta) for e in events if e.type == "response.output_audio.delta"
            )
            assert np.abs(np.frombuffer(sound, dtype="<i2")).max() > 1_000
            assert events[-1].response.output[0].content[0].transcript
            microphone.cancel()

    asyncio.run(main())


def test_sdk_gets_a_required_tool_call_and_its_answer(server_url: str) -> None:
    """`tool_choice: required` calls with valid arguments; the output is answered after another response.create."""

    async def main() -> None:
        async with client(server_url).realtime.connect(model="chorale") as connection:
            await connection.session.update(
                session={
                    "type": "realtime",
                    "output_modalities": ["text"],
                    "tools": [WEATHER],  # type: ignore[list-item]
                    "tool_choice": "required",
                }
            )
            await ask(connection, "What is the weather in Paris?")
            await connection.response.create()
            events = await until(connection, "response.done")
            call = events[-1].response.output[0]
            assert (call.type, call.name) == ("function_call", "get_weather")
            assert set(json.loads(call.arguments)) == {"city"}
            await connection.conversation.item.create(
                item={
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": "It is sunny, 21 degrees.",
                }
            )
            await connection.response.create(response={"tool_choice": "none"})
            events = await until(connection, "response.done")
            assert events[-1].response.status == "completed"
            assert events[-1].response.output[0].type == "message"

    asyncio.run(main())


def test_sdk_cancels_a_response(server_url: str) -> None:
    """Cancel gives one response.done with its reason; the session answers again."""

    async def main() -> None:
        async with client(server_url).realtime.connect(model="chorale") as connection:
            await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            await ask(connection, "Tell me a very long story about a king and his cat.")
            await connection.response.create()
            await until(connection, "response.output_text.delta")
            await connection.response.cancel()
            events = await until(connection, "response.done")
            assert events[-1].response.status == "cancelled"
            assert events[-1].response.status_details.reason == "client_cancelled"
            await ask(connection, "What is the capital of France?")
            await connection.response.create()
            events = await until(connection, "response.done")
            assert events[-1].response.status == "completed"

    asyncio.run(main())


def test_sdk_truncates_a_spoken_reply(server_url: str) -> None:
    """Truncate is echoed, and the item's transcript really ends there."""

    async def main() -> None:
        async with client(server_url).realtime.connect(model="chorale") as connection:
            await ask(connection, "What is the capital of France?")
            await connection.response.create()
            events = await until(connection, "response.done")
            item = events[-1].response.output[0]
            await connection.conversation.item.truncate(item_id=item.id, content_index=0, audio_end_ms=400)
            (truncated,) = (await until(connection, "conversation.item.truncated"))[-1:]
            assert (truncated.item_id, truncated.audio_end_ms) == (item.id, 400)
            await connection.conversation.item.retrieve(item_id=item.id)
            (retrieved,) = (await until(connection, "conversation.item.retrieved"))[-1:]
            kept = retrieved.item.content[0].transcript
            assert item.content[0].transcript.startswith(kept)
            assert len(kept) < len(item.content[0].transcript)

    asyncio.run(main())


def test_sdk_opens_a_call_over_webrtc(server_url: str, question: Pcm) -> None:
    """`calls.create` with an aiortc peer: 201 with Location, transcript, a reply whose sound arrives on the track."""

    async def main() -> None:
        peer = RTCPeerConnection()
        microphone = Microphone()
        peer.addTrack(microphone)
        channel = peer.createDataChannel("oai-events")
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1_000)
        channel.on("message", lambda message: events.put_nowait(json.loads(message)))
        loudest = 0

        async def listen(track: MediaStreamTrack) -> None:
            nonlocal loudest
            while True:
                frame = await track.recv()
                loudest = max(loudest, int(np.abs(frame.to_ndarray().astype(np.int32)).max()))  # type: ignore[union-attr]

        listeners: list[asyncio.Task[None]] = []
        peer.on("track", lambda track: listeners.append(asyncio.create_task(listen(track))))
        await peer.setLocalDescription(await peer.createOffer())
        async with client(server_url) as sdk:
            answer = await sdk.realtime.calls.create(
                sdp=peer.localDescription.sdp,
                session={"type": "realtime", "audio": {"input": {"transcription": {"model": "whisper-1"}}}},
            )
        assert answer.response.status_code == 201
        assert answer.response.headers["location"].startswith("/v1/realtime/calls/rtc_")
        await peer.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
        seen: list[dict[str, Any]] = []
        async with asyncio.timeout(WITHIN_S):
            seen.append(await events.get())
            resampler = Resampler(24_000, 48_000)
            microphone.say(resampler.feed(question))
            while seen[-1]["type"] != "output_audio_buffer.stopped":
                seen.append(await events.get())
        await peer.close()
        for listener in listeners:
            listener.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)
        types = [event["type"] for event in seen]
        assert types[0] == "session.created"
        transcript = next(
            e["transcript"] for e in seen if e["type"].endswith("input_audio_transcription.completed")
        )
        assert "capital of France" in transcript
        assert types.index("output_audio_buffer.started") < types.index("response.done")
        assert "response.output_audio.delta" not in types
        assert loudest > 1_000

    asyncio.run(main())
