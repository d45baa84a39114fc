"""What each event has to look like, whatever came before it: the union of what the known clients' parsers insist on.

Named after who insists: the Agents SDKs (Python reads the published schema strictly, JavaScript drops or throws),
Pipecat (an event that cannot be read ends its receive loop), LiveKit (indexes by ids).
"""

import base64
import json
from typing import Any

Shown = dict[str, Any]

MAX_EVENT_BYTES = 2**20
_REASONS = {"turn_detected", "client_cancelled", "max_output_tokens", "content_filter"}
_PARTS = {
    "system": {"input_text"},
    "user": {"input_text", "input_audio", "input_image"},
    "assistant": {"output_text", "output_audio"},
}
_REQUIRED = {
    "input_text": "text",
    "output_text": "text",
    "input_audio": "transcript",
    "output_audio": "transcript",
}
_COUNTS = ("_ms", "_index", "_tokens")


class Violation(AssertionError):
    """The protocol was broken by an event."""


def must(claim: bool, otherwise: str) -> None:
    """Raises `Violation` unless the claim holds."""
    if not claim:
        raise Violation(otherwise)


def check_shape(event: Shown) -> None:
    """Raises `Violation` on an event that some client cannot read; `KeyError` where a field is missing."""
    must(len(json.dumps(event)) < MAX_EVENT_BYTES, "1 MiB or more")
    _check_counts(event)
    match event["type"].split("."):
        case ["session", "created" | "updated"]:
            _check_session(event["session"])
        case ["error"]:
            _check_error(event["error"])
        case ["response", "created" | "done"]:
            _check_response(event["response"])
        case ["response", "content_part", _]:
            part = event["part"]
            must(part["type"] in ("text", "audio"), "type of a shown part")
            must(
                isinstance(part["text" if part["type"] == "text" else "transcript"], str),
                "words of a shown part",
            )
            must(None not in part.values(), "null in a part")
        case ["response", "output_audio", "delta"] if "delta" in event:
            must(len(base64.b64decode(event["delta"], validate=True)) > 0, "empty sound")
        case ["response", _, "delta"] if "delta" in event:
            must(isinstance(event["delta"], str) and event["delta"] != "", "empty delta")
        case ["chorale", "overload"]:
            must(event["kind"] in ("asr", "understand", "llm", "speech"), "kind of work")
            must(bool(event["reason"]) and event["retry_after_s"] >= 0, "why, and for how long")
            must(
                (event["response_id"] is None) != (event["item_id"] is None),
                "neither or both of what it is about",
            )
        case ["rate_limits", "updated"]:
            for limit in event["rate_limits"]:
                must(limit["name"] in ("requests", "tokens"), "name of a limit")
                amounts = (limit["limit"], limit["remaining"])
                must(all(type(amount) is int for amount in amounts), "a limit that is no integer")
                must(0 <= limit["remaining"] <= limit["limit"] and limit["reset_seconds"] >= 0, "limits")
        case ["chorale", "gap"]:
            must(0 <= event["after"] < event["first"] - 1, "nothing is missing")
        case ["conversation", "item", "input_audio_transcription", "failed"]:
            error = event["error"]
            must(bool(error["type"] and error["message"]), "why a transcription failed")
            must(None not in error.values(), "null in the error of a transcription")
        case _:
            pass
    if isinstance(item := event.get("item"), dict):
        check_item(item, retrieved=event["type"].endswith("retrieved"))


def _check_counts(value: object) -> None:
    """Times, indices and token counts are whole numbers: Python's strict parsers take no ``12.0``."""
    if isinstance(value, dict):
        for name, member in value.items():
            is_count = name.endswith(_COUNTS) and name != "max_output_tokens" and not isinstance(member, dict)
            must(not is_count or type(member) is int or member is None, f"{name} is no integer")
            _check_counts(member)
    elif isinstance(value, list):
        for member in value:
            _check_counts(member)


