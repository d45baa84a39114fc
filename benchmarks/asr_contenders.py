"""Recognisers to compare, each in a process of its own so that none gains from what another does to its process.

The model, its compute type, beam and threads are the same for all. Times are taken inside that process, around the
recogniser's own call on samples in memory.
"""

import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.direct import SAME_MODEL
from modalities.adapters.packages import package_file
from modalities.ports import SPEECH_RATE_HZ, Clip, Pcm
from orchestrator.scheduling.batching import shape_of
from orchestrator.scheduling.work import Transcribe
from orchestrator.workers.child import THREAD_VARIABLES

LANGUAGE = "en"


class Contender(Protocol):
    """A recogniser as somebody would use it."""

    def one(self, clip: Pcm) -> str:
        """Returns the text of a clip that is alone."""
        ...

    def many(self, clips: Sequence[Pcm], concurrency: int) -> None:
        """Recognises clips of so many users at a time, each of whom waits for one result."""
        ...


class Stock:
    """`WhisperModel.transcribe`, called from a thread for each user; the threads are split over `workers` models."""

    def __init__(self, threads: int, beam: int, workers: int = 1) -> None:
        self._model = _stock_model(max(1, threads // workers), workers)
        self._beam = beam

    def one(self, clip: Pcm) -> str:
        segments, _ = self._model.transcribe(_floats(clip), language=LANGUAGE, beam_size=self._beam)
        return " ".join(segment.text.strip() for segment in segments)

    def many(self, clips: Sequence[Pcm], concurrency: int) -> None:
        with ThreadPoolExecutor(concurrency) as users:
            list(users.map(self.one, clips))


class StockWorkers(Stock):
    """The same with as many models as threads."""

    def __init__(self, threads: int, beam: int) -> None:
        super().__init__(threads, beam, workers=threads)


class StockBatched:
    """`BatchedInferencePipeline`, given the waiting clips as the chunks of one sound."""

    def __init__(self, threads: int, beam: int) -> None:
        from faster_whisper import BatchedInferencePipeline

        self._pipeline: Any = BatchedInferencePipeline(_stock_model(threads, 1))
        self._beam = beam

    def one(self, clip: Pcm) -> str:
        return self._together([clip])

    def many(self, clips: Sequence[Pcm], concurrency: int) -> None:
        for at in range(0, len(clips), concurrency):
            self._together(clips[at : at + concurrency])

    def _together(self, clips: Sequence[Pcm]) -> str:
        ends = np.cumsum([len(clip) for clip in clips]) / SPEECH_RATE_HZ
        starts = [0.0, *ends[:-1]]
        segments, _ = self._pipeline.transcribe(
            _floats(np.concatenate(clips)),
            language=LANGUAGE,
            beam_size=self._beam,
            batch_size=len(clips),
            clip_timestamps=[
                {"start": float(start), "end": float(end)} for start, end in zip(starts, ends, strict=True)
            ],
        )
        return " ".join(segment.text.strip() for segment in segments)


class Ours:
    """The adapter, given the batches that the scheduler would form."""

    def __init__(self, threads: int, beam: int) -> None:
        from modalities.adapters.faster_whisper import FasterWhisper, WhisperSettings

        self._recognizer = FasterWhisper(WhisperSettings(threads=threads, beam=beam))

    def one(self, clip: Pcm) -> str:
        return self._recognizer.recognize([Clip(clip, LANGUAGE)])[0].text

    def many(self, clips: Sequence[Pcm], concurrency: int) -> None:
        for batch in batches(clips, concurrency):
            self._recognizer.recognize([Clip(clip, LANGUAGE) for clip in batch])


CONTENDERS = {"stock": Stock, "stock, workers": StockWorkers, "stock, batched": StockBatched, "ours": Ours}


def batches(clips: Sequence[Pcm], concurrency: int) -> list[list[Pcm]]:
    """Returns clips as a worker gets them: of what waits, the first and those that may go with it."""
    left = list(clips)
    formed = []
    while left:
        waiting = left[:concurrency]
        shapes = [shape_of(Transcribe(0, len(clip))) for clip in waiting]
        formed.append([clip for clip, shape in zip(waiting, shapes, strict=True) if shape == shapes[0]])
        left = [clip for clip, shape in zip(waiting, shapes, strict=True) if shape != shapes[0]] + left[
            concurrency:
        ]
    return formed


class Apart:
    """A contender in its own process. Use it as a context manager."""

    def __init__(self, name: str, threads: int, beam: int) -> None:
        for variable in THREAD_VARIABLES:
            os.environ[variable] = str(threads)
        self._process = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), initializer=_load, initargs=(name, threads, beam)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.shutdown()

    def one(self, clip: Pcm) -> tuple[float, str]:
        """Returns the seconds that a clip took, and its text."""
        return self._process.submit(_one, clip).result()

    def many(self, clips: Sequence[Pcm], concurrency: int) -> float:
        """Returns the seconds that the clips took."""
        return self._process.submit(_many, clips, concurrency).result()


_loaded: list[Contender] = []
"""What this process holds: one contender, loaded once."""


def _load(name: str, threads: int, beam: int) -> None:
    _loaded.append(CONTENDERS[name](threads, beam))


def _one(clip: Pcm) -> tuple[float, str]:
    begin = time.perf_counter()
    text = _loaded[0].one(clip)
    return time.perf_counter() - begin, text


def _many(clips: Sequence[Pcm], concurrency: int) -> float:
    begin = time.perf_counter()
    _loaded[0].many(clips, concurrency)
    return time.perf_counter() - begin


def _stock_model(threads: int, workers: int) -> Any:  # a vendor's type
    from faster_whisper import WhisperModel

    folder = package_file(*SAME_MODEL)
    if folder is None:
        raise LookupError(f"the package {SAME_MODEL[0]} is not installed: chorale models install")
    return WhisperModel(
        str(folder), device="cpu", compute_type="int8", cpu_threads=threads, num_workers=workers
    )


def _floats(clip: Pcm) -> NDArray[np.float32]:
    return clip.astype(np.float32) / np.float32(32768)
