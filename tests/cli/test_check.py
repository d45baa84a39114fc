"""`chorale check` looks at everything a configuration needs."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.main import app
from tests.test_app import certificate

SCRIPTED = """
server: {port: 0}
audio: {vad: {engine: scripted}}
workers:
  asr: {engine: scripted}
  understand: {engine: scripted}
  llm: {engine: scripted}
  speech: null
"""


def check(folder: Path, text: str) -> Result:
    """Checks a configuration with this text."""
    file = folder / "chorale.yaml"
    file.write_text(text)
    return CliRunner().invoke(app, ["check", "--config", str(file)])


def rows(result: Result) -> dict[str, str]:
    """The table by subject: what follows it."""
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def test_check_of_a_sound_configuration_ends_well(tmp_path: Path) -> None:
    """Every part is named, nothing is wrong: 0."""
    result = check(tmp_path, SCRIPTED)
    assert result.exit_code == 0, result.output
    found = rows(result)
    assert found["keys"].startswith("ok none needed")
    assert found["workers.llm"].startswith("ok scripted")
    assert found["speech"].startswith("note switched off")


def test_check_refuses_a_wrong_configuration_with_every_fault(tmp_path: Path) -> None:
    """2, and the same text that `serve` would give."""
    result = check(tmp_path, "server: {prot: 1}\nsesions: {}\n")
    assert result.exit_code == 2
    assert "did you mean port?" in result.output
    assert "did you mean sessions?" in result.output


def test_check_names_a_missing_model_and_how_to_install_it(tmp_path: Path) -> None:
    """2, the model, and the command that brings it."""
    result = check(
        tmp_path, SCRIPTED.replace("llm: {engine: scripted}", "llm: {engine: llama_cpp, model: owner/parrot}")
    )
    assert result.exit_code == 2
    assert "fault" in rows(result)["workers.llm"]
    assert "chorale models install --hub owner/parrot" in " ".join(result.output.split())


def test_check_names_an_option_that_an_engine_does_not_have(tmp_path: Path) -> None:
    """Options are known before any engine is loaded; other workers are looked at all the same."""
    result = check(
        tmp_path, SCRIPTED.replace("asr: {engine: scripted}", "asr: {engine: scripted, options: {beem: 3}}")
    )
    assert result.exit_code == 2
    assert "'beem'" in rows(result)["workers.asr"]
    assert rows(result)["workers.llm"].startswith("ok")


def test_check_says_that_the_port_is_taken(tmp_path: Path) -> None:
    """1: the configuration is sound, the machine is not ready."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = check(tmp_path, SCRIPTED.replace("port: 0", f"port: {port}"))
    assert result.exit_code == 1
    assert "fault" in rows(result)["address"]


