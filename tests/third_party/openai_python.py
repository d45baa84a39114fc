"""The `openai` package's realtime client."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from openai import AsyncOpenAI, BadRequestError

from tests.third_party.stage import LISTENS_S, STORY, TEXT, TOOL, Complaints, Stage, must, peak, play

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
HEARING = {"transcription": {"model": "gpt-4o-mini-transcribe", "language": "en"}}


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


def asking(stage: Stage) -> AsyncOpenAI:
    return AsyncOpenAI(api_key="none", base_url=stage.url)


async def chat(stage: Stage) -> str:
    """Without a session: a stream with its usage, a call and an answer with its output, a refusal by name."""
    tools: Any = [{"type": "function", "function": {k: v for k, v in WEATHER.items() if k != "type"}}]
    messages: list[Any] = [{"role": "user", "content": TOOL}]
    async with asking(stage) as client:
        options: Any = {"include_usage": True}
        stream = await client.chat.completions.create(
            model="chorale", messages=messages, stream=True, stream_options=options
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        must(text and chunks[-1].usage and chunks[-1].usage.completion_tokens, f"{chunks}")
        first = await client.chat.completions.create(model="chorale", messages=messages, tools=tools)
        message = first.choices[0].message
        calls: Any = message.tool_calls
        must(first.choices[0].finish_reason == "tool_calls" and calls, f"{first}")
        call = calls[0]
        must(json.loads(call.function.arguments) == {"city": "Paris"}, f"{call}")
        output = {"role": "tool", "tool_call_id": call.id, "content": "sunny, 21 degrees"}
        messages += [message, output]
        then = await client.chat.completions.create(model="chorale", messages=messages, tools=tools)
        answer = then.choices[0].message.content or ""
        must("sunny" in answer, answer)
        try:
            await client.chat.completions.create(model="chorale", messages=messages[:1], n=2)
        except BadRequestError as refused:
            must(refused.param == "n", f"{refused}")
        else:
            must(False, "two replies were promised")
        return f"{text} / {answer}"


async def speech(stage: Stage) -> str:
    """A text is spoken in two formats and heard again, whole, in a stream and as subtitles."""
    async with asking(stage) as client:
        spoken = await client.audio.speech.create(model="chorale", voice="alloy", input=TEXT)
        file = ("question.mp3", spoken.content)
        heard = await client.audio.transcriptions.create(model="chorale", file=file, language="en")
        must("capital of France" in heard.text, heard.text)
        made = client.audio.speech.with_streaming_response
        pcm: Any = "pcm"
        async with made.create(model="chorale", voice="alloy", input=TEXT, response_format=pcm) as stream:
            must(peak(await stream.read()) > 1_000, "silence")
        events = [
            event
            async for event in await client.audio.transcriptions.create(
                model="chorale", file=file, language="en", stream=True
            )
        ]
        must(events[-1].type == "transcript.text.done", f"{events}")
        srt: Any = "srt"
        titles: Any = await client.audio.transcriptions.create(
            model="chorale", file=file, response_format=srt
        )
        must(" --> " in titles, titles)
        return f"{heard.text} / {titles!r}"


async def embed(stage: Stage) -> str:
    """Vectors in both encodings, and the list of models."""
    async with asking(stage) as client:
        texts = ["the weather in Paris", "how is the weather in Paris", "a king in a castle"]
        made = await client.embeddings.create(model="chorale", input=texts)
        plain = await client.embeddings.create(model="chorale", input=texts, encoding_format="float")
        must(made.data == plain.data, "the encodings differ")
        near, far = (
            sum(x * y for x, y in zip(made.data[0].embedding, other.embedding, strict=True))
            for other in made.data[1:]
        )
        must(near > far, f"{near} {far}")
        models = [model.id async for model in client.models.list()]
        must("chorale" in models, f"{models}")
        return f"{near:.2f} > {far:.2f} / {models}"


if __name__ == "__main__":
    scenarios = {
        "text": text,
        "audio": audio,
        "tool": tool,
        "interrupt": interrupt,
        "again": again,
        "odd": odd,
        "chat": chat,
        "speech": speech,
        "embed": embed,
    }
    play(("openai", "websockets"), scenarios, Complaints())
