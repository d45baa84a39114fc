"""Whatever bytes reach a decoder, valid ones with a few changes above all: a value, or the refusal that it promises."""

import asyncio
import json
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.json_format import MessageToJson, Parse, ParseError
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers

from orchestrator.errors import ConfigError, Unauthorized, WireError
from orchestrator.ids import event_tag
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LinkKind
from orchestrator.transports import rejoining
from orchestrator.transports.auth import (
    Gate,
    Key,
    KeyRing,
    Principal,
    SecretBook,
    credential,
    digest_of,
    offered_subprotocols,
)
from orchestrator.transports.cursor import event_number
from orchestrator.transports.inlet import Inlet
from orchestrator.transports.key_file import parse_keys
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.wire import codec, update
from orchestrator.wire.server import SessionCreated
from orchestrator.wire.session import PCM, AudioFormat
from tests.fuzz.mutations import TIMES, bytes_like, text_like, values_like
from tests.fuzz.samples import EVENTS, SESSION, WRITTEN
from tests.transports.fake_sessions import DEFAULTS, FakeDirectory
from tests.transports.running import build

KEY = "sk-fuzzed-0123456789"
RING = KeyRing([Key(digest_of(KEY), Principal("acme", Tier.GOLD))])
HOUR_US = 3_600_000_000


def test_samples_hold_every_event() -> None:
    """Each is decoded as it stands: what is fuzzed below begins where it is right."""
    assert {one["type"] for one in EVENTS} == set(codec.EVENT_NAMES)
    for data in WRITTEN:
        codec.decode_client(data)


def decodes(data: bytes) -> None:
    """A value or a `WireError`, the same as text; whatever it was can be answered."""
    event_id = codec.client_event_id(data)
    refused = None
    try:
        codec.decode_client(data)
    except WireError as error:
        refused = error
    if refused is not None:
        assert json.loads(codec.encode(codec.error_event(refused, event_id), "event_1"))["type"] == "error"
    with suppress(UnicodeDecodeError, WireError):
        codec.decode_client(data.decode())


@settings(max_examples=400 * TIMES, deadline=None)
@given(bytes_like(*WRITTEN))
def test_bytes_of_an_event_are_read_or_refused(data: bytes) -> None:
    """Whatever was changed in it."""
    decodes(data)


@settings(max_examples=400 * TIMES, deadline=None)
@given(st.sampled_from(EVENTS).flatmap(values_like))
def test_parts_of_an_event_are_read_or_refused(event: Any) -> None:
    """Fields of another type, out of range, doubled, missing, or unknown."""
    decodes(json.dumps(event).encode())


@settings(max_examples=200 * TIMES, deadline=None)
@given(values_like(SESSION))
def test_parts_of_a_session_are_read_or_refused(session: Any) -> None:
    """As it opens, and as it is changed later; one that was taken can be shown."""
    part = json.dumps(session).encode()
    with suppress(WireError):
        codec.encode(SessionCreated(update.initial("s", "m", 0, DEFAULTS, part)), "event_1")
    with suppress(WireError):
        update.merge(DEFAULTS, part, audio_started=True)


@given(st.integers(0, 2**63), st.data())
def test_cursor_is_a_number_of_this_session_or_none(number: int, data: st.DataObject) -> None:
    """In ASCII digits, alone or behind the session's tag; never another session's, never more than 16 digits."""
    session = FakeDirectory().open(Principal("a", Tier.GOLD).request(None, None, None), LinkKind.EVENTS)
    session.id, session.last = "sess_0123456789abcdefABCD", 10**16
    tag = event_tag(session.id)
    written = data.draw(text_like(str(number), f"event_{tag}_{number}", f"event_other_{number}", "٣²"))
    found = event_number(written, tag)
    if found is None:
        with pytest.raises(WireError, match=r"^Invalid value for 'after': "):
            rejoining.reads_on(written, session)
    else:
        assert 0 <= found < 10**16
        assert written.removeprefix(f"event_{tag}_").isascii()
        assert rejoining.reads_on(written, session) == found


