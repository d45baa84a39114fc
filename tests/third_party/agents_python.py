"""The Agents SDK for Python, with its defaults: semantic VAD, transcription, tracing, strict parsing."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.realtime import RealtimeAgent, RealtimeRunner
from agents.realtime.model_inputs import RealtimeModelSendRawMessage, RealtimeModelSendSessionUpdate
from openai import AsyncOpenAI

from tests.third_party.stage import LISTENS_S, STORY, TEXT, TOOL, Complaints, Stage, must, peak, play, until


class Talk:
    """A running session and what it has told so far."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.written = ""
        self.sound: dict[str, bytes] = {}
        self.transcript: dict[str, str] = {}
        self.ends = 0
        self.interruptions = 0
        self.last_sound_s: dict[str, float] = {}
        self.raw: list[dict[str, Any]] = []
        self.failures: list[str] = []

    async def listen(self) -> None:
        async for event in self.session:
            if event.type == "audio":
                self.sound[event.item_id] = self.sound.get(event.item_id, b"") + event.audio.data
                self.last_sound_s[event.item_id] = time.monotonic()
            elif event.type == "audio_interrupted":
                self.interruptions += 1
            elif event.type == "agent_end":
                self.ends += 1
            elif event.type == "error":
                self.failures.append(str(event.error))
            elif event.type == "raw_model_event":
                self._raw(event.data)

    def _raw(self, data: Any) -> None:
        if data.type == "raw_server_event":
            self.raw.append(data.data)
        elif data.type == "output_text_delta":
            self.written += data.delta
        elif data.type == "transcript_delta":
            self.transcript[data.item_id] = self.transcript.get(data.item_id, "") + data.delta
        elif data.type in ("error", "exception"):
            self.failures.append(str(data))

    async def until(self, condition: Callable[[], object], what: str) -> None:
        await until(lambda: self.failures or condition(), what)
        must(not self.failures, "; ".join(self.failures))

    def history(self, role: str) -> list[str]:
        """What this role said, as the SDK keeps it."""
        messages = [item for item in self.session._history if getattr(item, "role", "") == role]
        parts = [part for message in messages for part in message.content]
        return [getattr(part, "text", None) or getattr(part, "transcript", None) or "" for part in parts]


@asynccontextmanager
async def talking(stage: Stage, tools: list[Any] | None = None, **settings: Any) -> AsyncIterator[Talk]:
    agent = RealtimeAgent(name="Ada", instructions="Be brief.", tools=tools or [])
    config: Any = {"model_settings": {"model_name": "chorale", **settings}}
    runner = RealtimeRunner(starting_agent=agent, config=config)
    session = await runner.run(model_config={"url": f"{stage.ws_url}?model=chorale", "api_key": "none"})
    async with session:
        talk = Talk(session)
        listening = asyncio.create_task(talk.listen())
        try:
            yield talk
            must(not talk.failures, "; ".join(talk.failures))
        finally:
            listening.cancel()


async def text(stage: Stage) -> str:
    async with talking(stage, modalities=["text"]) as talk:
        await talk.session.send_message(TEXT)
        await talk.until(lambda: talk.ends, "the end of the turn")
        must(talk.written, "no text")
        await talk.until(lambda: talk.written in talk.history("assistant"), "the text in the history")
        return talk.written


async def audio(stage: Stage) -> str:
    async with talking(stage) as talk:
        microphone = asyncio.create_task(stage.speak(talk.session.send_audio))
        await talk.until(lambda: talk.ends, "the end of the turn")
        await talk.until(lambda: any(talk.history("user")), "the transcript")
        microphone.cancel()
        heard = talk.history("user")
        must("capital of France" in heard[0], f"heard {heard}")
        must(peak(b"".join(talk.sound.values())) > 1_000, "silence")
        return f"{heard[0]} / {''.join(talk.transcript.values())}"


async def tool(stage: Stage) -> str:
    calls: list[str] = []

    @function_tool
    def get_weather(city: str) -> str:
        """Tells the weather of a city."""
        calls.append(city)
        return "sunny, 21 degrees"

    async with talking(stage, [get_weather], modalities=["text"], tool_choice="auto") as talk:
        await talk.session.send_message(TOOL)
        await talk.until(lambda: "sunny" in talk.written, "an answer with the tool's output")
        await talk.until(lambda: talk.ends >= 2, "the end of both turns")
        must(calls == ["Paris"], f"called with {calls}")
        return f"{calls} / {talk.written}"


