"""How events and effects are written down, and how events are read again: the same event, to the last bit. Pure.

Small events are as their fields are. What is different: speech probabilities are packed (``f4:`` or ``f8:`` and
base64); a client's event is as it came on the wire, or a string of that where it has line breaks; reports with numbers
that JSON does not know are MessagePack in base64; errors are their kind and what a client is told of them.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, get_args

import msgspec
import numpy as np
from msgspec import Raw, Struct

from modalities.audio.phrase_end import PhraseEnd
from orchestrator import errors
from orchestrator.errors import ChoraleError, Overloaded, WireError
from orchestrator.scheduling.work import Report
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.wire.client import AnyClientEvent

_encoder = msgspec.json.Encoder()
_client_decoder = msgspec.json.Decoder(AnyClientEvent)
_report_decoder = msgspec.json.Decoder(Report)
_packed_report_decoder = msgspec.msgpack.Decoder(Report)
_string_decoder = msgspec.json.Decoder(str)

DIGEST_BYTES = 8


class _Said(Struct):
    link_id: str
    position: int
    sent_us: int
    said: Raw


class _Error(Struct, omit_defaults=True):
    """`kind` is the class; `text` what it says; `code` and `param` of a `WireError`."""

    kind: str
    text: str
    code: str = ""
    param: str | None = None
    retry_after_s: float = 0.0


class _Erred(Struct):
    link_id: str
    error: _Error
    event_id: str | None


class _Heard(Struct, omit_defaults=True):
    stop: int
    at_us: int
    first_window: int
    probabilities: str
    live: bool
    phrase_ends: tuple[PhraseEnd, ...] = ()


class _Came(Struct):
    report: Raw


def write_event(event: on.Event) -> tuple[str, bytes]:
    """Returns an event's name and its JSON, without line breaks."""
    writer = _WRITERS.get(type(event), _encoder.encode)
    return type(event).__name__, writer(event)


def read_event(name: str, data: bytes | Raw) -> on.Event:
    """Returns the event that was written. Raises `msgspec.MsgspecError` and `KeyError` where it is none."""
    return _READERS[name](data)


@dataclass(frozen=True, slots=True)
class WrittenEffect:
    """An effect as it is compared: its name, all of it as JSON, and the digest of that."""

    name: str
    data: bytes
    digest: str


def write_effect(effect: do.Effect, secret: bytes, key: bytes = b"") -> WrittenEffect:
    """Returns an effect without the session's secret. `key`: the digest tells nothing to those who do not have it."""
    data = _encoder.encode(effect)
    if secret:
        data = data.replace(b'"secret":"%b"' % secret, b'"secret":""')  # as `Extension` shows it
    return WrittenEffect(type(effect).__name__, data, digest_of(data, key))


def digest_of(data: bytes, key: bytes = b"") -> str:
    """Returns 16 hexadecimal digits."""
    return blake2b(data, digest_size=DIGEST_BYTES, key=key).hexdigest()


def pack(values: tuple[float, ...]) -> str:
    """Returns numbers as base64, as float32 where that loses nothing."""
    exact = np.asarray(values, dtype="<f8")
    small = exact.astype("<f4")
    fits = bool(np.array_equal(small.astype("<f8"), exact))
    return ("f4:" if fits else "f8:") + b64encode((small if fits else exact).tobytes()).decode()


def unpack(text: str) -> tuple[float, ...]:
    """Returns what `pack` was given."""
    return tuple(np.frombuffer(b64decode(text[3:]), dtype=f"<{text[:2]}").astype(float).tolist())


def _write_said(event: on.ClientSaid) -> bytes:
    said = _encoder.encode(event.event)
    if b"\n" in said or b"\r" in said:  # a client's own layout is kept: prompts show it to models
        said = _encoder.encode(said.decode())
    return _encoder.encode(_Said(event.link_id, event.position, event.sent_us, Raw(said)))


def _read_said(data: bytes | Raw) -> on.Event:
    said = msgspec.json.decode(data, type=_Said)
    raw: bytes | Raw | str = said.said
    if bytes(said.said).startswith(b'"'):
        raw = _string_decoder.decode(said.said)
    return on.ClientSaid(said.link_id, _client_decoder.decode(raw), said.position, said.sent_us)


def _write_erred(event: on.ClientErred) -> bytes:
    error = event.error
    kind = type(error).__name__
    match error:
        case WireError():
            told = _Error("WireError", str(error), error.wire_code, error.param)
        case Overloaded():
            told = _Error("Overloaded", str(error), retry_after_s=error.retry_after_s)
        case ChoraleError():
            told = _Error(kind, str(error), error.code)
        case _:
            told = _Error("Exception", "")  # its text is not for clients, and for nobody else
    return _encoder.encode(_Erred(event.link_id, told, event.event_id))


def _read_erred(data: bytes | Raw) -> on.Event:
    erred = msgspec.json.decode(data, type=_Erred)
    return on.ClientErred(erred.link_id, _error(erred.error), erred.event_id)


def _error(told: _Error) -> Exception:
    if told.kind == "WireError":
        return WireError(told.code, told.text, told.param)
    if told.kind == "Exception":
        return Exception()
    found = getattr(errors, told.kind, None)
    known: type[ChoraleError] = (
        found
        if isinstance(found, type) and issubclass(found, ChoraleError)
        else type(told.kind, (ChoraleError,), {"code": told.code})
    )
    error = known.__new__(known)
    error.args = (told.text,)  # the text is whole: constructors would add to it
    if isinstance(error, Overloaded):
        error.retry_after_s = told.retry_after_s
    return error


def _write_heard(event: on.AudioHeard) -> bytes:
    return _encoder.encode(
        _Heard(
            event.stop,
            event.at_us,
            event.first_window,
            pack(event.probabilities),
            event.live,
            event.phrase_ends,
        )
    )


def _read_heard(data: bytes | Raw) -> on.Event:
    heard = msgspec.json.decode(data, type=_Heard)
    probabilities = unpack(heard.probabilities)
    return on.AudioHeard(
        heard.stop, heard.at_us, heard.first_window, probabilities, heard.live, heard.phrase_ends
    )


def _write_came(event: on.ReportCame) -> bytes:
    report = _encoder.encode(event.report)
    if b"null" in report:  # no number, perhaps
        report = _encoder.encode(b64encode(msgspec.msgpack.encode(event.report)).decode())
    return _encoder.encode(_Came(Raw(report)))


def _read_came(data: bytes | Raw) -> on.Event:
    raw = msgspec.json.decode(data, type=_Came).report
    if bytes(raw).startswith(b'"'):
        return on.ReportCame(_packed_report_decoder.decode(b64decode(_string_decoder.decode(raw))))
    return on.ReportCame(_report_decoder.decode(raw))


def _reader_of(kind: type[on.Event]) -> Callable[[bytes | Raw], on.Event]:
    return msgspec.json.Decoder(kind).decode


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    on.ClientSaid: _write_said,
    on.ClientErred: _write_erred,
    on.AudioHeard: _write_heard,
    on.ReportCame: _write_came,
}

_READERS: dict[str, Callable[[bytes | Raw], on.Event]] = {
    kind.__name__: _reader_of(kind)
    for kind in get_args(on.Event)
    if kind not in _WRITERS  # their fields are as JSON has them
} | {
    "ClientSaid": _read_said,
    "ClientErred": _read_erred,
    "AudioHeard": _read_heard,
    "ReportCame": _read_came,
}
