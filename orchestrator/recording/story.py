"""What a conversation came to, from its journal: who said what, and what the server made of it. Pure."""

import re
from dataclasses import dataclass

import msgspec

from orchestrator.recording.journal import Journal
from orchestrator.recording.replay import make_heart
from orchestrator.sessions import effects as do
from orchestrator.sessions.conversation import words_of
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire.items import FunctionCall, FunctionCallOutput, Message
from orchestrator.wire.session import EXTENSION_EVENTS

_TOLD = (
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.input_audio_transcription.failed",
    "conversation.item.truncated",
    "conversation.item.deleted",
    "response.created",
    "response.done",
    *EXTENSION_EVENTS,
)
"""Events for everyone that stand in the time line."""


VERDICTS = {
    "accept": "accepted",
    "suspect": "suspect, it is looked into",
    "freeze": "frozen, nothing of it counts until that is settled",
    "ask": "only the user can tell, and is asked",
    "roll_back": "rolled back",
}
"""What a verdict means."""

MOST_REASONS = 4
_OF_ITEM = re.compile(r"^(\w+) of \S+ in \S+$")
_OF_BEFORE = r"\1 of what came before"


@dataclass(frozen=True, slots=True)
class Said:
    """An item of the conversation in the end. `role`: user, assistant, system, call or result."""

    item_id: str
    at_us: int
    role: str
    words: str


@dataclass(frozen=True, slots=True)
class Told:
    """An event that everyone was told, as JSON values, or one for a person to read (`text`)."""

    at_us: int
    type: str
    event: dict[str, object]

    @property
    def text(self) -> str:
        """Says in a line what was told."""
        event = self.event
        match self.type:
            case "response.done":
                response = event["response"]
                assert isinstance(response, dict)
                return f"response {response.get('status')}"
            case "conversation.item.input_audio_transcription.completed":
                return f"heard: {event.get('transcript')}"
            case "chorale.verdict":
                verdict = str(event.get("verdict"))
                said = f"turn {event.get('unit')}: {VERDICTS.get(verdict, verdict)}"
                return (
                    f"{said}, unverified{_why(event)}"
                    if verdict == "accept" and event.get("verified") is False
                    else said + _why(event)
                )
            case "chorale.frozen":
                return f"turn {event.get('unit')} is frozen{_why(event)}"
            case "chorale.rolled_back":
                return f"what turn {event.get('unit')} has filled in leaves{_why(event)}"
            case "chorale.realigned":
                return f"corrected: {event.get('previous')} → {event.get('transcript')}"
            case "chorale.token":
                slots = event.get("slots")
                found = slots if isinstance(slots, list | tuple) else ()
                named = ", ".join(f"{slot['name']} = {slot['value']}" for slot in found)
                intent = event.get("intent")
                return (
                    f"noted: {', '.join([str(intent)] * bool(intent) + [named] * bool(named)) or 'nothing'}"
                )
            case _:
                return self.type


def _why(event: dict[str, object]) -> str:
    evidence = event.get("evidence")
    found = evidence if isinstance(evidence, list | tuple) else ()
    told = list(dict.fromkeys(_reason(one["name"], one["value"], one["about"]) for one in found))
    told = [one for one in told if ", " in one or not one.startswith("D ")] or told
    return f" ({'; '.join(told[:MOST_REASONS])})" if told else ""


def _reason(name: str, value: float, about: str) -> str:
    """Says one piece of evidence in words; its number stays, for who compares it with the thresholds."""
    match name:
        case "distance" if about:
            return f"D {value:.2f}, {_OF_ITEM.sub(_OF_BEFORE, about)}"
        case "distance":
            return f"D {value:.2f}"
        case "relation":
            return about
        case "connectivity":
            return f"hangs together {value:.2f}"
        case "token":
            return f"weakest {about}"
        case "forced_score":
            return f"the sound gives “{about}” {value:+.1f}"
        case "policy":
            return f"by policy the {about.partition(':')[0]} one counts"
        case "sound":
            return f"the sound says {about}"
        case _:
            return f"{name.replace('_', ' ')} {about}" if about else f"{name.replace('_', ' ')} {value:g}"


@dataclass(frozen=True, slots=True)
class Story:
    """`said` in the order of the conversation, `told` in time. `slots`: what is committed in the end, by name;
    `intent`: that of the latest of them."""

    said: tuple[Said, ...]
    told: tuple[Told, ...]
    slots: dict[str, str]
    lasted_us: int
    intent: str | None = None

    def of(self, type: str) -> list[Told]:
        """Returns what was told of one type."""
        return [one for one in self.told if one.type == type]

    def lines(self, around_us: int | None = None, within_us: int = 5_000_000) -> list[str]:
        """Returns the time line for people; with `around_us` only what is near to it."""
        marked = [(one.at_us, f"{one.role}: {one.words}") for one in self.said]
        marked += [(one.at_us, f"  {one.text}") for one in self.told]
        marked.sort(key=lambda one: one[0])
        if around_us is not None:
            marked = [one for one in marked if abs(one[0] - around_us) <= within_us]
        return [f"{at_us / 1e6:8.3f} s  {text}" for at_us, text in marked]


def tell(journal: Journal, today: SessionRules | None = None) -> Story:
    """Returns the story of a journal, as today's code tells it. Raises `JournalDamaged`."""
    heart = make_heart(journal.header, today)
    told, now = [], 0
    for step in journal.steps():
        now = step.now
        if step.done is None:
            break
        for effect in heart.receive(step.event, step.now):
            if isinstance(effect, do.Emit):
                event = msgspec.to_builtins(effect.event)
                if event["type"] in _TOLD:
                    told.append(Told(now, event["type"], event))
    said = []
    for entry in heart.conversation:
        words, role = words_of(entry), ""
        match entry.item:
            case Message(role=role):
                pass
            case FunctionCall(name=name, arguments=arguments):
                role, words = "call", f"{name}({arguments})"
            case FunctionCallOutput(output=output):
                role, words = "result", output
        said.append(Said(entry.id, entry.began_us, role, words))
    tokens = heart.checker.engine.snapshot.tokens
    slots = {one.slot: one.value for one in tokens if one.slot}
    intent = next((one.intent for one in reversed(tokens) if one.intent), None)
    return Story(tuple(said), tuple(told), slots, now, intent)
