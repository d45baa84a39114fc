"""Tells a client which field is wrong and what was expected: decoder errors turned into the protocol's codes.

Paths and sentences follow the hosted service: ``session.tools[2].name``, "Missing required parameter: '…'.".
"""

import re

import msgspec

from orchestrator.errors import WireError

_LOCATED = re.compile(r"(?P<what>.*) - at `(?P<key>key in )?\$?(?P<path>.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_WRONG_TYPE = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`$")
_BAD_VALUE = re.compile(r"Invalid (?:enum )?value (?P<value>.*)$", re.DOTALL)
_INDEX = re.compile(r"\[\d+\]")
_SHOWN_CHARACTERS = 80

_TYPE_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}

_SUPPORTED = {
    "type": "the names of client events",
    "item.type": "'message', 'function_call', 'function_call_output'",
    "input[].type": "'message', 'function_call', 'function_call_output', 'item_reference'",
    "content[].type": "'input_text', 'input_audio', 'input_image', 'output_text', 'output_audio'",
    "role": "'system', 'user', 'assistant'",
    "status": "'in_progress', 'completed', 'incomplete'",
    "conversation": "'auto', 'none'",
    "tools[].type": "'function'",
    "tool_choice": "'auto', 'none', 'required' or {\"type\": \"function\", \"name\": …}",
    "tool_choice.type": "'function'",
    "max_output_tokens": "an integer from 1 to 4096 or 'inf'",
    "output_modalities[]": "'audio', 'text'",
    "format.type": "'audio/pcm', 'audio/pcmu', 'audio/pcma'",
    "turn_detection.type": "'server_vad', 'semantic_vad'",
    "noise_reduction.type": "'near_field', 'far_field'",
    "eagerness": "'low', 'medium', 'high', 'auto'",
    "effort": "'minimal', 'low', 'medium', 'high', 'xhigh'",
    "truncation": "'auto', 'disabled' or {\"type\": \"retention_ratio\", …}",
    "truncation.type": "'retention_ratio'",
    "tracing": "'auto', null or an object",
    "session.type": "'realtime', 'transcription'",
    "include[]": "'item.input_audio_transcription.logprobs'",
}


def missing(param: str) -> WireError:
    """The field at `param` has to be there."""
    return WireError("missing_required_parameter", f"Missing required parameter: '{param}'.", param)


def wrong_type(param: str, wanted: str, got: str) -> WireError:
    """The field at `param` holds another kind of JSON value; `wanted` and `got` read "a string"."""
    message = f"Invalid type for '{param}': expected {wanted}, but got {got} instead."
    return WireError("invalid_type", message, param)


def bad_value(param: str, reason: str) -> WireError:
    """The field at `param` has a value outside of what is allowed; `reason` says what is."""
    return WireError("invalid_value", f"Invalid value for '{param}': {reason}", param)


def translate(error: msgspec.ValidationError, root: str = "") -> WireError:
    """Turns a decoder's complaint into the client's error; `root` is the path of what was decoded (``session``)."""
    what, param = _split(str(error), root)
    if found := _MISSING.match(what):
        return missing(_join(param, found["field"]))
    if found := _WRONG_TYPE.match(what):
        return wrong_type(param, _kinds(found["wanted"]), _kinds(found["got"]))
    if found := _BAD_VALUE.match(what):
        return bad_value(param, f"{_short(found['value'])} is not supported{_supported(param)}.")
    if what == "Expected `str`":
        return wrong_type(param, "a string", "another type")
    return bad_value(param, f"{_plain(what)}.")


def _split(text: str, root: str) -> tuple[str, str]:
    located = _LOCATED.match(text)
    if located is None:
        return text, root
    path = located["path"].split("[...]")[0].removeprefix(".")
    return located["what"], _join(root, path)


def _join(root: str, path: str) -> str:
    if not root or not path:
        return root or path
    return f"{root}{path}" if path.startswith("[") else f"{root}.{path}"


def _kinds(names: str) -> str:
    return " or ".join(_TYPE_NAMES.get(name.strip(), name.strip()) for name in names.split("|"))


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "…'"


def _plain(what: str) -> str:
    text = re.sub(r"`(\w+)`", lambda found: _TYPE_NAMES.get(found[1], found[1]), what)
    return text[:1].lower() + text[1:]


def _supported(param: str) -> str:
    steps = _INDEX.sub("[]", param).split(".")
    for first in range(len(steps)):
        if values := _SUPPORTED.get(".".join(steps[first:])):
            return f". Supported values are: {values}"
    return ""
