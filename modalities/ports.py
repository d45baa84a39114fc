"""What the server needs of a model, whoever makes it. Engines live in worker processes; every method blocks.

An adapter implements one of these Protocols; `adapters/registry.py` maps a configuration name to its factory. Sound is
mono int16 numpy arrays with the sample rate beside it; recognisers take 16 kHz.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Pcm = NDArray[np.int16]

SPEECH_RATE_HZ = 16_000
"""Rate of the speech timeline: voice activity detection, rings and recognisers."""


@dataclass(frozen=True, slots=True)
class Word:
    """One recognised word; times in seconds from the clip's first sample, probability in [0, 1]."""

    text: str
    start_s: float
    stop_s: float
    probability: float


@dataclass(frozen=True, slots=True)
class Clip:
    """A stretch of speech to recognise: `pcm` is int16 mono at 16 kHz, of any length.

    `draft` asks for the cheapest pass (partials: no fallback ladder, no word times). `rung` is where the ladder starts
    (0 = short encoder, 1 = full length, 2 = beam 5, 3 = the second recogniser where there is one, else as 2). `prompt`
    biases recognition (names, jargon). What was heard in a clip with a `key` is kept for a while, for a `Scorer`. So
    many `alternatives` to the text are asked for.
    """

    pcm: Pcm
    language: str | None = None
    prompt: str | None = None
    draft: bool = False
    rung: int = 0
    key: str = ""
    alternatives: int = 0


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the likeliest texts of a clip, with the natural logarithm of its probability, all tokens together."""

    text: str
    log_probability: float


@dataclass(frozen=True, slots=True)
class Recognition:
    """What a recogniser made of one clip. `rung` is the step of the ladder that produced it. `alternatives`: the
    likeliest first, the text itself mostly among them."""

    text: str
    words: tuple[Word, ...] = ()
    language: str = "en"
    average_logprob: float = 0.0
    no_speech_probability: float = 0.0
    compression_ratio: float = 0.0
    rung: int = 0
    alternatives: tuple[Alternative, ...] = ()


class SpeechRecognizer(Protocol):
    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        """Returns one result per clip, in order. The result of a clip does not depend on its company."""
        ...


@runtime_checkable
class EachRecognizer(Protocol):
    """A `SpeechRecognizer` whose results need not wait for each other."""

    def recognize_each(self, clips: Sequence[Clip]) -> Iterator[tuple[int, Recognition]]:
        """Yields each clip's place and what `recognize` would return for it, once each, as soon as it is certain."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """Texts that may have been said in a clip, and what was recognised there. What was heard under the clip's `key` is
    read again; where that is gone the clip is heard anew. At rung 3 the second recogniser judges."""

    clip: Clip
    recognised: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Words of a text that stand in the place of recognised ones, and how much likelier they are there (natural
    logarithm of the ratio). One side is empty where words are missing or added."""

    recognised: str
    text: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a text fits a clip: natural logarithms of its tokens' probabilities, summed, mean and lowest.
    `text` is the spelling that fits best, `differences` are those from what was recognised."""

    text: str
    total: float
    mean: float
    lowest: float
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Fits:
    """What a `Scorer` found about one claim: the fit of what was recognised, and of each text in order."""

    recognised: Fit
    texts: tuple[Fit, ...]


@runtime_checkable
class Scorer(Protocol):
    def score(self, claims: Sequence[Claim]) -> list[Fits | None]:
        """Returns one result per claim, in order, None where it cannot be told (a clip of over 30 s, no sound). The
        result of a claim does not depend on its company."""
        ...


@dataclass(frozen=True, slots=True)
class Image:
    """An image as a data URI, PNG or JPEG. `detail`: auto, low, high, or nothing said."""

    url: str = field(repr=False)
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One entry of a prompt. `role`: system, user, assistant or tool. `tool_calls` belong to assistant entries,
    `tool_call_id` to tool entries (the output of that call). `images`, behind the words of a user, are for models that
    see; others are given none."""

    role: str
    content: str = ""
    tool_calls: tuple["ToolCall", ...] = ()
    tool_call_id: str | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model wants made; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call; `parameters` is a JSON Schema object as JSON text."""

    name: str
    description: str = ""
    parameters: str = '{"type":"object","properties":{}}'


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything a language model needs for one reply.

    `tool_choice`: ``auto``, ``none``, ``required`` or the name of one tool behind ``=`` (``=get_weather``).
    `cache_key` is the same for successive prompts of one session, so that an engine can reuse its prefix.
    `max_tokens` None leaves the limit to the engine's configuration. `whole`: a prompt that does not fit is refused
    (`PromptTooLong`), not shortened. An engine that samples does it by `seed`, where
    one is given: a repeat of the same prompt then says the same again, and can continue what a lost run had begun.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    cache_key: str = ""
    seed: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of tool call `index`; `name` and `call_id` are set in a call's first delta only."""

    index: int
    arguments: str
    name: str | None = None
    call_id: str | None = None


