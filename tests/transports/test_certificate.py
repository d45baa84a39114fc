"""A certificate that no TLS can be spoken with is refused in words, before a server is made."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.types import Receive, Scope, Send

from orchestrator.errors import ConfigError
from orchestrator.transports.certificate import check_certificate
from orchestrator.transports.server import ServerOptions, make_server
from tests.test_app import certificate


def of_another(cert: Path, key: Path) -> None:
    """Puts a key there that is not the certificate's."""
    key.write_bytes(_pem(serialization.NoEncryption()))


def encrypted(cert: Path, key: Path) -> None:
    """Puts a key there that asks for a passphrase."""
    key.write_bytes(_pem(serialization.BestAvailableEncryption(b"hunter2")))


def _pem(encryption: serialization.KeySerializationEncryption) -> bytes:
    made = ec.generate_private_key(ec.SECP256R1())
    return made.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def swapped(cert: Path, key: Path) -> None:
    """Puts each in the place of the other."""
    one, other = cert.read_bytes(), key.read_bytes()
    cert.write_bytes(other)
    key.write_bytes(one)


def no_key(cert: Path, key: Path) -> None:
    """Takes the key away."""
    key.unlink()


def broken(cert: Path, key: Path) -> None:
    """Leaves the marks of a certificate and nothing between them."""
    cert.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that serves nothing."""


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (no_key, "server.tls.key: {key} cannot be read: No such file"),
        (swapped, "server.tls.cert: {cert} holds no certificate"),
        (of_another, "server.tls.key: {key} is not the key of the certificate in {cert}"),
        (encrypted, "server.tls.key: {key} is encrypted"),
        (broken, "server.tls: {cert} and {key} cannot be used: "),
    ],
)
def test_certificate_that_cannot_be_used_is_named(
    spoil: Callable[[Path, Path], None], told: str, tmp_path: Path
) -> None:
    """The setting, the file and what is wrong with it; and no server is made with it. A sound pair passes."""
    cert, key = certificate(tmp_path)
    check_certificate(cert, key)
    spoil(cert, key)
    with pytest.raises(ConfigError) as caught:
        make_server(_nothing, ServerOptions(certificate=cert, certificate_key=key))
    assert str(caught.value).startswith(told.format(cert=cert, key=key))
