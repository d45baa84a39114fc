"""A session as a test: ``*.session.yaml`` says what is done to it and what must come of it (docs/replay.md). Pure."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from orchestrator.errors import ChoraleError
from orchestrator.recording.faults import explain
from orchestrator.recording.places import Step, doubles, line_of, named

SUFFIX = ".session.yaml"

VerdictName = Literal["accept", "suspect", "freeze", "ask", "roll_back"]

INPUTS = ("audio", "speech", "text", "tokens", "event", "hang_up")
"""What an input is; one of them."""

KINDS = ("asr", "understand", "llm", "speech")
"""Kinds of work that a script may take time for."""

_MOST_SPEECH_S = 600.0


class ScenarioFaulty(ChoraleError):
    """A scenario cannot be read; the text names the file, and the line and the field where there are such."""

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
    """Only what is named is checked. `conflicts`, `rollbacks` and `replies` are a number or conditions; 0: there is
    none. `freezes` and `questions`: turns that were frozen, that were asked about. `verdict`: the last one of all, or
    of each turn that is named. `slots`: what is committed in the end, null: nothing is. `other_slots`: how many
    besides. `intent`: of what was committed last; null: nothing is."""

    words: tuple[str, ...] | None = None
    slots: dict[str, str | None] | None = None
    other_slots: int | None = None
    intent: str | UnsetType | None = UNSET
    conflicts: int | tuple[Conflict, ...] | None = None
    freezes: int | None = None
    questions: int | None = None
    verdict: VerdictName | dict[int, VerdictName] | None = None
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
    """Reads a scenario. Raises `ScenarioFaulty`: ``NAME:LINE: FIELD: what is wrong, what was expected``."""
    try:
        doubled = next(doubles(text), None)
        if doubled is not None:
            raise ScenarioFaulty(f"{name}:{doubled[0]}: {doubled[1]}: stands twice; expected once")
        scenario = msgspec.convert(yaml.safe_load(text), Scenario, strict=False)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f"{mark.line + 1}:"
        told = getattr(error, "problem", None) or str(error)
        raise ScenarioFaulty(f"{name}:{line} not YAML: {told}") from None
    except msgspec.ValidationError as error:
        steps, told = explain(str(error), Scenario)
        raise ScenarioFaulty(_placed(text, name, steps, told)) from None
    for steps, told in faults_of(scenario):
        raise ScenarioFaulty(_placed(text, name, steps, told))
    return scenario


def _placed(text: str, name: str, steps: tuple[Step, ...], told: str) -> str:
    field = f"{named(steps)}: " if steps else ""
    return f"{name}:{line_of(text, steps)}: {field}{told}"


def faults_of(scenario: Scenario) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yields what a scenario's types do not tell: where, and what is wrong."""
    if bool(scenario.inputs) == (scenario.journal is not None):
        yield ("inputs",), "expected inputs, or a journal to take them from"
    for at, one in enumerate(scenario.inputs):
        for field, told in _faults_of_input(one):
            yield ("inputs", at, *field), told
    for kind, takes in scenario.script.takes.items():
        if kind not in KINDS:
            yield ("script", "takes", kind), f"expected one of {', '.join(KINDS)}"
        elif not 0 <= takes < math.inf:
            yield ("script", "takes", kind), f"expected seconds from 0 on, got {takes}"
    yield from _faults_of_expected(scenario.expect)


def _faults_of_input(one: Input) -> Iterator[tuple[tuple[Step, ...], str]]:
    given = [kind for kind in INPUTS if getattr(one, kind) not in (None, False)]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        yield (), f"expected one of {', '.join(INPUTS)}, got {got}"
        return
    (kind,) = given
    if not 0 <= one.at < math.inf:
        yield ("at",), f"expected seconds from 0 on, got {one.at}"
    if one.speech is not None and not 0 < one.speech <= _MOST_SPEECH_S:
        yield (
            ("speech",),
            f"expected seconds of a tone, more than 0 and up to {_MOST_SPEECH_S:g}, got {one.speech}",
        )
    if one.event is not None and not isinstance(one.event.get("type"), str):
        yield ("event",), "expected a client event, with a type"
    for field, value, kinds in (
        ("words", one.words or None, ("audio", "speech")),
        ("heard", one.heard, ("audio", "speech")),
        ("intent", one.intent, ("tokens",)),
    ):
        if value is not None and kind not in kinds:
            yield (field,), f"expected beside {' or '.join(kinds)} only, not beside {kind}"


def _faults_of_expected(expected: Expected) -> Iterator[tuple[tuple[Step, ...], str]]:
    for name in ("conflicts", "freezes", "questions", "rollbacks", "replies", "errors", "other_slots"):
        value = getattr(expected, name)
        if isinstance(value, int) and value < 0:
            yield ("expect", name), f"expected a number from 0 on, got {value}"
    for name, tolerance in (
        ("word_errors", expected.tolerances.word_errors),
        ("extra_turns", expected.tolerances.extra_turns),
    ):
        if not 0 <= tolerance < math.inf:
            yield ("expect", "tolerances", name), f"expected a number from 0 on, got {tolerance}"
    if isinstance(expected.conflicts, tuple):
        for at, conflict in enumerate(expected.conflicts):
            start, stop = conflict.within or (0.0, 0.0)
            if not 0 <= start <= stop:
                yield (
                    ("expect", "conflicts", at, "within"),
                    f"expected [from, to] in seconds, got [{start}, {stop}]",
                )
    if isinstance(expected.replies, tuple):
        for at, reply in enumerate(expected.replies):
            if reply.number is not None and reply.number < 1:
                yield (
                    ("expect", "replies", at, "number"),
                    f"expected 1 for the first, 2 …, got {reply.number}",
                )
            try:
                re.compile(reply.matches or "")
            except re.error as error:
                told = f"expected a regular expression, got {reply.matches}: {error}"
                yield ("expect", "replies", at, "matches"), told


@dataclass(frozen=True, slots=True)
class Miss:
    """An expectation that was not met: which, where in the session, and both sides in words."""

    what: str
    at_us: int | None
    expected: str
    got: str
