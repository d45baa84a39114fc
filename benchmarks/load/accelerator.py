"""The *simulated accelerator*: an engine that takes the time which `benchmarks.load.model` says, and does no work.

It stands for a GPU that this machine does not have. In a configuration:

    workers:
      llm: {engine: "benchmarks.load.accelerator:make", options: {role: llm, seed: 1}, parallel: 256}

Each worker process is one accelerator. Options beside `role` (``llm``, ``asr``, ``embed``) and `seed` are fields of
`Replies` or `Batches`. Replies are made by one thread, however many threads of the worker wait for them.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.load.model import Batches, Decoding, Replies, jittered
from modalities.adapters.scripted import RecognizerScript, ScriptedEmbedder, ScriptedRecognizer
from modalities.ports import (
    SPEECH_RATE_HZ,
    Claim,
    Clip,
    Completion,
    Fits,
    Prompt,
    Recognition,
    ReplyDelta,
    TextDelta,
)
from orchestrator.workers.memory import told_by

log = logging.getLogger(__name__)

TOKEN = " token"
_BEHIND_S = 0.25
_HEARD = RecognizerScript(texts=("please tell me about the weather of the day after tomorrow",))


def make(options: Mapping[str, Any]) -> "SimulatedLanguageModel | SimulatedRecognizer | SimulatedEmbedder":
    """Returns the engine of ``options["role"]``. Raises `ValueError` for another role, `TypeError` for an option that
    does not exist."""
    own = dict(options)
    role, seed = own.pop("role", "llm"), int(own.pop("seed", 1))
    match role:
        case "llm":
            model = SimulatedLanguageModel(Replies(**own), Random(seed))
            told_by(model.memory_share)
            return model
        case "asr":
            return SimulatedRecognizer(Batches(**own), Random(seed))
        case "embed":
            return SimulatedEmbedder(Batches(**own), Random(seed))
    raise ValueError(f"the simulated accelerator has the roles llm, asr and embed, not {role!r}")


@dataclass(slots=True, eq=False)
class _Seat:
    """One caller of `generate`, until its reply has ended.

    What `emit` raises (``with seat: …``) ends this reply and is raised where it was asked for: the thread that tells
    all of them goes on.
    """

    key: str
    context: int
    output: int
    emit: Callable[[ReplyDelta], bool]
    ended: threading.Event = field(default_factory=threading.Event)
    told: int = 0
    wanted: bool = True
    fault: Exception | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: object) -> bool:
        if not isinstance(fault, Exception):
            return False
        self.fault, self.wanted = fault, False
        return True


class SimulatedLanguageModel:
    """Continuous batching as `Decoding` says it, in real time; one token is one word."""

    def __init__(self, model: Replies, chance: Random) -> None:
        self._model = model
        self._decoding = Decoding(model, chance)
        self._seats: dict[str, _Seat] = {}
        self._changed = threading.Condition()
        self._numbers = 0
        self._behind_s = 0.0
        threading.Thread(target=self._run, name="accelerator", daemon=True).start()

    def memory_share(self) -> float:
        """Returns how full the simulated memory is, as a limit that looks at memory asks for it."""
        with self._changed:
            return self._decoding.memory_share

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        """Waits inside while the simulated memory has no room for the prompt."""
        context, output = self._model.length_of(_number_of(prompt))
        if prompt.max_tokens is not None:
            output = min(output, prompt.max_tokens)
        with self._changed:
            self._numbers += 1
            seat = _Seat(f"{self._numbers}", context, output, emit)
            self._decoding.add(seat.key, context, output)
            self._seats[seat.key] = seat
            self._changed.notify()
        seat.ended.wait()
        if seat.fault is not None:
            raise seat.fault
        return Completion("stop" if seat.wanted else "cancelled", context, 0, seat.told)

    def _run(self) -> None:
        """Steps for ever, on a time-table: telling takes none of the simulated time."""
        due_s = time.monotonic()
        while True:
            with self._changed:
                if not self._seats:
                    self._changed.wait()
                    due_s = time.monotonic()
                step = self._decoding.step()
            due_s += step.took_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            self._tell(step.told, step.ended)
            behind_s = time.monotonic() - due_s
            if behind_s > _BEHIND_S + self._behind_s:
                self._behind_s = behind_s
                log.warning("the simulated accelerator is %.0f ms behind its time-table", behind_s * 1_000)

    def _tell(self, told: Sequence[str], ended: Sequence[str]) -> None:
        unwanted = [key for key in told if not self._tell_one(self._seats[key])]
        gone = {*ended, *unwanted}
        with self._changed:
            self._decoding.drop(unwanted)
            seats = [self._seats.pop(key) for key in gone]
        for seat in seats:
            seat.ended.set()

    def _tell_one(self, seat: _Seat) -> bool:
        """Gives one token; says whether more of them are wanted."""
        with seat:
            seat.wanted = seat.emit(TextDelta(TOKEN))
        seat.told += seat.wanted
        return seat.wanted


class SimulatedRecognizer:
    """Takes a batch's time; what it hears is what the scripted recogniser would say."""

    def __init__(self, model: Batches, chance: Random) -> None:
        self._model = model
        self._chance = chance
        self._heard = ScriptedRecognizer(_HEARD)

    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        self._take(sum(clip.pcm.size for clip in clips) / SPEECH_RATE_HZ)
        return self._heard.recognize(clips)

    def score(self, claims: Sequence[Claim]) -> list[Fits | None]:
        self._take(sum(claim.clip.pcm.size for claim in claims) / SPEECH_RATE_HZ)
        return self._heard.score(claims)

    def _take(self, items: float) -> None:
        time.sleep(jittered(self._model.took_s(items), self._model.jitter, self._chance))


class SimulatedEmbedder:
    """Takes a batch's time; equal texts have equal vectors, and nothing is known of meaning."""

    def __init__(self, model: Batches, chance: Random) -> None:
        self._model = model
        self._chance = chance
        self._embedder = ScriptedEmbedder()

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        time.sleep(jittered(self._model.took_s(len(texts)), self._model.jitter, self._chance))
        return self._embedder.embed(texts)


def _number_of(prompt: Prompt) -> int:
    """Returns what a prompt's lengths are drawn by: the last words of its user, so that a turn is as long under every
    policy as under any other."""
    words = next((message.content for message in reversed(prompt.messages) if message.role == "user"), "")
    return crc32(words.encode())
