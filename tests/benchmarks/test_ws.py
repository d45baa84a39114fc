"""The measurement of many WebSockets, small: real servers, real sockets, a few hundred events."""

import pytest

from benchmarks.sockets import first_text
from benchmarks.ws import WAYS, measure


@pytest.mark.parametrize("way", WAYS)
def test_every_way_sends_all_events_to_all_sockets(way: str) -> None:
    """What is counted is what was asked for: a way that lost one would never end. Both rates are told."""
    per_second, per_cpu_second = measure(way, count=3, events=1_500, burst=4)
    assert per_second > 0
    assert per_cpu_second > 0


@pytest.mark.parametrize("size", [5, 125, 126, 65_535, 65_536])
def test_first_message_is_read_whole_or_not_at_all(size: int) -> None:
    """In all three forms of a frame's length."""
    length = (
        bytes([size]) if size < 126
        else b"\x7e" + size.to_bytes(2, "big") if size < 65_536
        else b"\x7f" + size.to_bytes(8, "big")
    )  # fmt: skip
    frame = b"\x81" + length + b"x" * size
    assert first_text(frame + b"rest") == b"x" * size
    assert all(first_text(frame[:cut]) is None for cut in (0, 1, 3, len(frame) - 1))
