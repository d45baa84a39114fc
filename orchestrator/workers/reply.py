"""Replies in a worker process: a prompt in, deltas out as they are decoded, several replies side by side."""

from collections.abc import Sequence
from typing import assert_never
from zlib import crc32

from modalities.ports import (
    ChatMessage,
    Image,
    LanguageModel,
    Prompt,
    ReplyDelta,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
)
from modalities.text.stopping import StopText
from orchestrator.scheduling.work import Replied, Reply, ReplyCall, ReplyText
from orchestrator.workers.desk import Tell, Wanted
from orchestrator.workers.frames import Task

_SEED_BITS = 0x7FFF_FFFF
"""Engines take a signed or an unsigned integer."""


class Replier:
    """Called by as many threads at once as the engine takes; a cancel is honoured at the next delta."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def probe(self) -> str:
        """Generates a token or two."""
        self._model.generate(Prompt((ChatMessage("user", "Hello"),), max_tokens=2), lambda _: True)
        return type(self._model).__name__

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        for task in tasks:
            self._reply(task, tell, wanted)

    def _reply(self, task: Task, tell: Tell, wanted: Wanted) -> None:
        if not isinstance(task.work, Reply):
            raise TypeError(f"a language model was given {type(task.work).__name__}")
        job_id = task.job_id
        stop = StopText(task.work.stop)

        def say(text: str) -> None:
            if text:  # without, the engine only asks whether the job is still wanted
                tell(ReplyText(job_id, text))

        def emit(delta: ReplyDelta) -> bool:
            if not wanted(job_id):
                return False
            match delta:
                case TextDelta():
                    say(stop.feed(delta.text))
                case ToolCallDelta():
                    say(stop.close())
                    tell(ReplyCall(job_id, delta.index, delta.arguments, delta.name))
                case _:
                    assert_never(delta)
            return not stop.ended

        end = self._model.generate(prompt_of(task.work, job_id), emit)
        if end.finish_reason != "cancelled":
            say(stop.close())
        finish = "stop" if stop.ended and wanted(job_id) else end.finish_reason
        tell(Replied(job_id, finish, end.input_tokens, end.cached_tokens, end.output_tokens))


def prompt_of(work: Reply, job_id: str) -> Prompt:
    """Returns the prompt that a job asks to continue.

    Where the work has no seed, it follows from the job: a repeat after a lost worker writes the same reply again,
    another job another one.
    """
    messages = tuple(
        ChatMessage(
            message.role,
            message.content,
            tuple(ToolCall(call.call_id, call.name, call.arguments) for call in message.tool_calls),
            message.tool_call_id,
            tuple(Image(image.url, image.detail) for image in message.images),
        )
        for message in work.messages
    )
    tools = tuple(Tool(tool.name, tool.description, tool.parameters) for tool in work.tools)
    seed = crc32(job_id.encode()) >> 1 if work.seed is None else work.seed & _SEED_BITS
    return Prompt(
        messages,
        tools,
        work.tool_choice,
        work.max_tokens,
        work.temperature,
        work.cache_key,
        seed,
        work.whole,
    )