@settings(deadline=None)
@given(text_like("AAAA", "AAA=", "AA==", "A A A", "////", "-_-_"))
def test_base64_is_sound_or_refused(written: str) -> None:
    """Sound of any length, cut anywhere, is taken by every input format."""
    try:
        sound = codec.decode_audio(written)
    except WireError:
        return
    formats = (PCM, AudioFormat(type="audio/pcmu"), AudioFormat(type="audio/pcma"))
    inlet = Inlet()
    for one in formats:
        assert all(pcm.dtype == np.int16 for pcm in inlet.feed(sound, one))


NAMED: dict[str, Any] = {"session_id": "sess_1", "secret": "s"}
MESSAGES: list[Any] = [
    pb.ClientMessage(open=pb.Open(model="m", session='{"type":"realtime"}')),
    pb.ClientMessage(join=pb.Join(after=3, **NAMED)),
    pb.ClientMessage(event=pb.Event(json='{"type":"response.cancel"}')),
    pb.ClientMessage(sound=pb.Sound(data=bytes(40))),
]


@settings(max_examples=300 * TIMES, deadline=None)
@given(bytes_like(*(one.SerializeToString() for one in MESSAGES)))
def test_bytes_of_a_client_message_are_read_or_refused(data: bytes) -> None:
    """By the library that reads them; what was read can be written again, and its event is read or refused."""
    message = pb.ClientMessage()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return
    message.SerializeToString()
    with suppress(WireError):
        codec.decode_client(message.event.json)


@settings(deadline=None)
@given(text_like(*(MessageToJson(one) for one in MESSAGES)))
def test_json_of_a_client_message_is_read_or_refused(written: str) -> None:
    """As Connect reads it."""
    with suppress(ParseError):
        Parse(written, pb.ClientMessage())


@given(text_like("realtime, openai-insecure-api-key.sk-1, chorale-session-secret.rs_1", "Bearer sk-1", ","))
def test_subprotocols_are_names_without_blanks(written: str) -> None:
    """None is empty; a key or a secret among them is a part of what was written."""
    headers = {"sec-websocket-protocol": written, "authorization": written}
    assert all(name == name.strip() != "" for name in offered_subprotocols(headers))
    key = credential(headers)
    assert key is None or (key in written and key)
    assert rejoining.shown_secret(headers, {}) in written


@settings(max_examples=300 * TIMES, deadline=None)
@given(st.data())
def test_only_what_was_made_opens_anything(data: st.DataObject) -> None:
    """A client secret of which a character was changed is none, whatever it says then."""
    gate = Gate(RING, SecretBook(10, bytes(32)))
    made = gate.secrets.make(gate.admit(KEY, 0), b'{"type":"realtime"}', 3_600, 0, uses=2).value
    shown = data.draw(text_like(made, KEY))
    if shown in (made, KEY):
        assert gate.admit(shown, HOUR_US - 1).tenant == "acme"
    else:
        with pytest.raises(
            Unauthorized, match=r"^(Incorrect API key|The client secret is unknown or has expired)\.$"
        ):
            gate.admit(shown, 0)


@given(
    text_like(
        "203.0.113.7, 10.0.0.1", "[2001:db8::1]:80, 10.0.0.1", "::ffff:10.0.0.1", "unknown, fe80::1%eth0"
    ),
    text_like("0123456789abcdef" * 2, "https"),
)
def test_forwarded_for_names_an_address_whatever_is_written(written: str, other: str) -> None:
    """Of a known proxy: the address that it wrote, or its own; a name for a session only in its one spelling."""
    raw = [(b"x-forwarded-for", written.encode()), (b"chorale-new-session", other.encode())]
    raw.append((b"x-forwarded-proto", other.encode()))
    proxies, headers = Proxies(["10.0.0.0/8"]), Headers(raw=raw)
    who = proxies.caller_of("10.0.0.9", headers)
    ip_address(who.address.partition("%")[0])
    assert who.session_id in (None, f"sess_{other}")
    assert who.session_id is None or other.isalnum()
    assert proxies.scheme_of("10.0.0.9", headers, "ws") in ("ws", "wss")
    stranger = proxies.caller_of("192.0.2.1", headers)
    assert (stranger.address, stranger.by_proxy, stranger.session_id) == ("192.0.2.1", False, None)


ENTRIES = f"""keys:
- key: {KEY}
  tenant: acme
  tier: gold
  origins: [https://a.example]
  sessions: 4
  limits: {{llm_tokens: 1000, requests: 3, window_s: 60}}
  expires: 2031-01-01T00:00:00Z
- {{sha256: {"ab" * 32}, tenant: other}}
"""


