"""LiveKit Agents with its OpenAI Realtime plugin, as `AgentSession` uses it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from livekit import rtc
from livekit.agents import function_tool, llm
from livekit.plugins.openai import realtime
from openai.types.realtime import AudioTranscription
from openai.types.realtime.realtime_audio_input_turn_detection import ServerVad

from tests.third_party.stage import (
    LISTENS_S,
    RATE_HZ,
    STORY,
    TEXT,
    TOOL,
    Complaints,
    Stage,
    must,
    peak,
    play,
    until,
)


class Reply:
    """One generation, read while it comes."""

    def __init__(self) -> None:
        self.id = ""
        self.text = ""
        self.sound = b""
        self.calls: list[Any] = []
        self.ended = False
        self.last_sound_s = 0.0

    async def read(self, generation: Any) -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(self._read_calls(generation))
            async for message in generation.message_stream:
                self.id = message.message_id
                both.create_task(self._read_sound(message))
                async for piece in message.text_stream:
                    self.text += str(piece)
        self.ended = True

    async def _read_sound(self, message: Any) -> None:
        async for frame in message.audio_stream:
            self.sound += bytes(frame.data)
            self.last_sound_s = time.monotonic()

    async def _read_calls(self, generation: Any) -> None:
        async for call in generation.function_stream:
            self.calls.append(call)


class Talk:
    """A session and its replies, those asked for and those that came by themselves."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.replies: list[Reply] = []
        self.heard: list[str] = []
        self.starts = 0
        self.failures: list[str] = []
        self._reading: set[asyncio.Task[None]] = set()
        session.on("generation_created", self._created)
        session.on("input_speech_started", self._started)
        session.on("input_audio_transcription_completed", self._transcribed)
        session.on("error", lambda event: self.failures.append(str(event.error)))

    def _created(self, generation: Any) -> None:
        reply = Reply()
        self.replies.append(reply)
        task = asyncio.create_task(reply.read(generation))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    def _started(self, _: Any) -> None:
        """What `AgentSession` does where the user may interrupt."""
        self.starts += 1
        self.session.interrupt()

    def _transcribed(self, event: Any) -> None:
        if event.is_final:
            self.heard.append(event.transcript)

    async def until(self, condition: Callable[[], object], what: str) -> None:
        await until(lambda: self.failures or condition(), what)
        must(not self.failures, "; ".join(self.failures))

    async def ask(self, text: str, **options: Any) -> Reply:
        """Adds a message to the context and asks for a reply; returns it once it has begun."""
        context = self.session.chat_ctx.copy()
        context.add_message(role="user", content=text)
        await self.session.update_chat_ctx(context)
        count = len(self.replies)
        await self.session.generate_reply(**options)
        await self.until(lambda: len(self.replies) > count, "the reply")
        return self.replies[-1]

    async def end_of(self, reply: Reply) -> None:
        await self.until(lambda: reply.ended, "the end of the reply")

    async def push(self, piece: bytes) -> None:
        self.session.push_audio(
            rtc.AudioFrame(piece, sample_rate=RATE_HZ, num_channels=1, samples_per_channel=len(piece) // 2)
        )


@asynccontextmanager
async def talking(stage: Stage, **options: Any) -> AsyncIterator[Talk]:
    async with aiohttp.ClientSession() as http:
        model = realtime.RealtimeModel(
            base_url=stage.url, api_key="none", model="chorale", http_session=http, **options
        )
        session = model.session()
        talk = Talk(session)
        try:
            await session.update_instructions("Be brief.")
            yield talk
            must(not talk.failures, "; ".join(talk.failures))
        finally:
            await session.aclose()
            await model.aclose()


async def text(stage: Stage) -> str:
    async with talking(stage, modalities=["text"]) as talk:
        reply = await talk.ask(TEXT)
        await talk.end_of(reply)
        must(reply.text, "no text")
        await talk.until(lambda: reply.text in _said(talk, "assistant"), "the text in the context")
        return reply.text


def _said(talk: Talk, role: str) -> list[str]:
    messages = [item for item in talk.session.chat_ctx.items if getattr(item, "role", "") == role]
    return [message.text_content or "" for message in messages]


async def audio(stage: Stage) -> str:
    async with talking(stage) as talk:
        microphone = asyncio.create_task(stage.speak(talk.push))
        await talk.until(lambda: talk.replies and talk.replies[0].ended, "the reply")
        await talk.until(lambda: talk.heard, "the transcript")
        microphone.cancel()
        (reply,) = talk.replies
        must("capital of France" in talk.heard[0], f"heard {talk.heard}")
        must(peak(reply.sound) > 1_000, "silence")
        roles = [getattr(item, "role", "") for item in talk.session.chat_ctx.items]
        must(roles == ["user", "assistant"], f"the context's order is {roles}")
        return f"{talk.heard[0]} / {reply.text}"


async def tool(stage: Stage) -> str:
    @function_tool
    async def get_weather(city: str) -> str:
        """Tells the weather of a city."""
        return f"sunny in {city}"

    async with talking(stage, modalities=["text"]) as talk:
        await talk.session.update_tools([get_weather])
        reply = await talk.ask(TOOL)
        await talk.end_of(reply)
        must([call.name for call in reply.calls] == ["get_weather"], f"{reply.calls}")
        (call,) = reply.calls
        must(json.loads(call.arguments) == {"city": "Paris"}, call.arguments)
        context = talk.session.chat_ctx.copy()
        output = llm.FunctionCallOutput(call_id=call.call_id, output="sunny, 21 degrees", is_error=False)
        context.items.append(output)
        await talk.session.update_chat_ctx(context)
        await talk.session.generate_reply()
        await talk.until(lambda: len(talk.replies) == 2 and talk.replies[1].ended, "the answer")
        must("sunny" in talk.replies[1].text, talk.replies[1].text)
        return f"{call.arguments} / {talk.replies[1].text}"


async def interrupt(stage: Stage) -> str:
    async with talking(stage) as talk:
        old = await talk.ask(STORY)
        await talk.until(lambda: old.sound, "its sound")
        await asyncio.sleep(LISTENS_S)
        microphone = asyncio.create_task(stage.speak(talk.push))
        await talk.until(lambda: talk.starts, "the start of speech")
        talk.session.truncate(
            message_id=old.id, modalities=["audio", "text"], audio_end_ms=int(LISTENS_S * 1_000)
        )
        await talk.end_of(old)
        ended_s = time.monotonic()
        await talk.until(lambda: len(talk.replies) == 2 and talk.replies[1].ended, "the answer")
        microphone.cancel()
        must(old.last_sound_s <= ended_s, "the old reply went on")
        must("capital of France" in talk.replies[1].text, talk.replies[1].text)
        return f"{len(old.sound) // 48} ms of the old one / {talk.replies[1].text}"


async def again(stage: Stage) -> str:
    """A second session after the first, and turns after a reply was interrupted by hand."""
    await text(stage)
    async with talking(stage, modalities=["text"]) as talk:
        talk.session.interrupt()
        first = await talk.ask("Tell me a very long story about a king.")
        await talk.until(lambda: first.text, "its text")
        talk.session.interrupt()
        await talk.end_of(first)
        reply = await talk.ask(TEXT)
        await talk.end_of(reply)
        must(reply.text, "no text")
        return reply.text


async def odd(stage: Stage) -> str:
    """A history set as a whole, changed in its middle and cut; overrides; settings in the middle; manual turns."""
    transcription = AudioTranscription(model="gpt-4o-transcribe", language="en", prompt="Cities.")
    vad = ServerVad(type="server_vad", threshold=0.6, silence_duration_ms=300, create_response=True)
    async with talking(
        stage,
        input_audio_transcription=transcription,
        input_audio_noise_reduction="near_field",
        turn_detection=vad,
        speed=1.1,
        tool_choice="auto",
    ) as talk:
        context = llm.ChatContext.empty()
        for number in range(6):
            context.add_message(role=("user", "assistant")[number % 2], content=f"Line {number}.")
        await talk.session.update_chat_ctx(context)
        ids = [item.id for item in context.items]
        must([item.id for item in talk.session.chat_ctx.items] == ids, "the history is not as it was set")
        shorter = context.copy()
        del shorter.items[2:4]
        changed: Any = shorter.items[1]
        changed.content = ["Something else."]
        shorter.items.insert(1, llm.ChatMessage(role="user", content=["In between."]))
        await talk.session.update_chat_ctx(shorter)
        wanted = [item.id for item in shorter.items]
        must([item.id for item in talk.session.chat_ctx.items] == wanted, "the history is not as changed")
        reply = await talk.ask("Hello!", instructions="Answer in one word.", tool_choice="none")
        await talk.end_of(reply)
        must(peak(reply.sound) > 1_000, "silence")
        talk.session.update_options(turn_detection=None, tool_choice="none")
        for _ in range(20):
            await talk.push(bytes(960))
        talk.session.commit_audio()
        talk.session.clear_audio()
        reply = await talk.ask(TEXT)
        await talk.end_of(reply)
        must(reply.text, "no text")
        return reply.text


if __name__ == "__main__":
    scenarios = {
        "text": text,
        "audio": audio,
        "tool": tool,
        "interrupt": interrupt,
        "again": again,
        "odd": odd,
    }
    play(("livekit-agents", "livekit-plugins-openai"), scenarios, Complaints())