def test_check_says_that_the_port_of_grpc_is_taken(tmp_path: Path) -> None:
    """It is a port of its own; one that is free is shown."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = check(tmp_path, SCRIPTED.replace("port: 0", f"port: 0, grpc: {{port: {port}}}"))
    assert (result.exit_code, rows(result)["gRPC"].split()[0]) == (1, "fault")
    result = check(tmp_path, SCRIPTED.replace("port: 0", "port: 0, grpc: {port: 0}"))
    assert (result.exit_code, rows(result)["gRPC"]) == (0, "ok 127.0.0.1, any free port")


def test_check_reads_the_key_file_and_looks_who_else_can(tmp_path: Path) -> None:
    """Faults of the key file are shown; a file that others may read is noted."""
    keys = tmp_path / "keys.yaml"
    keys.write_text("keys: [{key: sk-0123456789abcdef, tenant: acme}]\n")
    keys.chmod(0o644)
    text = SCRIPTED.replace("port: 0", "port: 0, key_file: keys.yaml")
    result = check(tmp_path, text)
    assert result.exit_code == 0
    assert "chmod 600" in result.output
    assert "sk-0123456789abcdef" not in result.output
    keys.chmod(0o600)
    assert "chmod 600" not in check(tmp_path, text).output
    keys.write_text("keys: []\n")
    assert check(tmp_path, text).exit_code == 2
    keys.write_text("keys: [{key: sk-0123456789abcdef, tenant: acme, limits: {llm_tokens: 500}}]\n")
    starved = check(tmp_path, text)
    assert starved.exit_code == 2
    assert "keys.0.limits.llm_tokens" in starved.output


def test_check_notes_keys_in_clear_and_looks_at_the_signing_key(tmp_path: Path) -> None:
    """What whoever reads the file can use is noted; a signing key that is short is a fault, one that others may read
    is noted."""
    keys, secret = tmp_path / "keys.yaml", tmp_path / "secret"
    keys.write_text("keys: [{key: sk-0123456789abcdef, tenant: acme}]\n")
    secret.write_bytes(bytes(31))
    for file in (keys, secret):
        file.chmod(0o600)
    text = SCRIPTED.replace("port: 0", "port: 0, key_file: keys.yaml, secret_file: secret")
    short = check(tmp_path, text)
    assert short.exit_code == 2
    assert "chorale keys hash" in short.output
    assert "31 bytes" in short.output
    secret.write_bytes(bytes(32))
    assert check(tmp_path, text).exit_code == 0
    assert "chmod 600" not in check(tmp_path, text).output
    secret.chmod(0o644)
    assert "chmod 600" in check(tmp_path, text).output


def test_check_looks_at_the_certificate(tmp_path: Path) -> None:
    """One that would not do is a fault, a key that others may read is noted."""
    chain, key = certificate(tmp_path)
    text = SCRIPTED.replace("port: 0", "port: 0, tls: {cert: cert.pem, key: key.pem}")
    key.chmod(0o600)
    assert check(tmp_path, text).exit_code == 0
    assert "chmod 600" not in check(tmp_path, text).output
    key.chmod(0o644)
    assert "chmod 600" in check(tmp_path, text).output
    chain.write_text("no PEM")
    wrong = check(tmp_path, text)
    assert wrong.exit_code == 2
    assert "server.tls: expected" in wrong.output


def test_check_of_a_domain_names_its_faults(tmp_path: Path) -> None:
    """A domain file is read before any worker sees it."""
    (tmp_path / "domain.yaml").write_text("intentions: {}\n")
    text = SCRIPTED.replace(
        "understand: {engine: scripted}", "understand: {engine: scripted, domain: domain.yaml}"
    )
    result = check(tmp_path, text)
    assert result.exit_code == 2
    assert "intentions" in result.output


def test_check_of_an_endpoint_says_whether_anybody_is_there(tmp_path: Path) -> None:
    """A server waits for its endpoint, so one that is away is a note and not a fault."""
    text = "llm: {engine: openai_compatible, model: m, options: {base_url: 'http://127.0.0.1:%d/v1'}}"
    with socket.socket() as endpoint:
        endpoint.bind(("127.0.0.1", 0))
        port = endpoint.getsockname()[1]
        configured = SCRIPTED.replace("llm: {engine: scripted}", text % port)
        away = check(tmp_path, configured)
        endpoint.listen()
        there = check(tmp_path, configured)
    assert (away.exit_code, there.exit_code) == (0, 0)
    assert f"nobody answers at 127.0.0.1:{port}" in away.output
    assert "nobody answers" not in there.output


@pytest.mark.parametrize("key", ["", "sk-1234"])
def test_check_of_an_endpoint_looks_for_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """The variable is named where it is empty; what it holds is never shown."""
    monkeypatch.setenv("PARROT_KEY", key)
    text = "llm: {engine: openai_compatible, model: m, options: {key_environment: PARROT_KEY}}"
    result = check(tmp_path, SCRIPTED.replace("llm: {engine: scripted}", text))
    assert result.exit_code == (0 if key else 2)
    assert ("PARROT_KEY" in result.output) is not bool(key)
    assert "sk-1234" not in result.output


@pytest.mark.parametrize("installed", [True, False])
def test_check_names_the_licence_of_piper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    """Who speaks by Piper knows that it is GPL-3; who has not installed it learns what replies are, and the way out."""
    monkeypatch.setattr(
        "orchestrator.settings.engines.package_folder", lambda name: tmp_path if installed else None
    )
    monkeypatch.setattr("orchestrator.settings.engines.models.resolve", _anything)
    result = check(tmp_path, SCRIPTED.replace("speech: null", "speech: {engine: piper}"))
    row = rows(result)["speech"]
    assert row.startswith("note piper-tts is GPL-3" if installed else "note piper-tts is not installed")
    assert ("pip install piper-tts" in row) is not installed
    assert result.exit_code == 0


def _anything(role: str, engine: str, wanted: str | None = None, *, allow_download: bool = False) -> object:
    from orchestrator.models import Resolved

    return Resolved(engine, "model", "package", {})