@settings(max_examples=300 * TIMES, deadline=None)
@given(text_like(ENTRIES, "keys: [{sha256: 0, tenant: &a [*a]}]", "keys: [{expires: 2026-99-99}]"))
def test_key_file_is_read_or_refused_without_showing_a_key(text: str) -> None:
    """Whatever was changed in it."""
    told = ""
    try:
        parse_keys(text, Path("keys.yaml"))
    except ConfigError as error:
        told = str(error)
    assert KEY not in told


@pytest.mark.parametrize(
    "text",
    [
        f"keys: [{{{KEY}: acme}}]",
        f"{KEY}: acme\nkeys: [{{key: {KEY}, tenant: a}}]",
        f"keys: [{{key: [{KEY}], tenant: a}}]",
        f"keys: [{{key: {KEY}, tenant: a, tier: {KEY}}}]",
        f"keys: [{{key: {KEY}, tenant: a, origins: [{KEY}]}}]",
        f"keys: [{{key: {KEY}, tenant: a, expires: {KEY}}}]",
        f"keys: [{{key: {KEY}, tenant: a, sessions: {KEY}, limits: {{{KEY}: 1, requests: {KEY}}}}}]",
        f"keys: [{KEY}]",
        f"{KEY}",
    ],
)
def test_key_in_the_wrong_place_of_its_file_is_not_shown(text: str) -> None:
    """Who errs in the file's grammar sees where, not what."""
    with pytest.raises(ConfigError) as caught:
        parse_keys(text, Path("keys.yaml"))
    assert KEY not in str(caught.value)


PARTS = [
    b'--b\r\nContent-Disposition: form-data; name="sdp"\r\n\r\nv=0\r\n--b--\r\n',
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n'
    b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n',
]


@settings(max_examples=30 * TIMES, deadline=None)
@given(st.lists(bytes_like(*PARTS), min_size=3, max_size=8), text_like("multipart/form-data; boundary=b"))
def test_forms_are_read_or_refused(bodies: list[bytes], kind: str) -> None:
    """Offers in forms whose parts, boundaries or headers are wrong: 4xx, in the one shape."""

    async def main() -> None:
        async with build().client() as client:
            for number, body in enumerate(bodies):
                header = "multipart/form-data; boundary=b" if number else kind
                answer = await client.post(
                    "/v1/realtime/calls", content=body, headers=[(b"content-type", header.encode())]
                )
                assert answer.status_code in (201, 400, 413, 415), answer.text
                assert answer.status_code == 201 or set(answer.json()) == {"error"}

    asyncio.run(main())


ENVELOPES = [b"\0" + len(data := one.SerializeToString()).to_bytes(4, "big") + data for one in MESSAGES] + [
    b"\x02\0\0\0\0",
    b"\x80\0\0\0\x02{}",
    b"\1\0\0\0\1\0",
    b"\0\xff\xff\xff\xff",
]
KINDS = (
    "application/connect+proto",
    "application/connect+json",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/proto",
    "application/json",
)


@settings(max_examples=30 * TIMES, deadline=None)
@given(
    st.lists(bytes_like(*ENVELOPES, b"AAAAAAA="), min_size=3, max_size=8),
    st.sampled_from(KINDS),
    st.sampled_from(["Converse", "Watch", "Create", "Send"]),
)
def test_envelopes_are_read_or_refused(bodies: list[bytes], kind: str, method: str) -> None:
    """Flags, lengths and contents of Connect's and gRPC-Web's frames: never a fault of the server."""

    async def main() -> None:
        house = build()
        async with house.client(**{"content-type": kind, "connect-protocol-version": "1"}) as client:
            for body in bodies:
                asking = asyncio.create_task(client.post(f"/chorale.v1.Sessions/{method}", content=body))
                while not asking.done():
                    for (
                        session
                    ) in house.directory.living:  # what was good enough to open one goes on until it ends
                        house.directory.end(session, "enough")
                    await asyncio.sleep(0)
                answer = await asking
                assert answer.status_code in (200, 400, 404, 415, 429, 501), answer.text
                assert b'"internal"' not in answer.content or b"compress" in answer.content
                assert b"Traceback" not in answer.content

    asyncio.run(main())
