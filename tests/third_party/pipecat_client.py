"""Pipecat with its OpenAI Realtime service, in a pipeline with context aggregators as its examples build it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    ErrorFrame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMMessagesAppendFrame,
    LLMRunFrame,
    LLMSetToolsFrame,
    LLMTextFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

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

HEARING = events.AudioInput(
    transcription=events.InputAudioTranscription(), turn_detection=events.SemanticTurnDetection()
)


class Tap(FrameProcessor):
    """Keeps what the service pushes, in either direction."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.sound = b""
        self.heard: list[str] = []
        self.ends = 0
        self.interruptions = 0
        self.interrupted_at = 0
        self.last_sound_s = 0.0
        self.failures: list[str] = []

    async def process_frame(self, frame: Any, direction: Any) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case TTSAudioRawFrame():
                self.sound += frame.audio
                self.last_sound_s = time.monotonic()
            case LLMTextFrame():
                self.text += frame.text
            case LLMFullResponseEndFrame():
                self.ends += 1
            case TranscriptionFrame():
                self.heard.append(frame.text)
            case InterruptionFrame():
                self.interruptions += 1
            case ErrorFrame():
                self.failures.append(frame.error)
        await self.push_frame(frame, direction)


class Talk:
    """A running pipeline: the context and the service between two taps."""

    def __init__(self, service: Any, messages: list[Any], tools: Any | None) -> None:
        self.before, self.after = Tap(), Tap()
        self.context = LLMContext(messages, tools) if tools else LLMContext(messages)
        pair = LLMContextAggregatorPair(self.context)
        pipeline = Pipeline([pair.user(), self.before, service, self.after, pair.assistant()])
        params = PipelineParams(audio_in_sample_rate=RATE_HZ, audio_out_sample_rate=RATE_HZ)
        self.worker = PipelineWorker(pipeline, params=params)

    @property
    def failures(self) -> list[str]:
        return self.before.failures + self.after.failures

    async def until(self, condition: Callable[[], object], what: str) -> None:
        await until(lambda: self.failures or condition(), what)
        must(not self.failures, "; ".join(self.failures))

    async def push(self, piece: bytes) -> None:
        await self.worker.queue_frame(InputAudioRawFrame(audio=piece, sample_rate=RATE_HZ, num_channels=1))

    def said(self, role: str) -> list[str]:
        return [str(m["content"]) for m in self.context.get_messages() if m.get("role") == role]


@asynccontextmanager
async def talking(
    stage: Stage,
    first: str,
    *,
    functions: dict[str, Any] | None = None,
    tools: Any | None = None,
    hearing: Any = HEARING,
    **properties: Any,
) -> AsyncIterator[Talk]:
    session = events.SessionProperties(audio=events.AudioConfiguration(input=hearing), **properties)
    service = OpenAIRealtimeLLMService(
        api_key="none",
        base_url=stage.ws_url,
        settings=OpenAIRealtimeLLMService.Settings(
            model="chorale", system_instruction="Be brief.", session_properties=session
        ),
    )
    for name, function in (functions or {}).items():
        service.register_function(name, function)
    talk = Talk(service, [{"role": "user", "content": first}] if first else [], tools)
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(talk.worker)
    running = asyncio.create_task(runner.run())
    try:
        if first:
            await talk.worker.queue_frame(LLMRunFrame())
        yield talk
        must(not talk.failures, "; ".join(talk.failures))
    finally:
        await talk.worker.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def text(stage: Stage) -> str:
    async with talking(stage, TEXT, output_modalities=["text"]) as talk:
        await talk.until(lambda: talk.after.ends, "the end of the reply")
        must(talk.after.text, "no text")
        await talk.until(lambda: talk.said("assistant"), "the reply in the context")
        return str(talk.after.text)


async def audio(stage: Stage) -> str:
    async with talking(stage, "Hello!") as talk:
        await talk.until(lambda: talk.after.ends == 1, "the greeting")
        talk.after.sound = b""
        microphone = asyncio.create_task(stage.speak(talk.push))
        await talk.until(lambda: talk.after.ends == 2, "the reply")
        await talk.until(lambda: talk.before.heard, "the transcript")
        microphone.cancel()
        must("capital of France" in talk.before.heard[0], f"heard {talk.before.heard}")
        must(peak(talk.after.sound) > 1_000, "silence")
        await talk.until(lambda: any("France" in said for said in talk.said("user")), "it in the context")
        return f"{talk.before.heard[0]} / {talk.said('assistant')[-1]}"


