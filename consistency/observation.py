"""What the consistency engine knows of one user: one modality's claim, with its place on the session clock."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Modality = Literal["speech", "text", "caption", "form"]
"""speech: what a recogniser heard; text: what was typed; caption: a client's transcript; form: structured tokens."""

VECTOR_DIMENSIONS = 128
VECTOR_ONE = 32_767
"""The int16 that stands for 1.0 in a vector."""

NO_VECTOR: NDArray[np.int16] = np.zeros(0, dtype=np.int16)


@dataclass(frozen=True, slots=True)
class Fact:
    """A typed value of a text. Two facts of one kind agree if and only if their `value` is equal.

    Kinds: number, ordinal, time (``19:30``; ``7:30`` where the half of the day is open), half_day (``am``, ``pm``),
    weekday, relative_day (``+1``), date (``--12-24``, ``2026-12-24``), duration (seconds), money (``USD 15.00``),
    negation (``not``), polarity (the antonym pair and its side: ``on/off:on``), spelling (letters). `start` and `stop`
    are characters of the text, -1 where a fact was not read from it.
    """

    kind: str
    value: str
    start: int = -1
    stop: int = -1


@dataclass(frozen=True, slots=True)
class Word:
    """A recognised word with the recogniser's probability in [0, 1] and its place on the session clock."""

    text: str
    probability: float
    start_us: int
    stop_us: int


@dataclass(frozen=True, slots=True)
class Token:
    """A structured unit: the value of a slot of an intent. `slot` empty: the intent alone. `act`: inform or request.
    `service` groups intents that share slots; empty where the domain has none, or the intent alone tells it.

    `start` and `stop` are characters of the text it was found in, -1 where it was inferred or given by a client.
    """

    intent: str
    slot: str = ""
    value: str = ""
    act: Literal["inform", "request"] = "inform"
    confidence: float = 1.0
    start: int = -1
    stop: int = -1
    service: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """One modality's claim about what the user means, said between `start_us` and `stop_us`.

    `normal` is the normalised text (lower case, digits, contractions opened). `vector` is the whitened sentence vector:
    int16, `VECTOR_DIMENSIONS` long and of length `VECTOR_ONE`, empty where there is none. `prosody` are standardised
    numbers, empty where there was no sound: an absent modality is never a measured zero. `log_probability` is the
    recogniser's mean per token, `likeness` cosines with what
    a domain describes (`rules.Likeness`), `revision` counts the passes over one utterance (draft, final, repeated).
    `alternatives` are the recogniser's likeliest texts with the logarithms of their probabilities, where it was asked.
    """

    id: str
    modality: Modality
    start_us: int
    stop_us: int
    text: str
    normal: str = ""
    facts: tuple[Fact, ...] = ()
    vector: NDArray[np.int16] = field(default_factory=lambda: NO_VECTOR)
    words: tuple[Word, ...] = ()
    tokens: tuple[Token, ...] = ()
    intent: str | None = None
    confidence: float = 1.0
    log_probability: float = 0.0
    no_speech_probability: float = 0.0
    prosody: tuple[float, ...] = ()
    revision: int = 0
    likeness: tuple[tuple[str, float], ...] = ()
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ForcedScore:
    """How well a text fits sound (log probabilities of its tokens under the recogniser): of the typed text and of what
    was recognised, by the same encoder output. Natural logarithms.

    `apart`: recognised words, those of the text in their place, and how much likelier these are (logarithm of the
    ratio). At `rung` 3 the second recogniser judged.
    """

    text: str
    total: float
    mean: float
    lowest: float
    recognised_total: float
    recognised_mean: float
    recognised_lowest: float
    apart: tuple[tuple[str, str, float], ...] = ()
    rung: int = 0
