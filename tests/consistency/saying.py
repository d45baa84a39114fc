"""Observations as tests write them: what was said or typed, and when, in seconds."""

from consistency.observation import Fact, ForcedScore, Modality, Observation, Token

NUMBERS = {"fifteen": "15", "fifty": "50", "15": "15", "50": "50", "seven": "7", "eight": "8"}


def said(
    text: str,
    at: float,
    modality: Modality = "speech",
    id: str = "",
    tokens: tuple[Token, ...] = (),
    revision: int = 0,
    lasts: float = 1.0,
) -> Observation:
    """Something that was said at second `at`; numbers in it are facts."""
    facts = []
    for word in text.split():
        if (number := NUMBERS.get(word.strip(".,?"))) is not None:
            start = text.index(word)
            facts.append(Fact("number", number, start, start + len(word)))
    start_us = round(at * 1_000_000)
    return Observation(
        id=id or f"{modality}@{at}",
        modality=modality,
        start_us=start_us,
        stop_us=start_us + (round(lasts * 1_000_000) if modality == "speech" else 0),
        text=text,
        normal=text.lower().strip(" .?!"),
        facts=tuple(facts),
        tokens=tokens,
        revision=revision,
    )


def typed(text: str, at: float, id: str = "", tokens: tuple[Token, ...] = ()) -> Observation:
    return said(text, at, "text", id, tokens)


def form(at: float, id: str = "", **slots: str) -> Observation:
    """A form that was sent."""
    tokens = tuple(Token("", slot, value) for slot, value in slots.items())
    return said("", at, "form", id, tokens)


def slot(name: str, value: str, intent: str = "book") -> Token:
    return Token(intent, name, value)


def scored(text: str, ratio: float) -> ForcedScore:
    """How well a text fits: `ratio` is how much likelier it is than what was recognised."""
    return ForcedScore(text, -10.0 + ratio, -1.0, -3.0, -10.0, -1.0, -2.0)
