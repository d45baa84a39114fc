"""A certificate that would not do is said to be none before the server starts."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from orchestrator.app import Application
from orchestrator.errors import ConfigError
from orchestrator.settings import load
from orchestrator.transports.certificates import check_certificate
from tests.test_app import SCRIPTED, certificate


def refused(chain: Path, key: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        check_certificate(chain, key)
    return str(caught.value)


def test_certificate_with_its_key_is_taken_and_nothing_else(tmp_path: Path) -> None:
    """Files that are not there, are no PEM, belong to others, or ask for a password: each is one line, by the name of
    its setting."""
    chain, key = certificate(tmp_path)
    check_certificate(chain, key)
    (tmp_path / "other").mkdir()
    _, others = certificate(tmp_path / "other")
    (tmp_path / "text").write_text("no PEM")
    locked = tmp_path / "locked.pem"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    locked.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    gone = tmp_path / "gone"
    assert refused(gone, key) == f"server.tls.cert: {gone} cannot be read: No such file or directory"
    assert refused(chain, tmp_path) == f"server.tls.key: {tmp_path} cannot be read: Is a directory"
    for one, two in ((chain, others), (tmp_path / "text", key), (chain, tmp_path / "text"), (chain, locked)):
        text = refused(one, two)
        assert text.startswith(
            f"server.tls: expected a certificate chain in {one} and its private key in {two}"
        )


def test_server_is_not_made_with_a_certificate_that_would_not_do(tmp_path: Path) -> None:
    """It would fail in the middle of its start, with a stack trace."""
    tls = f"{{cert: {tmp_path / 'gone'}, key: {tmp_path / 'gone'}}}"
    with pytest.raises(ConfigError, match=r"server\.tls\.cert"):
        Application(load(None, {**SCRIPTED, "CHORALE_SERVER__TLS": tls}))
