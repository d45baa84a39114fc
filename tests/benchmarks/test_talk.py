"""What the long talk's figures say."""

import os
from pathlib import Path

import pytest

from benchmarks.talk import claims, tenths
from benchmarks.talk_plot import draw
from benchmarks.talk_turn import Answer, Turn, memory_mib


def turn(number: int, cpu_ms: float = 50, new: int = 30, mib: float = 100, status: str = "completed") -> Turn:
    answer = Answer(status, 500, 700, 900, 1_000, 1_000 - new, 20)
    return Turn(number, number * 10.0, answer, {"server": mib, "llm": 300.0 + number}, cpu_ms)


def test_claims_hold_for_a_talk_that_stays_as_it_is() -> None:
    """Growth of the language model's process is its cache, which has a bound of its own."""
    assert [claim.holds for claim in claims([turn(n) for n in range(1, 41)])] == [True] * 4


@pytest.mark.parametrize(
    ("late", "fails"),
    [
        ({"cpu_ms": 70}, "processor time"),
        ({"new": 400}, "computed anew"),
        ({"mib": 130}, "memory"),
        ({"status": "failed"}, "without a complete answer"),
    ],
)
def test_claims_fail_for_what_grows(late: dict[str, float], fails: str) -> None:
    """A last quarter that costs more, computes its history again, or holds more, is told by the claim about it."""
    turns = [turn(n, **(late if n > 30 else {})) for n in range(1, 41)]  # type: ignore[arg-type]
    failed = [claim.text for claim in claims(turns) if not claim.holds]
    assert len(failed) == 1
    assert fails in failed[0]


def test_claims_about_growth_need_turns_to_compare() -> None:
    """A short run tells only whether it was answered."""
    assert len(claims([turn(1), turn(2)])) == 1


def test_tenths_cover_every_turn_once_and_tell_the_worst() -> None:
    """Medians of times, the last turn's tokens and memory, and the most that any turn computed."""
    rows = tenths([turn(n, cpu_ms=n, new=200 if n == 12 else 20) for n in range(1, 26)])
    assert len(rows) == 10
    assert str(rows[0]["turns"]).startswith("1–")
    assert str(rows[-1]["turns"]).endswith("–25")
    assert [row["most new"] for row in rows].count(200) == 1


def test_memory_of_a_server_is_found_by_its_process() -> None:
    """This process stands in for a server without workers."""
    assert set(memory_mib(os.getpid())) == {"server"}
    assert memory_mib(os.getpid())["server"] > 10


def test_picture_of_a_talk_is_a_png(tmp_path: Path) -> None:
    """It is drawn where Matplotlib is there."""
    pytest.importorskip("matplotlib")
    draw([turn(n) for n in range(1, 5)], tmp_path / "talk.png")
    assert (tmp_path / "talk.png").read_bytes().startswith(b"\x89PNG")
