"""Looks at a certificate and its key before anything is made with them, and says in words what is wrong."""

import ssl
from pathlib import Path

from orchestrator.errors import ConfigError

_PARTS = (("cert", b"CERTIFICATE-----", "certificate"), ("key", b"PRIVATE KEY-----", "private key"))


def check_certificate(chain: Path, key: Path) -> None:
    """Raises `ConfigError`, naming the setting and the file, where a server cannot speak TLS with this chain and key.
    Asks nobody for a passphrase."""
    for (name, mark, what), path in zip(_PARTS, (chain, key), strict=True):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"server.tls.{name}: {path} cannot be read: {error.strerror}") from None
        if mark not in content:
            raise ConfigError(f"server.tls.{name}: {path} holds no {what} in PEM")
    asked: list[bool] = []

    def no_passphrase() -> str:
        asked.append(True)
        return ""

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(chain, key, no_passphrase)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(_wrong(chain, key, bool(asked), error)) from None


def _wrong(chain: Path, key: Path, is_encrypted: bool, error: Exception) -> str:
    reason = getattr(error, "reason", None) or str(error)
    if is_encrypted:
        return f"server.tls.key: {key} is encrypted; expected one without a passphrase"
    if reason == "KEY_VALUES_MISMATCH":
        return f"server.tls.key: {key} is not the key of the certificate in {chain}"
    return f"server.tls: {chain} and {key} cannot be used: {reason}"