async def tool(stage: Stage) -> str:
    calls: list[Any] = []

    async def get_weather(params: Any) -> None:
        calls.append(dict(params.arguments))
        await params.result_callback({"weather": "sunny, 21 degrees"})

    schema = FunctionSchema(
        name="get_weather",
        description="Tells the weather of a city.",
        properties={"city": {"type": "string"}},
        required=["city"],
    )
    tools = ToolsSchema(standard_tools=[schema])
    functions = {"get_weather": get_weather}
    async with talking(stage, TOOL, functions=functions, tools=tools, output_modalities=["text"]) as talk:
        await talk.until(lambda: "sunny" in talk.after.text, "an answer with the tool's output")
        must(calls == [{"city": "Paris"}], f"called with {calls}")
        return f"{calls} / {talk.after.text}"


async def interrupt(stage: Stage) -> str:
    async with talking(stage, STORY) as talk:
        await talk.until(lambda: talk.after.sound, "the reply's sound")
        await asyncio.sleep(LISTENS_S)
        microphone = asyncio.create_task(stage.speak(talk.push))
        await talk.until(lambda: talk.after.interruptions, "the interruption")
        await talk.until(lambda: talk.after.ends, "the end of the old reply")
        await talk.until(lambda: "capital of France" in talk.after.text, "the answer")
        microphone.cancel()
        old, _, answer = talk.after.text.partition("You said")
        must("town number 39" not in old or "town" not in answer, "the old reply went on")
        return f"{talk.before.interruptions + talk.after.interruptions} interruptions / You said{answer}"


async def again(stage: Stage) -> str:
    """A second pipeline after the first, and a typed follow-up, which Pipecat sends as a system message."""
    await text(stage)
    async with talking(stage, "Hello!", output_modalities=["text"]) as talk:
        await talk.until(lambda: talk.after.ends == 1, "the greeting")
        talk.after.text = ""
        follow_up = [{"role": "user", "content": TEXT}]
        await talk.before.push_frame(LLMMessagesAppendFrame(messages=follow_up, run_llm=True))
        await talk.until(lambda: talk.after.ends == 2, "the answer")
        must(talk.after.text, "no text")
        return str(talk.after.text)


async def odd(stage: Stage) -> str:
    """Every property set, manual turns, other tools in the middle, sizes that are no sample."""
    hearing = events.AudioInput(
        format=events.PCMAudioFormat(rate=24_000),
        transcription=events.InputAudioTranscription(model="whisper-1", language="en", prompt="Cities."),
        noise_reduction=events.InputAudioNoiseReduction(type="near_field"),
        turn_detection=events.TurnDetection(threshold=0.6, prefix_padding_ms=200, silence_duration_ms=300),
    )
    async with talking(
        stage, TEXT, hearing=hearing, max_output_tokens=200, tool_choice="auto", tracing="auto"
    ) as talk:
        await talk.until(lambda: talk.after.ends == 1, "the reply")
        must(peak(talk.after.sound) > 1_000, "silence")
        for size in (1, 7, 333):
            await talk.push(bytes(size))
        schema = FunctionSchema(
            name="find", description="x" * 5_000, properties={"query": {"type": "string"}}, required=[]
        )
        await talk.worker.queue_frame(LLMSetToolsFrame(tools=ToolsSchema(standard_tools=[schema])))
        talk.after.text = ""
        follow_up = [{"role": "user", "content": "And of Italy?"}]
        await talk.before.push_frame(LLMMessagesAppendFrame(messages=follow_up, run_llm=True))
        await talk.until(lambda: talk.after.ends == 2, "the answer")
        must(talk.after.text, "no text")
        return str(talk.after.text)


if __name__ == "__main__":
    complaints = Complaints()
    # Pipecat's own log goes by another library; its errors are complaints all the same.
    logger.remove()
    logger.add(lambda message: complaints.messages.append(str(message).strip()[:300]), level="ERROR")
    scenarios = {
        "text": text,
        "audio": audio,
        "tool": tool,
        "interrupt": interrupt,
        "again": again,
        "odd": odd,
    }
    play(("pipecat-ai", "websockets"), scenarios, complaints)
