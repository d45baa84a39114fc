"""A transcript as it is told: the bodies of ``POST /v1/audio/transcriptions``."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class Lasted(Struct, frozen=True):
    """How much sound was heard; begun seconds count."""

    seconds: int
    type: Literal["duration"] = "duration"


class Transcript(Struct, frozen=True):
    """What is said in a file."""

    text: str
    usage: Lasted


class TimedWord(Struct, frozen=True):
    """A word; seconds from the file's beginning."""

    word: str
    start: float
    end: float


class TimedSegment(Struct, frozen=True):
    """A stretch of a transcript; seconds from the file's beginning. `seek`, `tokens` and `temperature` say nothing
    here."""

    id: int
    start: float
    end: float
    text: str
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float
    seek: int = 0
    tokens: tuple[int, ...] = ()
    temperature: float = 0.0


class VerboseTranscript(Struct, frozen=True):
    """What is said in a file, and when. `language` is a code; `segments` and `words` are there where they were asked
    for."""

    language: str
    duration: float
    text: str
    usage: Lasted
    segments: tuple[TimedSegment, ...] | UnsetType = UNSET
    words: tuple[TimedWord, ...] | UnsetType = UNSET
    task: Literal["transcribe"] = "transcribe"
