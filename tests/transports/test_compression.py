"""Long texts are compressed, everything else goes as it is."""

import asyncio
import json

from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode

from orchestrator.transports.compression import SHORTEST_BYTES, LongTextFactory
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
