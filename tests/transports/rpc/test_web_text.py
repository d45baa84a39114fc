"""gRPC-Web as text is its binary form in base64."""

import base64

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.web_text import Decoder
from tests.transports.running import Running, against, until

TEXT = {"content-type": "application/grpc-web-text", "x-grpc-web": "1"}
SERVICE = "/chorale.v1.Sessions/"


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 60)))
def test_decoder_reads_pieces_each_padded_wherever_they_are_cut(pieces: list[bytes], cuts: list[int]) -> None:
    """What comes out is what went in, joined."""
    data = b"".join(base64.b64encode(piece) for piece in pieces)
    decoder, found = Decoder(), b""
    for cut in cuts:
        found += decoder.feed(data[:cut], False)
        data = data[cut:]
    assert found + decoder.feed(data, True) == b"".join(pieces)


@pytest.mark.parametrize("data", [b"abc", b"ab c", b"\xff\xff\xff\xff", b"a==="])
def test_decoder_refuses_what_is_no_base64(data: bytes) -> None:
    """Also what ends too early."""
    with pytest.raises(ValueError, match=r"[Bb]ase64|padding|characters"):
        Decoder().feed(data, True)


def client_of(running: Running) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False, headers=TEXT)


def framed(message: pb.CreateRequest | pb.WatchRequest) -> bytes:
    data = message.SerializeToString()
    return base64.b64encode(b"\0" + len(data).to_bytes(4, "big") + data)


def test_answer_comes_in_base64_piece_by_piece() -> None:
    """A stream of it is read while it goes on; its type says what it is."""

    async def test(running: Running) -> None:
        async with client_of(running) as client:
            made = await client.post(SERVICE + "Create", content=framed(pb.CreateRequest(model="m")))
            assert made.headers["content-type"].startswith("application/grpc-web-text")
            session = running.house.directory.sessions[-1]
            frames = Decoder().feed(made.content, True)
            size = int.from_bytes(frames[1:5], "big")
            assert pb.SessionOpened.FromString(frames[5 : 5 + size]).session_id == session.id
            assert b"grpc-status: 0" in frames[5 + size :]
            asked = pb.WatchRequest(session_id=session.id, secret=session.secret)
            async with client.stream("POST", SERVICE + "Watch", content=framed(asked)) as answer:
                decoder, read, chunks = Decoder(), b"", answer.aiter_raw()
                for kind in (b"first", b"second"):
                    await until(lambda: len(session.links) == 1)
                    session.emit(kind.decode())
                    while kind not in read:
                        read += decoder.feed(await anext(chunks), False)

    against(test)


@pytest.mark.parametrize("body", [b"!!!!", b"AAAAAAA", b"", b"===="])
def test_body_that_is_no_base64_is_the_clients_fault(body: bytes) -> None:
    """A status that says so, and no fault of the server."""

    async def test(running: Running) -> None:
        async with client_of(running) as client:
            answer = await client.post(SERVICE + "Get", content=body)
            told = Decoder().feed(answer.content, True)
            assert b"grpc-status: 3\r" in told or b"grpc-status: 12\r" in told, told
            assert (await client.get("/healthz")).status_code == 200

    against(test)
