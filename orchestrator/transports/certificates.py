"""Whether a certificate and its key are there and belong together: said before the server starts, in one line."""

import ssl
from pathlib import Path

from orchestrator.errors import ConfigError


def check_certificate(chain: Path, key: Path) -> None:
    """Raises `ConfigError` where a TLS server could not start with these files (PEM)."""
    for name, path in (("cert", chain), ("key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise ConfigError(f"server.tls.{name}: {path} cannot be read: {error.strerror}") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(chain, key, _no_password)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"server.tls: expected a certificate chain in {chain} and its private key in {key}, both PEM and without a "
            "password"
        ) from None


def _no_password() -> str:
    """Stands in for a person at the terminal, who would be asked in the middle of a start."""
    raise ValueError("it has a password")
