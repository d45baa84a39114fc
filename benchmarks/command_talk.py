"""One command as a conversation with the session's heart: said, typed, filled in; the user answers what he is asked.

The conversation runs on virtual time. Where the server asks, the user says the right one of both readings, or the whole
command again where neither is right, in the same air as before; the conversation is then played once more with that.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import msgspec
import numpy as np

from benchmarks.command_lines import Line
from benchmarks.command_work import Models
from modalities.ports import SPEECH_RATE_HZ, Pcm
from modalities.text.facts import facts_and_form
from orchestrator.recording.inputs import Input, in_order
from orchestrator.recording.sound import Delivery
from orchestrator.recording.stage import perform
from orchestrator.recording.story import Story, tell
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire import codec
from orchestrator.wire.session import EXTENSION_EVENTS, Session
from orchestrator.wire.update import initial

Arm = Literal["off", "later", "ask"]
ARMS: tuple[Arm, ...] = ("off", "later", "ask")
"""Without the engine; with it as it ships (`consistency.policy: later`); with leave to ask the user (`ask`)."""

Speak = Callable[[str, int], Pcm]
"""Says a text, as it comes through the air; another number is another moment's noise."""

MOST_ANSWERS = 2
_LINK = "client"
_BEGINS_S = 0.5
_READS_S = 1.2
"""What a user takes from a question to the beginning of his answer."""
_STEP = SPEECH_RATE_HZ * 60 // 1_000
_TAIL_S = 2.5
_COMPLETED = "conversation.item.input_audio_transcription.completed"
_QUESTION = re.compile(r"^Sorry, (?P<one>.+) or (?P<other>.+)\?$")
_AGAIN = re.compile(r"again\?$")


@dataclass(frozen=True, slots=True)
class Went:
    """How a conversation went. `slots`: what is committed in the end, in comparable form. `answered_s`: when the first
    utterance's transcript was told, None where none was. `turns`: what the user said or typed, his answers too."""

    slots: Mapping[str, str]
    heard: tuple[str, ...]
    questions: tuple[str, ...]
    verdicts: tuple[str, ...]
    answered_s: float | None
    turns: int


@dataclass(frozen=True, slots=True)
class _Saying:
    at_s: float
    sound: Pcm

    @property
    def stop_s(self) -> float:
        return self.at_s + len(self.sound) / SPEECH_RATE_HZ


@lru_cache(maxsize=4_096)
def comparable(value: str) -> str:
    """Returns a slot's value as it is compared: its typed facts, else its words in normal form without an article.
    "8.30" is a time here, as it is behind "at"."""
    facts, normal = facts_and_form(re.sub(r"^(\d{1,2})\.([0-5]\d)$", r"\1:\2", value))
    named = sorted(f"{one.kind} {one.value}" for one in facts if one.kind not in ("polarity", "half_day"))
    if named:
        return ", ".join(named)
    return re.sub(r"^(the|a|an) ", "", re.sub(r"[^\w ]", "", normal)).strip()


def meant(line: Line) -> dict[str, str]:
    """Returns the truth of a command, in comparable form."""
    return {slot: comparable(value.spoken) for slot, value in line.meant.items()}


def converse(line: Line, arm: Arm, models: Models, speak: Speak, seed: int) -> Went:
    """Plays a command to a session of the server."""
    rules = _rules(models.rules(line.domain), arm)
    sayings, written = _opening(line, speak, seed)
    questions: list[str] = []
    while True:
        story = _played(sayings, written, rules, models, line.domain)
        asked = [one for one in story.said if one.role == "assistant" and _is_question(one.words)]
        if len(asked) <= len(questions) or len(questions) == MOST_ANSWERS:
            break
        question = asked[len(questions)]
        questions.append(question.words)
        at_s = max(question.at_us / 1e6 + _READS_S, max(one.stop_s for one in sayings) + 0.1)
        answer = speak(answer_to(question.words, line), seed + len(questions))
        sayings = [*sayings, _Saying(at_s, answer)]
    slots = _plain_slots(story, written) if arm == "off" else story.slots
    completed = story.of(_COMPLETED)
    verdicts = [one.text for one in story.of("chorale.verdict")]
    return Went(
        {slot: comparable(value) for slot, value in slots.items()},
        tuple(one.words for one in story.said if one.role == "user"),
        tuple(one.words for one in asked),
        tuple(verdicts),
        completed[0].at_us / 1e6 if completed else None,
        len(sayings) + len(written),
    )


def answer_to(question: str, line: Line) -> str:
    """Returns what the user says: the value of his that is one of both readings, else the command again."""
    found = _QUESTION.match(question)
    if found is None:
        return line.said
    readings = {comparable(found["one"]), comparable(found["other"])}
    right = [value.spoken for value in line.meant.values() if comparable(value.spoken) in readings]
    return right[0] if len(right) == 1 else line.said


