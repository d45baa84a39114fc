"""The `openai` package's realtime client."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from openai import AsyncOpenAI

from tests.third_party import requests_python
from tests.third_party.stage import (
    HEARING,
    LISTENS_S,
    STORY,
    TEXT,
    TOOL,
    WEATHER,
    Complaints,
    Stage,
    must,
    peak,
    play,
)


@asynccontextmanager
async def connected(stage: Stage, **session: Any) -> AsyncIterator[Any]:
    """Yields a connection whose session is as asked for."""
    client = AsyncOpenAI(
        api_key="none", base_url=stage.url, websocket_base_url=stage.url.replace("http", "ws")
    )
    whole: Any = {"type": "realtime", **session}
    async with client, client.realtime.connect(model="chorale") as connection:
        await connection.session.update(session=whole)
        yield connection


async def said(connection: Any, *last: str) -> list[Any]:
    """Returns the events up to the first of these types."""
    events = []
    async for event in connection:
        events.append(event)
        must(event.type != "error" or "error" in last, f"{event}")
        if event.type in last:
            return events
    raise ConnectionError("the connection ended")


async def meanwhile(connection: Any, seconds: float) -> list[Any]:
    """Returns the events of so many seconds."""
    events = []
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                events.append(await connection.recv())
    return events


def typed(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def sound(events: list[Any]) -> bytes:
    return b"".join(base64.b64decode(e.delta) for e in events if e.type == "response.output_audio.delta")


@asynccontextmanager
async def speaking(stage: Stage, connection: Any) -> AsyncIterator[None]:
    """The user says the question meanwhile."""

    async def send(piece: bytes) -> None:
        await connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())

    microphone = asyncio.create_task(stage.speak(send))
    try:
        yield
    finally:
        microphone.cancel()
        with suppress(asyncio.CancelledError):
            await microphone


async def text(stage: Stage) -> str:
    async with connected(stage, output_modalities=["text"]) as connection:
        await connection.conversation.item.create(item=typed(TEXT))
        await connection.response.create()
        events = await said(connection, "response.done")
        written = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        must(written, "no text")
        must(events[-1].response.output[0].content[0].text == written, "deltas are not the text")
        must(events[-1].response.usage.output_tokens > 0, "no usage")
        return written


async def audio(stage: Stage) -> str:
    async with connected(stage, audio={"input": HEARING}) as connection, speaking(stage, connection):
        events = await said(connection, "response.done")
        heard = [e.transcript for e in events if e.type.endswith("input_audio_transcription.completed")]
        must(len(heard) == 1 and "capital of France" in heard[0], f"heard {heard}")
        must(peak(sound(events)) > 1_000, "silence")
        return f"{heard[0]} / {events[-1].response.output[0].content[0].transcript}"


async def tool(stage: Stage) -> str:
    async with connected(
        stage, output_modalities=["text"], tools=[WEATHER], tool_choice="auto"
    ) as connection:
        await connection.conversation.item.create(item=typed(TOOL))
        await connection.response.create()
        done = (await said(connection, "response.done"))[-1].response
        call = done.output[-1]
        must((call.type, call.name) == ("function_call", "get_weather"), f"no call: {call}")
        must(json.loads(call.arguments) == {"city": "Paris"}, call.arguments)
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny, 21 degrees"}
        await connection.conversation.item.create(item=output)
        await connection.response.create()
        events = await said(connection, "response.done")
        answer = events[-1].response.output[0].content[0].text
        must("sunny" in answer, answer)
        return f"{call.arguments} / {answer}"


async def interrupt(stage: Stage) -> str:
    async with connected(stage, audio={"input": HEARING}) as connection:
        await connection.conversation.item.create(item=typed(STORY))
        await connection.response.create()
        first = await said(connection, "response.output_audio.delta")
        old = first[-1]
        first += await meanwhile(connection, LISTENS_S)
        async with speaking(stage, connection):
            events = await said(connection, "response.done")
            done = events[-1].response
            must(done.status_details.reason == "turn_detected", f"{done.status_details}")
            played_ms = int(LISTENS_S * 1_000)
            truncate = connection.conversation.item.truncate
            await truncate(item_id=old.item_id, content_index=0, audio_end_ms=played_ms)
            await connection.conversation.item.retrieve(item_id=old.item_id)
            after = await said(connection, "response.done")
        must(not any(getattr(e, "response_id", "") == old.response_id for e in after), "the old one goes on")
        kept = next(e.item for e in after if e.type == "conversation.item.retrieved").content[0].transcript
        full = done.output[0].content[0].transcript
        must(len(kept) < len(full) and full.startswith(kept.rstrip()), f"kept {len(kept)} of {len(full)}")
        answer = after[-1].response.output[0].content[0].transcript
        must("capital of France" in answer, answer)
        return f"kept {len(kept)} of {len(full)} characters / {answer}"


async def again(stage: Stage) -> str:
    """Connecting anew, cancelling, and going on."""
    await text(stage)
    async with connected(stage, output_modalities=["text"]) as connection:
        await connection.conversation.item.create(item=typed("Tell me a very long story about a king."))
        await connection.response.create()
        await said(connection, "response.output_text.delta")
        await connection.response.cancel()
        done = (await said(connection, "response.done"))[-1].response
        must(done.status_details.reason == "client_cancelled", f"{done.status_details}")
        await connection.conversation.item.create(item=typed(TEXT))
        await connection.response.create()
        done = (await said(connection, "response.done"))[-1].response
        must(done.status == "completed", f"{done.status}")
        return f"{done.output[0].content[0].text}"


async def resume(stage: Stage) -> str:
    """The line is cut in a reply; the package connects again by itself, and is told where the session is."""
    session: dict[str, str] = {}
    came: list[int] = []

    def back(event: Any) -> Any:
        came.append(event.close_code)
        return {
            "extra_query": {"session_id": session["id"], "after": session["last"]},
            "extra_headers": {"Chorale-Session-Secret": session["secret"]},
        }

    client = AsyncOpenAI(
        api_key="none", base_url=stage.url, websocket_base_url=stage.url.replace("http", "ws")
    )
    connecting: Any = client.realtime.connect(model="chorale", on_reconnecting=back, initial_delay=0.05)
    async with client, connecting as connection:
        shown = connection._connection.response.headers  # as they came with the upgrade
        session.update(id=shown["Chorale-Session-Id"], secret=shown["Chorale-Session-Secret"])
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        await connection.conversation.item.create(item=typed("Tell me a very long story about a king."))
        await connection.response.create(response={"max_output_tokens": 200})
        events: list[Any] = []
        cuts = 0
        async for event in connection:
            events.append(event)
            if event.type != "session.created":  # which each connection begins with, and nobody else is told
                session["last"] = event.event_id
            if event.type == "response.done":
                break
            if event.type == "response.output_text.delta" and cuts == len(came) < 2:
                cuts += 1
                connection._connection.transport.abort()
    written = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    must(came == [1006, 1006], f"it came back {came}")
    must(events[-1].response.output[0].content[0].text == written, "something was lost or came twice")
    ids = [event.event_id for event in events if event.type != "session.created"]
    must(len(set(ids)) == len(ids), "an event came twice")
    return f"{len(came)} cuts, {len(written)} characters"


async def odd(stage: Stage) -> str:
    """Fields nobody knows, G.711, odd sizes, large tools, a history, overrides, and a response out of band."""
    tools = [{**WEATHER, "name": f"tool_{n}", "description": "d" * 2_000} for n in range(60)]
    vad = {"type": "semantic_vad", "eagerness": "high", "create_response": False, "model_version": "x"}
    hearing = {**HEARING, "format": {"type": "audio/pcmu"}, "turn_detection": vad, "nobody": 1}
    spoken = {"format": {"type": "audio/pcma"}, "voice": "marin"}
    async with connected(
        stage, tools=tools, tool_choice="none", future={"x": 1}, audio={"input": hearing, "output": spoken}
    ) as connection:
        updated = (await said(connection, "session.updated"))[-1].session
        must(updated.audio.input.turn_detection.eagerness == "high", "eagerness is not echoed")
        must(updated.audio.input.format.type == "audio/pcmu", "the format is not echoed")
        must(len(updated.tools) == 60, "tools are not echoed")
        for size in (1, 333, 4_801, 7):
            await connection.input_audio_buffer.append(audio=base64.b64encode(b"\xff" * size).decode())
        await connection.input_audio_buffer.clear()
        await said(connection, "input_audio_buffer.cleared")
        history = [
            {"role": "system", "content": [{"type": "input_text", "text": "The user is called Ada."}]},
            {"role": "user", "content": [{"type": "input_text", "text": "I live in Rome."}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
        ]
        previous = "root"
        for number, message in enumerate(history):
            item = {"id": f"mine_{number}", "type": "message", **message}
            await connection.conversation.item.create(item=item, previous_item_id=previous)
            done = (await said(connection, "conversation.item.done"))[-1]
            must(done.item.id == item["id"], "the id is not kept")
            previous = done.item.id
        aside = {"conversation": "none", "output_modalities": ["text"], "metadata": {"topic": "aside"}}
        reference = {"type": "item_reference", "id": "mine_1"}
        await connection.response.create(
            response={**aside, "input": [reference, typed("Which city?")], "instructions": "One word."}
        )
        done = (await said(connection, "response.done"))[-1].response
        must((done.conversation_id, done.metadata) == (None, {"topic": "aside"}), f"{done}")
        await connection.response.create(
            response={"max_output_tokens": 20, "tools": [], "instructions": "Hi."}
        )
        events = await said(connection, "response.done")
        must(len(sound(events)) > 4_000, "no sound in A-law")
        return f"aside: {done.output[0].content[0].text}"


async def listen(stage: Stage) -> str:
    """A session that only writes down what is said, by a secret that was made for it."""
    async with AsyncOpenAI(api_key="none", base_url=stage.url) as client:
        asked: Any = {"type": "transcription", "audio": {"input": HEARING}}
        made = await client.realtime.client_secrets.create(session=asked)
    must(made.value.startswith("ek_") and made.session.type == "transcription", f"{made}")
    ephemeral = AsyncOpenAI(
        api_key=made.value, base_url=stage.url, websocket_base_url=stage.url.replace("http", "ws")
    )
    query: Any = {"intent": "transcription"}
    async with ephemeral, ephemeral.realtime.connect(extra_query=query) as connection:
        session = (await said(connection, "session.created"))[-1].session
        must(session.type == "transcription", f"{session}")
        async with speaking(stage, connection):
            events = await said(connection, "conversation.item.input_audio_transcription.completed")
            events += await meanwhile(connection, LISTENS_S)
        must(not any(event.type.startswith("response.") for event in events), "it answers")
        heard: str = "".join(e.transcript for e in events if e.type.endswith("transcription.completed"))
        must("capital of France" in heard, heard)
        return heard


if __name__ == "__main__":
    scenarios = {
        "text": text,
        "audio": audio,
        "tool": tool,
        "interrupt": interrupt,
        "again": again,
        "resume": resume,
        "odd": odd,
        "listen": listen,
        **requests_python.SCENARIOS,
    }
    play(("openai", "websockets"), scenarios, Complaints())
