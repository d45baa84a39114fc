"""A session as a test: ``*.session.yaml`` says what is done to it and what must come of it (docs/replay.md). Pure."""

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import yaml
from msgspec import Struct

from orchestrator.errors import ChoraleError

SUFFIX = ".session.yaml"


class ScenarioFaulty(ChoraleError):
    """A scenario cannot be read; the text names the field."""

    code = "scenario_faulty"


class Input(Struct, frozen=True, forbid_unknown_fields=True):
    """At `at` seconds one thing happens. `audio`: a recording, relative to the file. `speech`: seconds of a tone, where
    a script knows the words. `words`: what is said in either. `text`: a typed message. `tokens`: slots of a form.
    `event`: any client event."""

    at: float
    audio: str | None = None
    speech: float | None = None
    words: str = ""
    heard: str | None = None
    text: str | None = None
    tokens: dict[str, str] | None = None
    intent: str | None = None
    event: dict[str, Any] | None = None
    hang_up: bool = False


class Meaning(Struct, frozen=True, forbid_unknown_fields=True):
    intent: str | None = None
    slots: dict[str, str] = {}


class ScriptPart(Struct, frozen=True, forbid_unknown_fields=True):
    """What stands for models. `takes`: seconds by kind of work (asr, understand, llm, speech)."""

    replies: tuple[str, ...] = ("All right.",)
    meanings: dict[str, Meaning] = {}
    takes: dict[str, float] = {}


class Conflict(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict that must be reached; `about`: a part of its evidence. `within`: seconds [from, to]."""

    verdict: Literal["suspect", "freeze", "ask", "roll_back"] | None = None
    about: str = ""
    within: tuple[float, float] | None = None


class ReplyCondition(Struct, frozen=True, forbid_unknown_fields=True):
    """Of reply `number` (1 is the first; none: of any): what it contains, does not, and matches; how it ended."""

    number: int | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    matches: str | None = None


class Tolerances(Struct, frozen=True, forbid_unknown_fields=True):
    """`word_errors`: share of wrong words that is accepted in all that was said. `extra_turns`: turns beyond them."""

    word_errors: float = 0.0
    extra_turns: int = 0


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """Only what is named is checked. `conflicts`, `rollbacks` and `replies` are a number or conditions."""

    words: tuple[str, ...] | None = None
    slots: dict[str, str | None] | None = None
    conflicts: int | tuple[Conflict, ...] | None = None
    rollbacks: int | None = None
    replies: int | tuple[ReplyCondition, ...] | None = None
    errors: int | None = None
    tolerances: Tolerances = Tolerances()


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """`engines`: ``scripted`` (nothing is loaded), ``real`` (the defaults), or a configuration relative to the file.
    `journal`: a recording whose inputs are taken instead of `inputs`."""

    expect: Expected
    inputs: tuple[Input, ...] = ()
    journal: str | None = None
    about: str = ""
    link: Literal["websocket", "call"] = "websocket"
    session: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    engines: str = "scripted"
    script: ScriptPart = ScriptPart()


def parse(text: str, name: str) -> Scenario:
    """Reads a scenario. Raises `ScenarioFaulty`."""
    try:
        scenario = msgspec.convert(yaml.safe_load(text), Scenario, strict=False)
    except yaml.YAMLError as error:
        raise ScenarioFaulty(f"{name}: not YAML: {error}") from None
    except msgspec.ValidationError as error:
        raise ScenarioFaulty(f"{name}: {error}") from None
    _check(scenario, name)
    return scenario


def _check(scenario: Scenario, name: str) -> None:
    if bool(scenario.inputs) == (scenario.journal is not None):
        raise ScenarioFaulty(f"{name}: expected inputs, or a journal to take them from")
    for number, one in enumerate(scenario.inputs, 1):
        kinds = (one.audio, one.speech, one.text, one.tokens, one.event, one.hang_up or None)
        if sum(kind is not None for kind in kinds) != 1:
            raise ScenarioFaulty(
                f"{name}: input {number}: expected one of audio, speech, text, tokens, event, hang_up"
            )
    if isinstance(scenario.expect.replies, tuple):
        for reply in scenario.expect.replies:
            try:
                re.compile(reply.matches or "")
            except re.error as error:
                raise ScenarioFaulty(f"{name}: expect.replies: {reply.matches}: {error}") from None


@dataclass(frozen=True, slots=True)
class Miss:
    """An expectation that was not met: which, where in the session, and both sides in words."""

    what: str
    at_us: int | None
    expected: str
    got: str
