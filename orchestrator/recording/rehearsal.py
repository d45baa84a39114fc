"""Runs a scenario: a session on virtual time takes its inputs, and its story is held to what is expected."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.recording.expectations import check
from orchestrator.recording.inputs import Input, in_order, inputs_of
from orchestrator.recording.journal import load
from orchestrator.recording.replay import replay
from orchestrator.recording.scenario import Input as Written
from orchestrator.recording.scenario import Miss, Scenario, ScenarioFaulty
from orchestrator.recording.scripted import Meaning, Script, Spoken, loud_extent
from orchestrator.recording.sound import Delivery
from orchestrator.recording.stage import MakeCompany, Performed, Tell, perform
from orchestrator.recording.story import Story, tell
from orchestrator.recording.written_rules import faults_of, read_rules, recorded_rules
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire import codec
from orchestrator.wire.session import EXTENSION_EVENTS, Session
from orchestrator.wire.update import initial

ReadSound = Callable[[Path], Pcm]
"""Reads a recording as 16 kHz int16 mono. Raises `OSError`, `ValueError`."""

_LINK = "client"
_DELIVERY = SPEECH_RATE_HZ // 50
_TAIL_S = 2.5
_TONE_HZ = 220.0
_LOUDNESS = 8_000.0


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """How a scenario went."""

    performed: Performed
    story: Story
    misses: tuple[Miss, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario as a session: what it starts with, what is done to it, what a script says of it."""

    view: Session
    rules: SessionRules
    inputs: list[Input]
    script: Script


def rehearse(
    prepared: Prepared, scenario: Scenario, make: MakeCompany, name: str, progress: Tell | None = None
) -> Rehearsed:
    """Plays a prepared scenario. What came out is replayed, too: a run that cannot be repeated proves nothing."""
    performed = perform(prepared.view, prepared.rules, prepared.inputs, make, name, tell=progress)
    journal = performed.journal
    misses = check(scenario.expect, story := tell(journal, prepared.rules))
    for difference in replay(journal, prepared.rules).differences[:1]:
        misses.append(
            Miss(f"replay, {difference.about}", difference.at_us, difference.expected, difference.got)
        )
    return Rehearsed(performed, story, tuple(misses))


def prepare(scenario: Scenario, folder: Path, read_sound: ReadSound, today: SessionRules) -> Prepared:
    """Reads what a scenario names, relative to its folder. Raises `ScenarioFaulty`, `WireError`, `JournalDamaged`."""
    for fault in faults_of(scenario.rules, today):
        raise ScenarioFaulty(f"rules: {fault}")
    rules = read_rules(scenario.rules, today)
    if scenario.journal is not None:
        try:
            journal = load(folder / scenario.journal)
        except OSError as error:
            raise ScenarioFaulty(f"journal: cannot read {scenario.journal}: {error.strerror}") from None
        rules = recorded_rules({**journal.header.rules, **scenario.rules}, today)
        script = _script(scenario, ())
        return Prepared(journal.header.session, rules, inputs_of(journal), script)
    kind = LinkKind.CALL if scenario.link == "call" else LinkKind.WEBSOCKET
    inputs = [Input(0, on.LinkJoined(_LINK, kind))]
    placed: list[tuple[Written, Pcm]] = []
    for one in scenario.inputs:
        pcm = _sound(one, folder, read_sound)
        if pcm is not None:
            placed.append((one, pcm))
        else:
            inputs.append(Input(_us(one.at), _said(one)))
    inputs += [Input(one.at_us, one) for one in _stream(placed, kind is LinkKind.CALL)]
    spoken = tuple(_spoken(one, pcm) for one, pcm in placed)
    return Prepared(_view(scenario, rules), rules, in_order(inputs), _script(scenario, spoken))


def _spoken(one: Written, pcm: Pcm) -> Spoken:
    start, stop = loud_extent(pcm)
    at = _samples(one.at)
    return Spoken(at + start, at + stop, one.words if one.heard is None else one.heard)


def _view(scenario: Scenario, rules: SessionRules) -> Session:
    defaults = Session(id="", model="chorale", expires_at=0, instructions=rules.instructions)
    asked: dict[str, Any] = {
        "type": "realtime",
        "audio": {"input": {"transcription": {"model": "whisper-1"}}},
        "chorale": {"typed_turns": True, "events": list(EXTENSION_EVENTS)},
    }
    return initial("sess_scenario", None, 0, defaults, msgspec.json.encode(_merged(asked, scenario.session)))


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        result[name] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _script(scenario: Scenario, spoken: tuple[Spoken, ...]) -> Script:
    written = scenario.script
    meanings = {
        text.strip().lower(): Meaning(one.intent, one.slots) for text, one in written.meanings.items()
    }
    return Script(spoken, written.replies, meanings, written.takes)


def _sound(one: Written, folder: Path, read_sound: ReadSound) -> Pcm | None:
    if one.audio is not None:
        try:
            return read_sound(folder / one.audio)
        except (OSError, ValueError) as error:
            raise ScenarioFaulty(f"audio: cannot read {one.audio}: {error}") from None
    if one.speech is not None:
        times = np.arange(_samples(one.speech)) / SPEECH_RATE_HZ
        return (_LOUDNESS * np.sin(2 * np.pi * _TONE_HZ * times)).astype(np.int16)
    return None


def _stream(placed: list[tuple[Written, Pcm]], live: bool) -> list[Delivery]:
    """Lays sounds into one stream of silence, as a microphone that is always on gives it: 20 ms at a time."""
    if not placed:
        return []
    stop = max(_samples(one.at) + len(pcm) for one, pcm in placed) + _samples(_TAIL_S)
    stream = np.zeros(-(-stop // _DELIVERY) * _DELIVERY, np.int32)
    for one, pcm in placed:
        start = _samples(one.at)
        stream[start : start + len(pcm)] += pcm
    whole = stream.clip(-32_768, 32_767).astype(np.int16)
    return [
        Delivery(
            (start + _DELIVERY) * 1_000_000 // SPEECH_RATE_HZ, start, whole[start : start + _DELIVERY], live
        )
        for start in range(0, len(whole), _DELIVERY)
    ]


def _said(one: Written) -> on.ClientSaid | on.EndAsked:
    if one.hang_up:
        return on.EndAsked("hang-up")
    event: dict[str, Any]
    if one.text is not None:
        part = {"type": "input_text", "text": one.text}
        event = {
            "type": "conversation.item.create",
            "item": {"type": "message", "role": "user", "content": [part]},
        }
    elif one.tokens is not None:
        slots = [{"name": name, "value": value} for name, value in one.tokens.items()]
        event = {"type": "chorale.token", "slots": slots, "intent": one.intent}
    else:
        event = one.event or {}
    return on.ClientSaid(_LINK, codec.decode_client(msgspec.json.encode(event)), 0, _us(one.at))


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _samples(seconds: float) -> int:
    return round(seconds * SPEECH_RATE_HZ)
