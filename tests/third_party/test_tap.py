"""The listener on the line: it reads both directions whatever the pieces, and says what was wrong."""

import json

import pytest
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode

from orchestrator.wire import codec, server
from tests.third_party.line import Direction
from tests.third_party.tap import Conversation
from tests.wire.test_server import PLAIN, RUNNING

ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n"


def told(number: int, event: server.ServerEvent) -> str:
    return codec.encode(event, f"event_{number}").decode()


@pytest.mark.parametrize("piece", [1, 3, 1_000])
@pytest.mark.parametrize("compressed", [False, True])
def test_direction_reads_messages_in_any_pieces(piece: int, compressed: bool) -> None:
    """Compressed or not, in one frame or in two, behind a ping."""
    extensions = [PerMessageDeflate(True, True, 15, 15)] if compressed else []
    frames = [
        Frame(Opcode.PING, b"x"),
        Frame(Opcode.TEXT, b'{"a": 1}'),
        Frame(Opcode.TEXT, b'{"b":', fin=False),
        Frame(Opcode.CONT, b" 2}"),
    ]
    data = ANSWER + (DEFLATE if compressed else b"") + b"\r\n"
    data += b"".join(frame.serialize(mask=False, extensions=extensions) for frame in frames)
    reader = Direction(from_server=True)
    heard = [text for at in range(0, len(data), piece) for text in reader.feed(data[at : at + piece])]
    assert heard == ['{"a": 1}', '{"b": 2}']


def test_direction_reads_what_a_client_masked() -> None:
    """The client's compression is what the server's answer settled on."""
    request = b"GET /v1/realtime HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
    deflate = PerMessageDeflate(False, False, 15, 15)
    reader = Direction(from_server=False)
    assert reader.feed(request) == []
    reader.settle(["HTTP/1.1 101 Switching Protocols", "Sec-WebSocket-Extensions: permessage-deflate"])
    frames = [
        Frame(Opcode.TEXT, b'{"type":"a"}').serialize(mask=True, extensions=[deflate]) for _ in range(2)
    ]
    assert reader.feed(b"".join(frames)) == ['{"type":"a"}'] * 2


def test_direction_looks_at_no_other_traffic() -> None:
    """A refusal over HTTP is passed on and not read."""
    assert Direction(from_server=True).feed(b"HTTP/1.1 401 Unauthorized\r\n\r\n{}") == []


def test_conversation_without_fault_has_none() -> None:
    """What each client expects of errors is nobody's fault."""
    talk = Conversation()
    talk.hear_server(told(1, server.SessionCreated(PLAIN)))
    details = server.ErrorDetails(
        "invalid_request_error", "Cancellation failed", "response_cancel_not_active"
    )
    talk.hear_server(told(2, server.Error(details)))
    assert talk.faults == []


def test_conversation_finds_errors_disorder_and_what_is_not_as_published() -> None:
    """One fault each, named."""
    details = server.ErrorDetails("invalid_request_error", "No.", "invalid_value")
    broken = json.loads(told(3, server.SessionUpdated(PLAIN)))
    broken["session"]["audio"]["output"]["speed"] = "fast"
    for event, word in (
        (told(2, server.Error(details)), "invalid_value"),
        (told(2, server.ResponseDone(RUNNING)), "strict client"),
        (json.dumps(broken), "not as published"),
    ):
        talk = Conversation()
        talk.hear_server(told(1, server.SessionCreated(PLAIN)))
        talk.hear_server(event)
        assert any(word in fault for fault in talk.faults), talk.faults


def test_conversation_that_goes_on_begins_in_the_middle() -> None:
    """What came before is not asked for; what is not as published still is a fault."""
    talk = Conversation()
    talk.goes_on = True
    talk.hear_server(told(7, server.ResponseDone(RUNNING)))
    assert talk.faults == []
    broken = json.loads(told(8, server.SessionUpdated(PLAIN)))
    broken["session"]["audio"]["output"]["speed"] = "fast"
    talk.hear_server(json.dumps(broken))
    assert any("not as published" in fault for fault in talk.faults)
