"""Engines for tests of worker processes, named ``tests.workers.engines:…`` in a configuration.

They run in the child. `options["folder"]` is where they leave marks for the test and learn whether they lived before.
"""

import atexit
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modalities.errors import AdapterUnavailable, EndpointFailed
from modalities.ports import Clip, Completion, Pcm, Prompt, Recognition, ReplyDelta, TextDelta

Options = Mapping[str, object]


def _first_time(options: Options, what: str) -> bool:
    """Says whether this is the first of all lives that comes here."""
    mark = Path(str(options["folder"])) / what
    if mark.exists():
        return False
    mark.touch()
    return True


def _wait_for_ever() -> None:
    threading.Event().wait()


def _hold_the_gil() -> None:
    ctypes.PyDLL(None).sleep(1000)


class Recognizer:
    """Says how long each clip is. Prints all over the place, as libraries do."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        sys.stdout.write("garbage on standard output" * 100)
        os.write(1, b"\x00\x00\x00\x05noise")
        sys.stdout.flush()
        if any(clip.prompt == "fail" for clip in clips):
            raise ValueError("cannot make anything of this")
        if any(clip.prompt == "die" for clip in clips):
            os._exit(3)
        return [Recognition(f"{len(clip.pcm)} samples in a batch of {len(clips)}") for clip in clips]


class LanguageModel:
    """Does what the last message says: ``count 5``, ``stall``, ``hold``, ``forever``, ``gate``, ``quiet``, ``deaf``."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        verb, _, number = prompt.messages[-1].content.partition(" ")
        match verb:
            case "count":
                for value in range(int(number)):
                    emit(TextDelta(f"{value} "))
            case "stall":
                # Stops half way the first time it is asked, and never again.
                stalls = _first_time(self._options, "stalled")
                for value in range(6):
                    emit(TextDelta(f"{value} "))
                    if value == 2 and stalls:
                        _wait_for_ever()
            case "hold":
                holds = _first_time(self._options, "held")
                emit(TextDelta("a"))
                if holds:
                    time.sleep(0.2)  # lets the delta out
                    (Path(str(self._options["folder"])) / "holding").touch()
                    _hold_the_gil()
                emit(TextDelta("b"))
            case "forever":
                while emit(TextDelta("x")):
                    time.sleep(0.002)
                (Path(str(self._options["folder"])) / "stopped").touch()
                return Completion("cancelled")
            case "environment":
                names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "HF_HUB_OFFLINE", "EXTRA")
                emit(TextDelta(" ".join([*(os.environ[name] for name in names), str(os.nice(0))])))
            case "gate":
                emit(TextDelta("a"))
                while not (Path(str(self._options["folder"])) / "gate").exists():
                    time.sleep(0.002)
                emit(TextDelta("b"))
            case "quiet":
                time.sleep(2)
            case "deaf":
                emit(TextDelta("x"))
                _wait_for_ever()
        return Completion("stop", output_tokens=1)


class Voice:
    """Says a tone of 1 s per word at 16 kHz, behind half a second of silence."""

    def __init__(self, options: Options) -> None:
        del options

    @property
    def sample_rate_hz(self) -> int:
        return 16_000

    def synthesize(self, text: str, speed: float = 1.0) -> Iterator[Pcm]:
        yield np.zeros(8_000, dtype=np.int16)
        for _ in text.split():
            samples = int(16_000 / speed)
            yield (np.sin(np.arange(samples) * 0.2) * 8_000).astype(np.int16)


class Embedder:
    """One dimension per letter of the alphabet."""

    def __init__(self, options: Options) -> None:
        del options

    @property
    def dimensions(self) -> int:
        return 26

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array(
            [[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], dtype=np.float32
        )
        lengths: NDArray[np.float32] = np.linalg.norm(counts, axis=1, keepdims=True)
        return (counts / np.maximum(lengths, 1)).astype(np.float32)


def missing(options: Options) -> object:
    """An engine whose library is not here."""
    raise AdapterUnavailable("the parrot model", "pip install parrot")


def crashing(options: Options) -> object:
    """An engine that never gets through its own loading."""
    raise RuntimeError("a library of this engine is broken")


def leaky(options: Options) -> object:
    """An engine that cannot start and tells its secrets while it dies."""
    sys.stderr.write(f"my key is {options['api_key']}\n")
    os.write(1, b"said on standard output\n")
    raise RuntimeError(f"no connection with {options['api_key']}")


def recovering(options: Options) -> LanguageModel:
    """An engine that cannot start the first two times."""
    if _first_time(options, "failed once") or _first_time(options, "failed twice"):
        raise RuntimeError("not yet")
    return LanguageModel(options)


def remote(options: Options) -> LanguageModel:
    """An engine whose endpoint is away until there is a file ``endpoint``."""
    if not (Path(str(options["folder"])) / "endpoint").exists():
        raise EndpointFailed("no connection to the parrot")
    return LanguageModel(options)


def lingering(options: Options) -> object:
    """An engine that cannot start, in a process that does not end by itself."""
    atexit.register(_wait_for_ever)
    os._exit = lambda _: _wait_for_ever()  # type: ignore[assignment,return-value]
    return missing(options)
