"""The root of the command line."""

import importlib.metadata
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app

HEAVY = ("numpy", "fastapi", "uvicorn", "aiortc", "torch", "onnxruntime", "pydantic", "httpx", "openai")


def test_help_names_every_verb_and_shows_examples() -> None:
    """`chorale --help` is enough to begin."""
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for verb in ("serve", "check", "bench"):
        assert verb in result.output
    assert "Examples:" in result.output


@pytest.mark.parametrize("verb", ["serve", "check"])
def test_help_of_a_verb_shows_examples(verb: str) -> None:
    """Each verb shows how it is used, line by line, and its exit codes."""
    result = CliRunner().invoke(app, [verb, "--help"])
    assert result.exit_code == 0
    assert f"\n    chorale {verb}" in result.output
    assert "Exit codes: 0" in result.output


def test_version_is_the_installed_one() -> None:
    """`chorale --version` names what is installed."""
    result = CliRunner().invoke(app, ["--version"])
    assert result.output == f"chorale {importlib.metadata.version('chorale')}\n"


def test_help_loads_no_engine_and_no_server() -> None:
    """Asking for help must not cost seconds: nothing heavy is imported for it."""
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from orchestrator.cli.main import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_unknown_verb_is_a_usage_error() -> None:
    """A typo gets exit code 2, not a stack trace."""
    result = CliRunner().invoke(app, ["sevre"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