def check_item(item: Shown, *, retrieved: bool = False) -> None:
    """An item as events show it."""
    must(isinstance(item["id"], str) and item["id"] != "", "an item without id")
    must(item["object"] == "realtime.item", "object of an item")
    must(item["status"] in ("in_progress", "completed", "incomplete"), "status of an item")
    match item["type"]:
        case "message":
            must(item["role"] in _PARTS, "role")
            for part in item["content"]:
                _check_part(part, item["role"], retrieved)
        case "function_call":
            strings = (item["name"], item["call_id"], item["arguments"])
            must(all(isinstance(value, str) for value in strings), "null in a function call")
        case "function_call_output":
            must(isinstance(item["call_id"], str) and isinstance(item["output"], str), "null in an output")
        case _:
            raise Violation("an item of a type that Pipecat dies on")
    must(None not in item.values(), "null in an item")


def _check_part(part: Shown, role: str, retrieved: bool) -> None:
    must(part["type"] in _PARTS[role], "type of a part")
    if (required := _REQUIRED.get(part["type"])) is not None:
        must(required in part, f"{required} of a part is missing")
    null = {name for name, value in part.items() if value is None}
    must(null <= ({"transcript"} if part["type"] == "input_audio" else set()), "null in a part")
    must(retrieved or "audio" not in part, "sound in an event")


def _check_session(session: Shown) -> None:
    must(session["type"] in ("realtime", "transcription"), "type of a session")
    must(session["object"] in ("realtime.session", "realtime.transcription_session"), "object of a session")
    must(bool(session["id"]) and isinstance(session["id"], str), "id of a session")
    if session["type"] == "transcription":
        return
    must(session["output_modalities"] in (["audio"], ["text"]), "modalities")
    must(
        isinstance(session["tools"], list) and isinstance(session["instructions"], str),
        "tools and instructions",
    )
    choice = session["tool_choice"]
    must(isinstance(choice, str) or bool(choice["name"]), "tool_choice")
    must(isinstance(session["audio"]["output"]["voice"], str), "voice is no string")
    hearing = session["audio"]["input"]
    must(hearing["noise_reduction"] is None or "type" in hearing["noise_reduction"], "noise_reduction")
    must(None not in (hearing["transcription"] or {}).values(), "null in transcription")
    if (detection := hearing["turn_detection"]) is not None:
        # The Agents SDKs decide by it who cancels.
        must(isinstance(detection["interrupt_response"], bool), "interrupt_response is not echoed")
        must(detection["type"] in ("server_vad", "semantic_vad"), "type of turn detection")


def _check_error(error: Shown) -> None:
    must(isinstance(error["type"], str) and isinstance(error["message"], str), "type and message of an error")
    optional = (error["code"], error["param"], error["event_id"])
    must(all(value is None or isinstance(value, str) for value in optional), "fields of an error")


def _check_response(response: Shown) -> None:
    must(response["object"] == "realtime.response" and response["id"] != "", "object of a response")
    must(response["output_modalities"] in (["audio"], ["text"]), "modalities")
    must(isinstance(response["audio"]["output"]["voice"], str), "voice is no string")
    for item in response["output"]:
        check_item(item)
    details = response["status_details"]
    if response["status"] == "in_progress":
        return
    must(details["type"] == response["status"], "status_details")
    must(details.get("reason", "turn_detected") in _REASONS, "a reason outside of the enumeration")
    must(details["type"] == "failed" or "error" not in details, "an error of what did not fail")
    must(details["type"] not in ("cancelled", "incomplete") or "reason" in details, "no reason")
    usage = response["usage"]
    must(usage is not None, "no usage")
    must(usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"], "the sum of usage")
    must(
        {"text_tokens", "audio_tokens", "cached_tokens"} <= usage["input_token_details"].keys(),
        "usage details",
    )
    must({"text_tokens", "audio_tokens"} <= usage["output_token_details"].keys(), "usage details")
