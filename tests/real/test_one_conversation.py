"""One conversation over several doors, on the real models."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect

from modalities.adapters.registry import build
from modalities.audio import g711
from modalities.audio.resample import Resampler
from modalities.ports import Pcm
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.text_socket import RealtimeSocket

pytestmark = pytest.mark.real

WITHIN_S = 60
QUESTION = "What is the capital of France?"
Event = dict[str, Any]


@pytest.fixture(scope="module")
def spoken() -> tuple[int, Pcm]:
    """The question, spoken: its rate and its sound."""
    voice = build("speech", "piper", {"variation": 0.0})
    return voice.sample_rate_hz, np.concatenate(list(voice.synthesize(QUESTION)))


def at(rate_hz: int, spoken: tuple[int, Pcm]) -> Pcm:
    resampler = Resampler(spoken[0], rate_hz)
    return np.concatenate((resampler.feed(spoken[1]), resampler.flush()))


async def until(events: AsyncIterator[Event], wanted: str) -> list[Event]:
    """Returns the events up to the wanted one; an `error` event is a failure."""
    seen: list[Event] = []
    async with asyncio.timeout(WITHIN_S):
        async for event in events:
            assert event["type"] != "error", event
            seen.append(event)
            if event["type"] == wanted:
                return seen
    raise AssertionError(f"no {wanted} in {[event['type'] for event in seen]}")


def typed(text: str) -> Event:
    content = [{"type": "input_text", "text": text}]
    return {
        "type": "conversation.item.create",
        "item": {"type": "message", "role": "user", "content": content},
    }


def texts(events: list[Event], type: str, key: str) -> list[str]:
    return [event[key] for event in events if event["type"].endswith(type)]


def test_a_call_and_a_socket_are_one_conversation(server_url: str, spoken: tuple[int, Pcm]) -> None:
    """Voice here, text there: both links see every item once, and the typed question is answered by the voice."""
    session = {
        "type": "realtime",
        "audio": {"input": {"transcription": {"model": "default"}}},
        "chorale": {"typed_turns": True},
    }

    async def main() -> None:
        async with (
            RealtimeCall.connect(server_url, session=session) as call,
            RealtimeSocket.connect(server_url, call_id=call.call_id) as socket,
        ):
            voice, text = call.events(), socket.events()
            saying = asyncio.create_task(call.say(at(48_000, spoken), lead_s=0.5, tail_s=1.0))
            on_call = await until(voice, "output_audio_buffer.stopped")
            on_socket = await until(text, "output_audio_buffer.stopped")
            await saying
            await socket.send(typed("Is it a big city?"))
            on_call += await until(voice, "output_audio_buffer.stopped")
            on_socket += await until(text, "output_audio_buffer.stopped")
            for events in (on_call, on_socket):
                items = [event["item"] for event in events if event["type"] == "conversation.item.done"]
                assert [item["role"] for item in items] == ["user", "assistant", "user", "assistant"]
            assert (
                "capital of France" in texts(on_call, "input_audio_transcription.completed", "transcript")[0]
            )
            shared = [event["event_id"] for event in on_socket if event["type"] != "session.created"]
            assert shared == [event["event_id"] for event in on_call if event["type"] != "session.created"]
            assert np.abs(call.received_pcm().samples.astype(np.int32)).max() > 1_000

    asyncio.run(main())


@pytest.mark.parametrize("law", ["audio/pcmu", "audio/pcma"])
def test_a_telephone_talks_in_g711(server_url: str, spoken: tuple[int, Pcm], law: str) -> None:
    """8 kHz logarithmic sound both ways: understood, and answered with sound that is speech when decoded."""
    encode, decode = (
        (g711.encode_mulaw, g711.decode_mulaw)
        if law == "audio/pcmu"
        else (g711.encode_alaw, g711.decode_alaw)
    )
    audio = {
        "input": {"format": {"type": law}, "transcription": {"model": "default"}, "turn_detection": None},
        "output": {"format": {"type": law}},
    }

    async def main() -> None:
        async with RealtimeSocket.connect(server_url) as socket:
            events = socket.events()
            await socket.send({"type": "session.update", "session": {"type": "realtime", "audio": audio}})
            sound = encode(at(8_000, spoken))
            for start in range(0, len(sound), 1_600):
                piece = base64.b64encode(sound[start : start + 1_600]).decode()
                await socket.send({"type": "input_audio_buffer.append", "audio": piece})
            await socket.send({"type": "input_audio_buffer.commit"})
            await socket.send({"type": "response.create"})
            seen = await until(events, "response.done")
            if not texts(seen, "input_audio_transcription.completed", "transcript"):
                seen += await until(events, "conversation.item.input_audio_transcription.completed")
            assert "capital of France" in texts(seen, "input_audio_transcription.completed", "transcript")[0]
            reply = b"".join(base64.b64decode(piece) for piece in texts(seen, "output_audio.delta", "delta"))
            heard = decode(reply)
            (words,) = texts(seen, "output_audio_transcript.done", "transcript")
            assert np.abs(heard.astype(np.int32)).max() > 1_000
            assert 0.02 < len(heard) / 8_000 / len(words) < 0.2, "seconds of speech for each character"

    asyncio.run(main())


def test_a_client_comes_back_to_its_session(server_url: str) -> None:
    """The socket breaks; with the session's secret another goes on: same session, same history, live events."""

    async def ask(socket: ClientConnection, text: str) -> list[Event]:
        await socket.send(json.dumps(typed(text)))
        seen: list[Event] = []
        while not seen or seen[-1]["type"] != "response.done":
            seen.append(json.loads(await socket.recv()))
        return seen

    async def main() -> None:
        door = server_url.replace("http", "ws") + "/v1/realtime"
        update = {"type": "realtime", "output_modalities": ["text"], "chorale": {"typed_turns": True}}
        async with asyncio.timeout(WITHIN_S):
            async with connect(door, proxy=None) as first:
                await first.send(json.dumps({"type": "session.update", "session": update}))
                seen = await ask(first, "My name is Anna.")
                session = next(e["session"] for e in seen if e["type"] == "session.updated")
                first.transport.abort()
            place = f"{door}?session_id={session['id']}&secret={session['chorale']['secret']}"
            async with connect(place, proxy=None) as second:
                created = json.loads(await second.recv())
                assert (created["type"], created["session"]["id"]) == ("session.created", session["id"])
                seen = await ask(second, "What is my name?")
                # Whoever types on within 300 ms has not read the answer: it may be taken back first.
                question = next(event for event in seen if event["type"] == "conversation.item.added")
                assert question["previous_item_id"] is not None, "the history is still there"
                assert seen[-1]["response"]["status"] == "completed"

    asyncio.run(main())
