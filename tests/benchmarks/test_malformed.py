"""`chorale bench malformed`, small: the server, an attacker and a listener, each in a process of its own."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.malformed import RATES, claims, measure
from benchmarks.malformed_messages import malformed
from orchestrator.errors import WireError
from orchestrator.wire import codec
from orchestrator.wire.client import AppendAudio

SLOW = {"CHORALE_INBOUND__EVENTS_PER_S": "20", "CHORALE_INBOUND__EXCESS_S": "0.2"}


@pytest.mark.parametrize(("rate", "count"), [("open", 2_000), ("limited", 200)])
def test_malformed_messages_hurt_nobody(
    rate: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the inbound rate and over it: each is answered, the attacked session goes on, the other one hears its
    reply, and nothing of it is left over or shown as a fault of the server."""
    monkeypatch.setitem(RATES, "limited", SLOW)
    log = tmp_path / "server.log"

    async def main() -> None:
        async with asyncio.timeout(240):
            found = await measure(rate, count, quiet_s=0.5, log=log)
        assert [claim for claim in claims(found, rate, count) if not claim.holds] == []
        assert len(found.attacked) > 10
        assert (found.attack["closed"] > 0) is (rate == "limited")

    asyncio.run(main())
    assert "Traceback" not in log.read_text()


def test_messages_are_malformed_and_the_same_each_time() -> None:
    """None of them can be read, whatever its kind; bytes, brackets without an end and broken events are among them."""
    messages = list(malformed(3, 2_000))
    assert messages == list(malformed(3, 2_000))
    assert any(isinstance(one, bytes) for one in messages)
    assert any(isinstance(one, str) and len(one) > 40_000 for one in messages)
    for one in messages:
        with pytest.raises(WireError):
            decode(one)


def decode(message: str | bytes) -> None:
    """As a link takes a message."""
    if isinstance(message, bytes):
        raise WireError("invalid_event", "Events are sent as text.")
    event = codec.decode_client(message)
    if isinstance(event, AppendAudio):
        codec.decode_audio(event.audio)
