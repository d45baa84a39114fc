"""Events are read as they were written, to the last bit."""

import json
import math
from typing import get_args

import msgspec
import pytest
from hypothesis import given

from modalities.audio.phrase_end import PhraseEnd
from modalities.audio.prosody import Prosody
from orchestrator.errors import Overloaded, SessionClosed, WireError
from orchestrator.recording.notation import pack, read_event, unpack, write_effect, write_event
from orchestrator.scheduling.work import Failed, ReplyCall, SpeechPiece, Transcribed, Understood, WordFound
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.wire import codec
from tests.recording.events import EVENTS

said = codec.decode_client


def again(event: on.Event) -> on.Event:
    name, data = write_event(event)
    assert b"\n" not in data
    json.loads(data)
    return read_event(name, data)


@given(EVENTS)
def test_any_event_is_read_as_it_was_written(event: on.Event) -> None:
    """Random events of every kind come back equal, and are one line of JSON."""
    assert again(event) == event


def test_every_kind_of_event_can_be_read() -> None:
    """A new kind of event cannot be forgotten: reading knows all that hearts take."""
    for kind in get_args(on.Event):
        with pytest.raises(msgspec.ValidationError):
            read_event(kind.__name__, b"3")
    with pytest.raises(KeyError):
        read_event("Unheard", b"{}")


def test_a_clients_layout_is_kept() -> None:
    """A tool's schema goes to models as the client laid it out, line breaks and all."""
    tool = '{"type":"function","name":"f","parameters":{\n "a": 1\r\n}}'
    text = '{"type":"response.create","response":{"tools":[' + tool + "]}}"
    event = on.ClientSaid("link", said(text), 3, 4)
    assert again(event) == event


def test_numbers_that_json_does_not_know_survive() -> None:
    """A recogniser's minus infinity comes back as one."""
    came = again(
        on.ReportCame(Transcribed("job", "hi", (WordFound("hi", 0, 1, 0.5),), average_logprob=-math.inf))
    )
    assert isinstance(came, on.ReportCame)
    assert isinstance(came.report, Transcribed)
    assert came.report.average_logprob == -math.inf


@pytest.mark.parametrize(
    "error",
    [
        WireError("invalid_value", "No.", "item.id"),
        Overloaded("full", 2.5),
        SessionClosed("over"),
        KeyError("inner"),
    ],
)
def test_errors_are_told_to_clients_alike(error: Exception) -> None:
    """An error that was read is answered as the one that was written; what is internal is in no recording."""
    event = on.ClientErred("link", error, "event_1")
    name, data = write_event(event)
    read = read_event(name, data)
    assert isinstance(read, on.ClientErred)
    assert codec.error_event(read.error, "event_1") == codec.error_event(error, "event_1")
    assert b"inner" not in data


def test_probabilities_are_packed_small_where_nothing_is_lost() -> None:
    """What a detector gives is float32; other numbers keep all their bits."""
    assert pack((0.5, 0.25)).startswith("f4:")
    assert unpack(pack((0.5, 0.25))) == (0.5, 0.25)
    assert unpack(pack((0.95, 1 / 3))) == (0.95, 1 / 3)


def test_the_secret_of_a_session_is_in_no_effect() -> None:
    """Whoever reads a recording cannot enter the session."""
    from orchestrator.wire.server import SessionUpdated
    from orchestrator.wire.session import Extension
    from tests.sessions.talk import view

    effect = do.Emit(SessionUpdated(view(chorale=Extension(secret="s3cr3t"))))
    assert b"s3cr3t" not in write_effect(effect, b"s3cr3t").data
    blank = do.Emit(SessionUpdated(view(chorale=Extension(secret=""))))
    assert write_effect(effect, b"s3cr3t") == write_effect(blank, b"")


def test_events_with_sound_and_vectors_come_back() -> None:
    """Prosody, vectors and pieces of calls are bytes and numbers like all others."""
    heard = on.AudioHeard(
        512, 7, 0, (0.1,), True, (PhraseEnd(512, Prosody(120.0, 3.5, -20.25, 0.5, None), (200,)),)
    )
    for event in (
        heard,
        on.ReportCame(Understood("job", b"\x00\xff", "order", 0.5)),
        on.ReportCame(SpeechPiece("job", 0, 24_000, 12)),
        on.ReportCame(ReplyCall("job", 0, '{"a":\n1}', "f")),
        on.ReportCame(Failed("job", "worker_failed", "null")),
        on.LinkJoined("link", LinkKind.CALL),
    ):
        assert again(event) == event