def _is_question(words: str) -> bool:
    return bool(_QUESTION.match(words) or _AGAIN.search(words))


def _opening(line: Line, speak: Speak, seed: int) -> tuple[list[_Saying], list[tuple[float, dict[str, Any]]]]:
    """Returns what is said first, and what is typed or filled in beside it, with its times."""
    drawn = np.random.default_rng([seed, *line.id.encode()])
    if line.way == "corrected":
        first = _Saying(_BEGINS_S, speak(line.mistaken().said, seed))
        again = f"no, {line.meant[line.slip[0]].spoken}"
        return [first, _Saying(first.stop_s + 0.3, speak(again, seed))], []
    saying = _Saying(2.0 if line.way != "spoken" else _BEGINS_S, speak(line.said, seed))
    before = drawn.random() < 0.3
    at_s = 0.8 if before else saying.stop_s + float(drawn.uniform(-0.4, 1.2))
    other = line.mistaken() if line.way.endswith("slip") else line
    match line.way:
        case "typed_same" | "typed_slip":
            return [saying], [(at_s, _typed(other.typed))]
        case "form_same" | "form_slip":
            return [saying], [(at_s, _form({slot: one.typed for slot, one in other.meant.items()}))]
        case _:
            return [saying], []


def _typed(text: str) -> dict[str, Any]:
    part = {"type": "input_text", "text": text}
    return {
        "type": "conversation.item.create",
        "item": {"type": "message", "role": "user", "content": [part]},
    }


def _form(slots: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "chorale.token", "slots": [{"name": name, "value": one} for name, one in slots.items()]}


def _played(
    sayings: Sequence[_Saying],
    written: Sequence[tuple[float, dict[str, Any]]],
    rules: SessionRules,
    models: Models,
    domain: str,
) -> Story:
    inputs = [Input(0, on.LinkJoined(_LINK, LinkKind.WEBSOCKET))]
    for at_s, event in written:
        decoded = codec.decode_client(msgspec.json.encode(event))
        at_us = round(at_s * 1e6)
        inputs.append(Input(at_us, on.ClientSaid(_LINK, decoded, 0, at_us)))
    inputs += _stream(sayings)
    view = Session(id="", model="chorale", expires_at=0, output_modalities=("text",))
    asked = {
        "type": "realtime",
        "audio": {"input": {"transcription": {"model": "whisper-1"}}},
        "chorale": {"typed_turns": True, "events": list(EXTENSION_EVENTS)},
    }
    view = initial("sess_command", None, 0, view, msgspec.json.encode(asked))
    performed = perform(view, rules, in_order(inputs), lambda: models.company(domain))
    models.check()
    return tell(performed.journal, rules)


def _rules(rules: SessionRules, arm: Arm) -> SessionRules:
    """Partial transcripts are left out: they change no verdict here, and cost most of the recogniser's time."""
    consistency = replace(
        rules.consistency,
        enabled=arm != "off",
        asks=arm == "ask",
        engine=replace(rules.consistency.engine, policy="ask" if arm == "ask" else "later"),
    )
    return replace(rules, draft_every_us=3_600_000_000, speech_output=False, consistency=consistency)


def _stream(sayings: Sequence[_Saying]) -> list[Input]:
    """Lays what is said into one stream, as a microphone in a quiet room that is always on gives it."""
    stop = round((sayings[-1].stop_s + _TAIL_S) * SPEECH_RATE_HZ)
    stream = np.random.default_rng(0).normal(0, 2, -(-stop // _STEP) * _STEP)
    for one in sayings:
        start = round(one.at_s * SPEECH_RATE_HZ)
        stream[start : start + len(one.sound)] += one.sound
    whole = np.clip(np.round(stream), -32_768, 32_767).astype(np.int16)
    return [
        Input(
            (start + _STEP) * 1_000_000 // SPEECH_RATE_HZ,
            Delivery(
                (start + _STEP) * 1_000_000 // SPEECH_RATE_HZ, start, whole[start : start + _STEP], False
            ),
        )
        for start in range(0, len(whole), _STEP)
    ]


def _plain_slots(story: Story, written: Sequence[tuple[float, dict[str, Any]]]) -> dict[str, str]:
    """Returns what a server without the engine takes for meant: of each slot what came last in the conversation."""
    began = {one.item_id: one.at_us for one in story.said}
    found: list[tuple[int, dict[str, str]]] = []
    for told in story.of("chorale.token"):
        slots = told.event.get("slots")
        if isinstance(slots, list | tuple):
            item_id = str(told.event.get("item_id"))
            found.append((began.get(item_id, told.at_us), {one["name"]: one["value"] for one in slots}))
    for at_s, event in written:
        if event["type"] == "chorale.token":
            found.append((round(at_s * 1e6), {one["name"]: one["value"] for one in event["slots"]}))
    found.sort(key=lambda one: one[0])
    return {slot: value for _, slots in found for slot, value in slots.items()}
