from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import orchestrator
from orchestrator.cli import bench

app = typer.Typer()
app.callback()(lambda: None)
app.command("bench", context_settings=bench.PASS_ON)(bench.bench)


def ran(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "120", **environment})


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_bench_without_a_name_lists_the_benchmarks(arguments: tuple[str, ...]) -> None:
    """A reader sees what there is, each with its whole sentence."""
    result = ran(*arguments, COLUMNS="80")
    assert result.exit_code == 0
    assert "..." not in result.output.partition("Commands:")[2]
    assert "speech" in result.output
    assert "Recorded speech through WebRTC calls" in result.output


def test_bench_hands_its_arguments_to_the_benchmark() -> None:
    """What stands behind the name, options too, is the benchmark's own."""
    result = ran("speech", "--help")
    assert result.exit_code == 0
    assert "--calls" in result.output


def test_a_benchmark_that_is_not_there_is_an_error() -> None:
    """A wrong name ends with the exit code of wrong usage."""
    assert ran("nonesuch").exit_code == 2


def test_speech_without_data_says_what_to_give() -> None:
    """Without recordings the benchmark names the option and the variable, and measures nothing."""
    result = ran("speech", CHORALE_SPEECH_DATA="")
    assert result.exit_code == 2
    assert "CHORALE_SPEECH_DATA" in result.output


def test_speech_with_a_folder_that_has_no_recordings_says_so(tmp_path: Path) -> None:
    """Wrong usage is a sentence, not a stack trace."""
    result = ran("speech", "--data", str(tmp_path))
    assert result.exit_code == 2
    assert "manifest.jsonl" in result.output


def test_speech_without_a_server_says_so(tmp_path: Path) -> None:
    """Before any recording is decoded: 1, and the command that starts one."""
    (tmp_path / "manifest.jsonl").write_text("")
    result = ran("speech", "--data", str(tmp_path), "--url", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "chorale serve" in result.output


def test_bench_outside_a_source_tree_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installed package has no benchmarks, and that is said in a sentence."""
    monkeypatch.setattr(orchestrator, "__file__", str(tmp_path / "orchestrator" / "__init__.py"))
    result = ran()
    assert result.exit_code == 2
    assert "source tree" in result.output


def test_talk_shows_how_it_is_called_and_refuses_a_third_way_of_asking() -> None:
    """Examples with the help; a wrong `--say` ends before a server is started."""
    assert "chorale bench talk --turns 60" in ran("talk", "--help").output
    result = ran("talk", "--say", "signs")
    assert result.exit_code == 2
    assert "voice or text" in result.output
