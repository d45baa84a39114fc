"""Bytes to client events and server events to bytes; whatever comes in, only `WireError` comes out."""

import base64
import binascii
from typing import assert_never

import msgspec
from msgspec import UNSET, Struct

from orchestrator.errors import ChoraleError, Overloaded, Unauthorized, WireError
from orchestrator.wire import client, faults, lenient, limits, server
from orchestrator.wire.client import AnyClientEvent
from orchestrator.wire.session import TranscriptionView, as_shown

MAX_APPEND_BYTES = 15 * 2**20

_client_decoder = msgspec.json.Decoder(AnyClientEvent)
_encoder = msgspec.json.Encoder()


class _Addressed(Struct):
    """The one field that an answer to a broken event needs."""

    event_id: str | None = None


_addressed_decoder = msgspec.json.Decoder(_Addressed)

EVENT_NAMES = tuple(str(kind.__struct_config__.tag) for kind in AnyClientEvent.__args__)
"""Every type of client event that is understood."""


def decode_client(data: bytes | str) -> AnyClientEvent:
    """Reads one client event. Unknown fields are ignored, nulls mean "not given", beta part types are mapped.

    Raises `WireError` with the protocol's code, the path of the field and what was expected there.
    """
    limits.check_values(data)
    try:
        event = _client_decoder.decode(data)
    except msgspec.ValidationError:
        event = _decode_again(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise WireError("invalid_json", f"The message is not valid JSON: {error}.") from None
    except RecursionError:
        raise WireError("invalid_json", "The message is nested too deeply.") from None
    limits.check_size(event, len(data))
    _check(event)
    return event


def client_event_id(data: bytes | str) -> str | None:
    """Returns the ``event_id`` of a client message, however broken the rest of it is; None if it has no usable one."""
    try:
        event_id = _addressed_decoder.decode(data).event_id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if event_id is None or len(event_id) > limits.MAX_EVENT_ID_CHARACTERS:
        return None
    return event_id


def decode_audio(b64: str) -> bytes:
    """Reads the base64 of an append (standard alphabet, padded, nothing else). Raises `WireError` on ``audio``."""
    if len(b64) > 4 * -(-MAX_APPEND_BYTES // 3):
        raise faults.bad_value("audio", f"at most {MAX_APPEND_BYTES} bytes of sound may be appended at once.")
    try:
        return base64.b64decode(b64, validate=True)
    except (binascii.Error, ValueError):
        raise faults.bad_value("audio", "expected base64-encoded sound.") from None


class _Shown(Struct):
    """An event that shows a transcription session."""

    type: str
    session: TranscriptionView


def encode(event: server.ServerEvent, event_id: str) -> bytes:
    """Writes a server event once, with its ``event_id`` in front. A transcription session is shown without what only
    responses go by."""
    if type(event) is server.SessionUpdated or type(event) is server.SessionCreated:
        shown = as_shown(event.session)
        if isinstance(shown, TranscriptionView):
            written = _encoder.encode(_Shown(str(event.__struct_config__.tag), shown))
            return b'{"event_id":' + _encoder.encode(event_id) + b"," + written[1:]
    return b'{"event_id":' + _encoder.encode(event_id) + b"," + _encoder.encode(event)[1:]


def error_event(error: Exception, event_id: str | None) -> server.Error:
    """Returns the ``error`` event that answers the client event `event_id`. What is not ours is told as an internal
    error, without its text."""
    details: server.ErrorDetails
    if isinstance(error, WireError):
        details = server.ErrorDetails(
            "invalid_request_error", str(error), error.wire_code, error.param, event_id
        )
    elif isinstance(error, Overloaded):
        details = server.ErrorDetails("rate_limit_error", str(error), error.code, None, event_id)
    elif isinstance(error, Unauthorized):
        details = server.ErrorDetails("invalid_request_error", str(error), error.code, None, event_id)
    elif isinstance(error, ChoraleError):
        details = server.ErrorDetails("server_error", str(error), error.code, None, event_id)
    else:
        details = server.ErrorDetails("server_error", "Internal error.", "server_error", None, event_id)
    return server.Error(details)


def _decode_again(data: bytes | str) -> AnyClientEvent:
    """Reads an event that the types refused: puts right what clients are known to send, or says what is wrong."""
    try:
        event = msgspec.json.decode(data)
        if not isinstance(event, dict):
            raise WireError("invalid_event", "An event is a JSON object with a 'type'.")
        kind = event.get("type")
        if not isinstance(kind, str):
            raise WireError("invalid_event", "An event needs a 'type', a string.", "type")
        if kind not in EVENT_NAMES:
            shown = kind[:80]
            raise WireError(
                "invalid_event", f"Unknown event type '{shown}'. Supported: {', '.join(EVENT_NAMES)}.", "type"
            )
        return _client_decoder.decode(_encoder.encode(lenient.client_event(event)))
    except msgspec.ValidationError as error:
        raise faults.translate(error) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise WireError("invalid_json", f"The message is not valid JSON: {error}.") from None


def _check(event: AnyClientEvent) -> None:
    """Checks what types cannot say and no state is needed for."""
    if event.event_id is not None and len(event.event_id) > limits.MAX_EVENT_ID_CHARACTERS:
        raise faults.bad_value(
            "event_id", f"at most {limits.MAX_EVENT_ID_CHARACTERS} characters are allowed."
        )
    match event:
        case client.CreateItem():
            limits.check_item(event.item, "item")
        case client.CreateResponse():
            if event.response is not UNSET:
                limits.check_params(event.response)
        case client.TruncateItem():
            limits.check_id(event.item_id, "item_id")
            limits.check_count(event.audio_end_ms, "audio_end_ms")
            limits.check_count(event.content_index, "content_index")
        case client.RetrieveItem() | client.DeleteItem():
            limits.check_id(event.item_id, "item_id")
        case client.GiveTokens():
            limits.check_tokens(event)
        case client.GiveCaption():
            limits.check_id(event.item_id, "item_id")
            limits.check_text(event.text, "text")
        case (
            client.UpdateSession()
            | client.AppendAudio()
            | client.CommitAudio()
            | client.ClearAudio()
            | client.CancelResponse()
            | client.ClearPlayout()
        ):
            pass
        case _:
            assert_never(event)
