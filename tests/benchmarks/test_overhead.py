"""What telemetry costs, small: real servers and real sockets, a few hundred events."""

import pytest

from benchmarks.overhead import MODES, collector, frames_us, profiled, tokens_us
from benchmarks.scrape import measure


@pytest.mark.parametrize("mode", MODES)
def test_a_token_and_a_frame_are_measured_in_every_mode(mode: str) -> None:
    """All that was asked for came, and cost something."""
    with collector() as endpoint:
        assert tokens_us(mode, 600, 3, endpoint) > 0
        assert frames_us(mode, 90, 3, endpoint) > 0


@pytest.mark.parametrize("what", ["tokens", "frames"])
def test_a_profile_names_functions_of_ours(what: str) -> None:
    """Of the event loop's thread, by share; the parts on the way are among them."""
    with collector() as endpoint:
        rows = profiled(what, 600, 2, endpoint)
    shares = [row["%"] for row in rows]
    assert shares == sorted(shares, key=lambda share: -float(str(share)))
    ours = ("transports/", "sessions/", "scheduling/", "buffers/")
    assert any(str(row["function"]).startswith(ours) for row in rows)


def test_a_scrape_is_measured() -> None:
    """Every figure is one; the series are those of a server whose sessions had turns, and no session has one of its
    own. (What a slow machine did too late has a few more.)"""
    few, many = measure(2, 3), measure(30, 3)
    assert min(few.series, many.series) > 200
    assert many.series - few.series < 28
    assert many.look_ms > 0
    assert many.scrape_ms > 0
    assert many.size_bytes > 10_000
