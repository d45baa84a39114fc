"""Long texts are compressed, everything else goes as it is."""

import asyncio
import json
import tracemalloc

import pytest
from msgspec import structs
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode

from orchestrator.ids import session_secret
from orchestrator.sessions.links import LinkKind, LoggedEvent
from orchestrator.sessions.secrecy import for_holders
from orchestrator.transports.compression import SHORTEST_BYTES, LongTextFactory
from orchestrator.transports.server import MAX_MESSAGE_BYTES
from orchestrator.wire import codec
from orchestrator.wire.server import SessionUpdated
from orchestrator.wire.session import Extension
from tests.transports.fake_sessions import DEFAULTS
from tests.transports.running import Running, against, heard, open_session


def text(data: bytes) -> Frame:
    return Frame(Opcode.TEXT, data)


def test_long_texts_are_compressed_and_nothing_else() -> None:
    """Short events and sound stay as they are; a long text shrinks and comes out the same at the other end."""
    _, ours = LongTextFactory().process_request_params([("client_max_window_bits", None)], [])
    theirs = PerMessageDeflate(False, False, 12, 12)
    short = text(b"x" * (SHORTEST_BYTES - 1))
    sound = text(
        b'{"event_id":"event_1","type":"response.output_audio.delta","delta":"' + b"A" * 20_000 + b'"}'
    )
    pong = Frame(Opcode.PONG, b"x" * 100)
    for frame in (short, sound, pong):
        assert ours.encode(frame) is frame
        assert theirs.decode(frame) == frame
    for _ in range(3):
        long = text(b"words and words " * 200)
        sent = ours.encode(long)
        assert sent.rsv1
        assert len(sent.data) < len(long.data) // 10
        assert bytes(theirs.decode(sent).data) == long.data


def test_client_that_offers_compression_gets_long_events_whole() -> None:
    """Negotiated with a real client, mixed long and short events arrive in order and intact."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            assert [extension.name for extension in link.protocol.extensions] == ["permessage-deflate"]
            kinds = ["a", "b" * 5_000, "c", "d" * 100_000, "e"]
            for kind in kinds:
                session.emit(kind)
            assert [(await heard(link))["type"] for _ in kinds] == kinds
            await link.send(json.dumps({"type": "response.create", "event_id": "x" * 500}))
            await asyncio.wait_for(session.wait_for(1), 30)

    against(test)


def test_event_that_shows_a_secret_is_not_compressed() -> None:
    """As the session writes it: neither its own length nor those of what follows tell of the secret."""
    _, ours = LongTextFactory().process_request_params([("client_max_window_bits", None)], [])
    secret = session_secret()
    shown = SessionUpdated(
        structs.replace(DEFAULTS, instructions="x" * 2_000, chorale=Extension(typed_turns=True))
    )
    hidden = LoggedEvent(codec.encode(shown, "event_1"))
    entry = for_holders(hidden, shown, "event_1", secret)
    assert secret.encode() in entry.shown(LinkKind.WEBSOCKET)
    frame = text(entry.shown(LinkKind.WEBSOCKET))
    assert ours.encode(frame) is frame
    assert ours.encode(text(hidden.data)).rsv1


@pytest.mark.parametrize("fragments", [1, 8])
def test_message_that_unpacks_to_too_much_ends_its_link_before_it_is_unpacked(fragments: int) -> None:
    """Some hundred kilobytes that are a quarter of a gigabyte, or parts that are each within the bound: 1009, at the
    cost of one message; the next link is served."""
    part = b" " * (256 * 2**20 if fragments == 1 else MAX_MESSAGE_BYTES // 2)

    async def answered(link: ClientConnection) -> None:
        await link.send([part] * fragments if fragments > 1 else part, text=True)
        await link.recv()

    async def test(running: Running) -> None:
        async with running.connect() as link:
            await heard(link)
            tracemalloc.start()
            try:
                with pytest.raises(ConnectionClosed) as closed:
                    await answered(link)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
            assert peak < 6 * MAX_MESSAGE_BYTES
        async with running.connect() as link:
            await heard(link)

    against(test)
