"""`chorale record` and `chorale replay`: what they print, and how they end."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.cli.replay import shown_progress

SCENARIO = Path(__file__).parent.parent / "recording" / "order.session.yaml"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one recording, made by the verb."""
    folder = tmp_path_factory.mktemp("recordings")
    result = CliRunner().invoke(app, ["record", str(SCENARIO), "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert "user: We will also need parking." in result.output
    return folder


def test_replay_of_what_record_wrote_is_equal(recorded: Path) -> None:
    """Exit code 0, a row of the table for each recording; as JSON one object a line."""
    result = CliRunner().invoke(app, ["replay", str(recorded), "--exact"])
    assert result.exit_code == 0, result.output
    assert "equal" in result.output
    plain = CliRunner().invoke(app, ["replay", str(recorded), "--json"])
    found = json.loads(plain.stdout)
    assert (found["mode"], found["equal"], found["differences"]) == ("exact", True, [])
    assert found["steps"] > 20


def test_replay_of_a_changed_recording_lists_what_is_different(recorded: Path, tmp_path: Path) -> None:
    """Exit code 1, and the first difference with both sides."""
    from orchestrator.recording.lines import contents, seal

    (journal,) = recorded.glob("*.jsonl")
    lines = [
        content.replace(b"fifteen people", b"fifty people") for content in contents(journal.read_bytes())
    ]
    lines = [
        content if b'"on":"ReportCame"' in content else old
        for content, old in zip(lines, contents(journal.read_bytes()), strict=True)
    ]
    (tmp_path / "changed.jsonl").write_bytes(b"".join(map(seal, lines)))
    result = CliRunner().invoke(app, ["replay", str(tmp_path), "--json"])
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    assert not found["equal"]
    assert found["differences"][0]["line"] > 1
    table = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert table.exit_code == 1
    assert "different" in table.output
    sides = [line for line in table.output.splitlines() if line.startswith("    ")]
    recorded_side, now = next(
        pair for pair in zip(sides[::2], sides[1::2], strict=True) if "fifteen" in pair[0]
    )
    assert recorded_side.startswith("    recorded: ")
    assert now.startswith("    now:      ")
    assert "fifty" in now


def test_a_recording_that_cannot_be_read_does_not_hide_the_others(recorded: Path, tmp_path: Path) -> None:
    """A folder with one that was cut off before its first line, as a killed server may leave it: the others are
    replayed, this one is named, and the exit code is 2."""
    (journal,) = recorded.glob("*.jsonl")
    (tmp_path / "b.jsonl").write_bytes(journal.read_bytes())
    (tmp_path / "a.jsonl").touch()
    result = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert result.exit_code == 2
    assert "a.jsonl: no header" in result.output
    assert "equal" in result.output
    plain = CliRunner().invoke(app, ["replay", str(tmp_path), "--json"])
    first, second = map(json.loads, plain.stdout.splitlines())
    assert "no header" in first["error"]
    assert second["equal"]


def test_what_record_writes_is_for_this_account_only(recorded: Path) -> None:
    """Somebody's voice is in it."""
    assert all(path.stat().st_mode & 0o077 == 0 for path in recorded.iterdir())


def test_progress_is_for_terminals_only(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bar on a terminal's standard error, nothing in a pipe's."""
    assert "━" not in CliRunner().invoke(app, ["replay", str(recorded), "--json"]).stderr
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with shown_progress(1) as progress:
        progress("one", 0.5)
    assert "one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["gone.jsonl"], "There is no gone.jsonl"),
        (["."], "No recordings"),
        (["bad.jsonl"], "bad.jsonl"),
        (["bad.jsonl", "--exact", "--rerun"], "--exact"),
        (["good.jsonl", "--model", "ears=big"], "ROLE=MODEL"),
    ],
)
def test_what_cannot_be_replayed_is_a_usage_error(
    arguments: list[str], named: str, tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and a sentence, no stack."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty" if arguments == ["."] else tmp_path)
    if arguments != ["."]:
        Path("bad.jsonl").write_text("no journal\nat all\n")
        (journal,) = recorded.glob("*.jsonl")
        Path("good.jsonl").write_bytes(journal.read_bytes())
    result = CliRunner().invoke(app, ["replay", *arguments])
    assert result.exit_code == 2, result.output
    assert named in result.output
    assert "Traceback" not in result.output
    assert not result.stdout, "no table where nothing was run"


def test_rerun_through_worker_processes_lists_what_models_say_otherwise(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inputs alone go through the configured engines: a recogniser that hears something else is found out."""
    for role in ("ASR", "UNDERSTAND", "LLM", "SPEECH"):
        monkeypatch.setenv(f"CHORALE_WORKERS__{role}__ENGINE", "scripted")
    result = CliRunner().invoke(app, ["replay", str(recorded), "--rerun", "--json"])
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    assert found["mode"] == "rerun"
    assert any("You said: We will also need parking." in one["got"] for one in found["differences"])
    assert any("Parking is noted." in one["expected"] for one in found["differences"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "Nothing to record"),
        (["gone.wav"], "There is no gone.wav"),
        (["--type", "soon=hi"], "SECONDS=TEXT"),
    ],
)
def test_record_without_something_to_say_is_a_usage_error(arguments: list[str], named: str) -> None:
    """Exit code 2 and what was expected."""
    result = CliRunner().invoke(app, ["record", *arguments])
    assert result.exit_code == 2
    assert named in result.output