async def interrupt(stage: Stage) -> str:
    async with talking(stage) as talk:
        await talk.session.send_message(STORY)
        await talk.until(lambda: talk.sound, "the reply's sound")
        await asyncio.sleep(LISTENS_S)
        (old,) = talk.sound
        microphone = asyncio.create_task(stage.speak(talk.session.send_audio))
        await talk.until(lambda: talk.interruptions, "the interruption")
        await talk.until(lambda: talk.ends == 1, "the end of the old reply")
        ended_s = time.monotonic()
        await talk.until(lambda: talk.ends == 2, "the answer")
        microphone.cancel()
        must(talk.last_sound_s[old] <= ended_s, "the old reply went on")
        answer = next(said for item, said in talk.transcript.items() if item != old)
        must("capital of France" in answer, answer)
        await talk.until(lambda: _was_cut(talk, old), "the cut of the old reply in the history")
        return f"{talk.history('assistant')[0][:60]}… / {answer}"


def _was_cut(talk: Talk, item_id: str) -> bool:
    """Whether the SDK's history holds less of the item than was said."""
    item = next((item for item in talk.session._history if item.item_id == item_id), None)
    kept = (getattr(item.content[0], "transcript", None) or "") if item else ""
    return 0 < len(kept) < len(talk.transcript[item_id])


async def again(stage: Stage) -> str:
    """A second session after the first, and turns after a reply was interrupted by hand."""
    await text(stage)
    async with talking(stage, modalities=["text"]) as talk:
        await talk.session.interrupt()
        await talk.session.send_message("Tell me a very long story about a king.")
        await talk.until(lambda: talk.written, "the reply")
        await talk.session.interrupt()
        await talk.until(lambda: talk.ends, "its end")
        talk.written = ""
        await talk.session.send_message(TEXT)
        await talk.until(lambda: talk.ends == 2, "the end of the next turn")
        must(talk.written, "no text")
        return talk.written


async def odd(stage: Stage) -> str:
    """G.711 both ways, settings in the middle, other tools, sizes that are no sample, a response out of band."""

    @function_tool
    def find(query: str, limit: int | None = None) -> str:
        """Finds something."""
        return query * (limit or 1)

    settings: dict[str, Any] = {
        "input_audio_format": "g711_ulaw",
        "output_audio_format": "g711_alaw",
        "input_audio_noise_reduction": {"type": "far_field"},
        "turn_detection": {"type": "server_vad", "threshold": 0.6, "silence_duration_ms": 300},
        "input_audio_transcription": {"model": "whisper-1", "language": "en", "prompt": "Cities."},
        "max_output_tokens": 200,
        "speed": 1.1,
    }
    async with talking(stage, **settings) as talk:
        for size in (1, 7, 333):
            await talk.session.send_audio(b"\xff" * size)
        await talk.session.send_message(TEXT)
        await talk.until(lambda: talk.ends, "the end of the turn")
        must(len(b"".join(talk.sound.values())) > 4_000, "no sound in A-law")
        await talk.session.update_agent(RealtimeAgent(name="Bob", instructions="Be short.", tools=[find]))
        update: Any = {"modalities": ["text"], "turn_detection": None, "tool_choice": "none"}
        await talk.session.model.send_event(RealtimeModelSendSessionUpdate(session_settings=update))
        aside: Any = {
            "type": "response.create",
            "other_data": {
                "response": {"conversation": "none", "output_modalities": ["text"], "metadata": {"a": "b"}}
            },
        }
        await talk.session.model.send_event(RealtimeModelSendRawMessage(message=aside))
        await talk.until(lambda: talk.written and talk.ends == 2, "the response aside")
        done = [event["response"] for event in talk.raw if event["type"] == "response.done"][-1]
        must(done["metadata"] == {"a": "b"}, f"{done}")
        return f"aside: {talk.written}"


async def chat(stage: Stage) -> str:
    """An agent without a session, over chat completions: its tool is called, whole and in a stream."""
    calls: list[str] = []

    @function_tool
    def get_weather(city: str) -> str:
        """Tells the weather of a city."""
        calls.append(city)
        return "sunny, 21 degrees"

    set_tracing_disabled(True)
    async with AsyncOpenAI(api_key="none", base_url=stage.url, max_retries=0) as client:
        model = OpenAIChatCompletionsModel(model="chorale", openai_client=client)
        agent = Agent(name="Ada", instructions="Be brief.", model=model, tools=[get_weather])
        whole = await Runner.run(agent, TOOL)
        stream = Runner.run_streamed(agent, TOOL)
        written = "".join([event.data.delta async for event in stream.stream_events() if _is_text(event)])
    must(calls == ["Paris", "Paris"], f"called with {calls}")
    must("sunny" in whole.final_output, whole.final_output)
    must(written == stream.final_output == whole.final_output, f"{written} / {stream.final_output}")
    return f"{calls} / {written}"


def _is_text(event: Any) -> bool:
    return bool(event.type == "raw_response_event" and event.data.type == "response.output_text.delta")


if __name__ == "__main__":
    scenarios = {
        "text": text,
        "audio": audio,
        "tool": tool,
        "interrupt": interrupt,
        "again": again,
        "odd": odd,
        "chat": chat,
    }
    play(("openai-agents", "openai"), scenarios, Complaints())