ReplyDelta = TextDelta | ToolCallDelta


@dataclass(frozen=True, slots=True)
class Completion:
    """How a reply ended. `finish_reason`: ``stop``, ``length``, ``tool_calls`` or ``cancelled``."""

    finish_reason: str
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = field(default=())


class LanguageModel(Protocol):
    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        """Calls `emit` for every delta; stops within one decoding step once `emit` returns False.

        A `TextDelta` without text says nothing: an engine that waits asks with it whether the reply is still wanted.
        Safe to call from several threads at once, up to the engine's configured parallelism.
        """
        ...


class SpeechSynthesizer(Protocol):
    @property
    def sample_rate_hz(self) -> int:
        """The rate of what `synthesize` yields."""
        ...

    def synthesize(self, text: str, speed: float = 1.0) -> Iterator[Pcm]:
        """Yields the sound of one sentence in chunks, as soon as each exists. `speed` 1.0 is the voice's own."""
        ...


class Embedder(Protocol):
    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns unit-length rows, shape (len(texts), dimensions)."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """An `Embedder` that knows how it reads texts."""

    @property
    def longest_text(self) -> int:
        """How many tokens of a text it reads; what comes behind them has no effect."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns how many tokens each text has, the model's own marks among them."""
        ...


@dataclass(frozen=True, slots=True)
class Slot:
    """A named value found in a text; `start`/`stop` are character offsets, -1 where it was inferred."""

    name: str
    value: str
    start: int = -1
    stop: int = -1
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Understanding:
    """What a text means: its vector, best intent (None where nothing fits) with confidence, and slots. `likeness`: how
    like it is to each intent and service of the domain (cosines), as ``intent:SERVICE.NAME`` and ``service:NAME``."""

    vector: NDArray[np.float32]
    intent: str | None = None
    confidence: float = 0.0
    slots: tuple[Slot, ...] = ()
    likeness: Mapping[str, float] = field(default_factory=dict)


class Understander(Protocol):
    def understand(self, texts: Sequence[str]) -> list[Understanding]:
        """Returns one understanding per text, in order."""
        ...


@runtime_checkable
class EmbeddingUnderstander(Protocol):
    """An `Understander` that shows whose vectors it goes by."""

    @property
    def embedder(self) -> Embedder:
        """The embedder itself."""
        ...


class VoiceActivityDetector(Protocol):
    @property
    def window(self) -> int:
        """Samples per decision at 16 kHz (512 = 32 ms for Silero)."""
        ...

    def new_state(self) -> NDArray[np.float32]:
        """Returns the state of a fresh stream: one float32 row."""
        ...

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Judges one window of each of n streams together: (n, window) samples in [-1, 1] and (n, state) rows.

        Returns speech probabilities (n,) and the new states (n, state).
        """
        ...
