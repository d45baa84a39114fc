"""The strict client itself: it finds nothing wrong with a real conversation, and every rule of it finds its breach.

Each rule is what one of the known clients fails, hangs or raises without; a rule that found nothing would let all the
tests that rest on it pass.
"""

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.sessions.strict_client import StrictClient
from tests.sessions.strict_shapes import Shown, Violation
from tests.sessions.talk import Talk

Events = list[Shown]
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}


def conversation() -> Events:
    """Returns what one connection is told of: speech, a spoken reply that is cut, a call, a written reply, an error."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "whisper-1"}}}, tools=[TOOL])
    talk.speak()
    talk.transcribed("How are you?")
    talk.answer("I am fine. Thank you.")
    spoken = talk.last("response.output_item.done")["item"]["id"]
    talk.client("conversation.item.truncate", item_id=spoken, content_index=0, audio_end_ms=900)
    heard = talk.last("input_audio_buffer.committed")["item_id"]
    talk.client("conversation.item.retrieve", item_id=heard)
    talk.client("response.create", response={"output_modalities": ["text"], "metadata": {"a": "b"}})
    talk.calls("get_weather", '{"city": "Rome"}')
    talk.finishes("tool_calls")
    call_id = talk.last("response.done")["response"]["output"][0]["call_id"]
    output = {"type": "function_call_output", "call_id": call_id, "output": "sunny"}
    talk.client("conversation.item.create", item=output)
    talk.client("response.create", response={"output_modalities": ["text"]})
    talk.writes("It is sunny.")
    talk.finishes()
    talk.client("response.cancel")
    talk.client("conversation.item.delete", item_id=heard)
    told = [event for _, event in talk.told]
    first = next(event for event in told if event["type"] == "session.created")
    rest = [event for event in told if event is not first and event not in talk.log]
    events = [first, *talk.log, *rest]
    part = next(n for n, event in enumerate(events) if event["type"] == "response.content_part.added")
    ids = {name: events[part][name] for name in ("response_id", "item_id", "output_index", "content_index")}
    sound = base64.b64encode(bytes(960)).decode()
    events.insert(part + 1, {"type": "response.output_audio.delta", **ids, "delta": sound})
    return [{"event_id": f"event_{number}", **event} for number, event in enumerate(events)]


GOOD = conversation()


def follow(events: Events) -> None:
    client = StrictClient(on_the_wire=True)
    for event in events:
        client.feed(event)
    client.end()


def at(events: Events, type: str, which: int = 0) -> int:
    """Where the event of this type is that comes as number `which`."""
    return [number for number, event in enumerate(events) if event["type"] == type][which]


def test_strict_client_finds_nothing_wrong_with_a_real_conversation() -> None:
    """Everything that happens to one connection is in it, and nothing of it is refused."""
    follow(GOOD)
    assert {event["type"] for event in GOOD} >= {
        "session.updated",
        "conversation.item.input_audio_transcription.completed",
        "conversation.item.retrieved",
        "conversation.item.truncated",
        "conversation.item.deleted",
        "response.function_call_arguments.done",
        "error",
    }


Breach = Callable[[Events], object]


def _put(type: str, *path: str | int, value: object, which: int = 0) -> Breach:
    """Returns a breach that puts a value somewhere into an event."""

    def breach(events: Events) -> None:
        place: Any = events[at(events, type, which)]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return breach


def _drop(type: str, *path: str | int, which: int = 0) -> Breach:
    """Returns a breach that leaves a field out, or the event where there is no path."""

    def breach(events: Events) -> None:
        number = at(events, type, which)
        if not path:
            del events[number]
            return
        place: Any = events[number]
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return breach


def _move(type: str, *, before: str, which: int = 0, which_before: int = 0) -> Breach:
    """Returns a breach that lets an event come where it does not belong."""

    def breach(events: Events) -> None:
        event = events.pop(at(events, type, which))
        events.insert(at(events, before, which_before), event)

    return breach


def _repeat(type: str, which: int = 0) -> Breach:
    def breach(events: Events) -> None:
        number = at(events, type, which)
        events.insert(number + 1, {**copy.deepcopy(events[number]), "event_id": "event_again"})

    return breach


def _add(type: str, **fields: object) -> Breach:
    return lambda events: events.append({"event_id": "event_more", "type": type, **fields})


ADDED, ITEM_DONE = "conversation.item.added", "conversation.item.done"
CALL_DONE, OUTPUT_DONE = "response.function_call_arguments.done", "response.output_item.done"
RESPONSE_DONE, PART = "response.done", "response.content_part.added"
HEARD = "conversation.item.input_audio_transcription.completed"

BREACHES: dict[str, tuple[Breach, str]] = {
    # The envelope: section 5
    "events have ids": (_drop("response.created", "event_id"), "event_id"),
    "ids of events are unique": (_put("response.created", "event_id", value="event_1"), "there before"),
    "ids of events are not empty": (_put("response.created", "event_id", value=""), "no event_id"),
    "types are in the catalogue": (_add("rate_limits.changed"), "catalogue"),
    "the beta's item event is not sent": (_add("conversation.item.created", item={}), "catalogue|'id'"),
    "own events go only to who asked": (_add("chorale.token", item_id="x"), "nobody asked"),
    "messages stay below 1 MiB": (_put(ADDED, "item", "padding", value="x" * 2**20), "1 MiB"),
    "times are whole numbers": (
        _put("input_audio_buffer.speech_started", "audio_start_ms", value=12.5),
        "no integer",
    ),
    "indices are whole numbers": (_put(PART, "content_index", value=0.5), "no integer"),
    "token counts are whole numbers": (
        _put(RESPONSE_DONE, "response", "usage", "input_tokens", value=1.0),
        "no integer",
    ),
    # The session: sections 2 and 7, Pipecat and the Agents SDKs
    "session.created comes first": (_move("session.updated", before="session.created"), "comes first"),
    "session.created comes once": (_repeat("session.created"), "comes first"),
    "a session keeps its id": (_put("session.updated", "session", "id", value="sess_2"), "another session"),
    "a session has its object": (_drop("session.created", "session", "object"), "object"),
    "voices are strings": (
        _put("session.updated", "session", "audio", "output", "voice", value={"id": "x"}),
        "voice",
    ),
    "interrupt_response is shown": (
        _drop("session.updated", "session", "audio", "input", "turn_detection", "interrupt_response"),
        "interrupt_response",
    ),
    "noise reduction has a type": (
        _put("session.updated", "session", "audio", "input", "noise_reduction", value={}),
        "noise_reduction",
    ),
    "transcription has no nulls": (
        _put("session.updated", "session", "audio", "input", "transcription", "model", value=None),
        "null in transcription",
    ),
    "there is one modality": (
        _put("session.updated", "session", "output_modalities", value=["audio", "text"]),
        "modalities",
    ),
    # Items: section 3
    "items have no null fields": (_put(ADDED, "item", "name", value=None), "null in an item"),
    "items have an object": (_put(ADDED, "item", "object", value="item"), "object of an item"),
    "items are of known types": (_put(ADDED, "item", "type", value="mcp_list_tools"), "Pipecat dies"),
    "spoken parts carry a transcript": (
        _drop(ADDED, "item", "content", 0, "transcript"),
        "transcript of a part",
    ),
    "parts of the assistant are output parts": (
        _put(OUTPUT_DONE, "item", "content", 0, "type", value="text"),
        "type of a part",
    ),
    "events carry no sound of items": (
        _put(ADDED, "item", "content", 0, "audio", value="AAA="),
        "sound in an event",
    ),
    "calls have arguments from the first event on": (
        _drop("response.output_item.added", "item", "arguments", which=1),
        "arguments",
    ),
    "calls are not completed when added": (
        _put("response.output_item.added", "item", "status", value="completed", which=1),
        "added completed",
    ),
    "items of a response are added in progress": (
        _put(ADDED, "item", "status", value="completed", which=1),
        "added completed",
    ),
    "items are added once": (_repeat(ADDED), "added twice"),
    "items are done after they were added": (_move(ITEM_DONE, before=ADDED), "not added"),
    "items are done once": (_repeat(ITEM_DONE), "done twice"),
    "every item is done": (_drop(ITEM_DONE, which=-1), "never done|is not done"),
    "items stand where they were said to": (
        _put(ITEM_DONE, "previous_item_id", value=None, which=1),
        "wrong previous",
    ),
    "previous items are known": (
        _put(ADDED, "previous_item_id", value="item_x", which=1),
        "previous_item_id",
    ),
    "only the assistant is truncated": (
        lambda events: _put(
            "conversation.item.truncated", "item_id", value=events[at(events, ADDED)]["item"]["id"]
        )(events),
        "not said by the assistant",
    ),
    "only items that were are deleted": (
        _put("conversation.item.deleted", "item_id", value="item_x"),
        "never was",
    ),
    # Speech in: section 7
    "speech is committed behind its start": (
        _move("input_audio_buffer.committed", before="input_audio_buffer.speech_stopped"),
        "goes on",
    ),
    "speech is committed before its item": (
        _move("input_audio_buffer.committed", before=ITEM_DONE),
        "before it was committed",
    ),
    "speech stops after it started": (
        _put("input_audio_buffer.speech_stopped", "audio_end_ms", value=-1),
        "ends before",
    ),
    "one id from start to transcript": (_put(HEARD, "item_id", value="item_x"), "not added"),
    "one place from commit to item": (
        _put("input_audio_buffer.committed", "previous_item_id", value="x"),
        "unknown",
    ),
    "every spoken item is transcribed": (_drop(HEARD), "no end of the transcription|transcript"),
    "transcripts end once": (_repeat(HEARD), "after its end"),
    "transcripts say what they cost": (_drop(HEARD, "usage"), "usage"),
    "transcripts are on their items": (
        _put("conversation.item.retrieved", "item", "content", 0, "transcript", value=None),
        "not on the item",
    ),
    # Responses: section 6
    "responses are created empty": (_put("response.created", "response", "output", value=[{}]), "'id'|birth"),
    "metadata comes back": (_put(RESPONSE_DONE, "response", "metadata", value=None, which=1), "metadata"),
    "every response is done": (_drop(RESPONSE_DONE, which=-1), "never done"),
    "responses are done once": (_repeat(RESPONSE_DONE), "done twice"),
    "nothing comes after response.done": (
        _move(RESPONSE_DONE, before="response.output_audio.done"),
        "is open|output",
    ),
    "status details repeat the status": (
        _put(RESPONSE_DONE, "response", "status_details", "type", value="failed"),
        "status_details",
    ),
    "reasons are of the enumeration": (
        _put(RESPONSE_DONE, "response", "status_details", "reason", value="bored"),
        "enumeration",
    ),
    "usage is told": (_put(RESPONSE_DONE, "response", "usage", value=None), "no usage"),
    "usage has its details": (
        _drop(RESPONSE_DONE, "response", "usage", "input_token_details", "cached_tokens"),
        "usage details",
    ),
    "output is what its events said": (_put(RESPONSE_DONE, "response", "output", value=[]), "output"),
    "one response at a time": (_repeat("response.created"), "created twice"),
    "output items come before all about them": (_drop("response.output_item.added"), "item_|strict|'"),
    "conversation items come before their deltas": (
        _move(ADDED, before="response.output_audio_transcript.done", which=1),
        "before conversation.item.added",
    ),
    "shown parts are text or audio": (_put(PART, "part", "type", value="output_audio"), "shown part"),
    "shown parts have no nulls": (_put(PART, "part", "text", value=None), "null in a part"),
    "deltas join to the text": (_drop("response.output_text.delta"), "deltas differ|text"),
    "deltas join to the transcript": (_drop("response.output_audio_transcript.delta"), "deltas differ|text"),
    "deltas are not empty": (_put("response.output_text.delta", "delta", value=""), "empty delta"),
    "sound is base64": (_put("response.output_audio.delta", "delta", value="?"), "base64|padding|Only"),
    "parts are closed": (_drop("response.content_part.done"), "part is open"),
    "the item has the words of its part": (
        _put(OUTPUT_DONE, "item", "content", 0, "transcript", value="Something else."),
        "words of the item",
    ),
    "calls are done under their name": (_put(CALL_DONE, "name", value="other"), "another call"),
    "calls are done under their id": (_put(CALL_DONE, "call_id", value="call_x"), "another call"),
    "arguments are JSON": (
        lambda events: [
            _put(CALL_DONE, "arguments", value="{")(events),
            _put("response.function_call_arguments.delta", "delta", value="{")(events),
        ],
        "Expecting|arguments",
    ),
    "arguments are done before their call": (_drop(CALL_DONE), "a call is done once"),
    # Errors: section 9
    "errors have a message": (_put("error", "error", "message", value=None), "message of an error"),
    "errors say what they answer": (_drop("error", "error", "event_id"), "event_id"),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_strict_client_finds_the_breach_of_a_rule(rule: str) -> None:
    """The same conversation with this one thing wrong is refused, for that reason."""
    breach, reason = BREACHES[rule]
    events = copy.deepcopy(GOOD)
    breach(events)
    assert events != GOOD
    with pytest.raises(Violation, match=reason):
        follow(events)
