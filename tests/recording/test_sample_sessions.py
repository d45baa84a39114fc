"""The recorded sessions of samples/sessions/: whole, small, and as expected on the real models."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.recording.scenario import SUFFIX, Scenario, parse
from tests.recording.test_disorder import replayed_elsewhere

ROOT = Path(__file__).parents[2]
SESSIONS = ROOT / "samples" / "sessions"
DEMO = ROOT / "samples" / "demo_consistency.py"
HERE = Path(__file__).parent
MOST_BYTES = 3_000_000
PLAYED = ("number", "complement", "caption", "roll-back")


def played(*names: str) -> subprocess.CompletedProcess[str]:
    """Runs the program as `make demo-consistency` does."""
    command = [sys.executable, str(DEMO), *names]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=280, check=False)


def sessions() -> list[Scenario]:
    return [
        parse(path.read_text(encoding="utf-8"), path.name) for path in sorted(SESSIONS.glob(f"*{SUFFIX}"))
    ]


def test_every_sample_names_sounds_that_are_there_and_every_sound_is_used() -> None:
    """A recording that no session plays, or that is missing, would be noticed by nobody else."""
    named = {one.audio for scenario in sessions() for one in scenario.inputs if one.audio is not None}
    assert named == {path.name for path in SESSIONS.glob("*.flac")}


def test_the_samples_stay_small() -> None:
    """They travel with every clone."""
    assert sum(path.stat().st_size for path in SESSIONS.iterdir()) < MOST_BYTES


def test_every_sample_says_what_it_shows_and_what_must_come_of_it() -> None:
    """One without an expectation about slots would pass whatever happened."""
    for scenario in sessions():
        assert scenario.about
        assert scenario.expect.slots, scenario.about
        assert scenario.expect.errors == 0, scenario.about


def test_the_demo_fails_where_a_session_goes_another_way(tmp_path: Path) -> None:
    """Exit code 1, and both sides in words; no model is loaded for a scripted session."""
    text = (HERE / "conflict.session.yaml").read_text(encoding="utf-8")
    path = tmp_path / f"wrong{SUFFIX}"
    path.write_text(text.replace("conflicts: 1", "conflicts: 0"), encoding="utf-8")
    result = played(str(path), str(HERE / f"order{SUFFIX}"))
    assert result.returncode == 1, result.stdout + result.stderr
    assert "NOT AS EXPECTED: conflicts: expected 0, got turn 1: suspect" in result.stdout
    assert "1 of 2 sessions went as expected" in result.stdout


def test_the_demo_names_the_sessions_that_there_are() -> None:
    """A typo is answered with the names, and exit code 2."""
    result = played("numbr")
    assert result.returncode == 2
    assert "number-same" in result.stderr


def check_replays(folder: Path, count: int) -> None:
    """What was written down replays equal where sets have another order and every sum is added up in another one."""
    told = replayed_elsewhere(folder)
    assert len(told) == 2 * count
    assert all(one["effects"] > 10 and not one["differences"] for one in told), told
    assert told[-1]["vectors"] > 10


@pytest.mark.real
def test_samples_go_as_expected_on_the_real_models(tmp_path: Path) -> None:
    """A contradiction, a complement, a caption and a roll back, told so that a reader can follow; they replay exactly,
    in any order of sums."""
    result = played(*PLAYED, "--out", str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(PLAYED)} of {len(PLAYED)} sessions went as expected" in result.stdout
    assert "the user says: Set a timer for fifteen minutes." in result.stdout
    assert "turn 1: frozen" in result.stdout
    assert "committed: duration = fifty minutes" in result.stdout
    check_replays(tmp_path, len(PLAYED))


@pytest.mark.real
@pytest.mark.parametrize("part", range(3))
def test_every_other_sample_replays_exactly_in_any_order(part: int, tmp_path: Path) -> None:
    """Whatever the models of this machine make of them: what happened then happens again, to the last byte."""
    names = sorted(path.name.removesuffix(SUFFIX) for path in SESSIONS.glob(f"*{SUFFIX}"))
    others = [name for name in names if name not in PLAYED][part::3]
    result = played(*others, "--out", str(tmp_path))
    assert result.returncode in (0, 1), result.stdout + result.stderr
    assert "NOT AS EXPECTED: replay" not in result.stdout
    check_replays(tmp_path, len(others))
