"""What a client secret says, and that nobody but this server has written it: ``ek_`` and 104 characters.

They are base64url of 46 bytes and their HMAC-SHA-256: a version, when it expires, which key made it, which part of a
session belongs to it, a number of its own, and how many times something may be begun with it. There is nothing to
choose an algorithm by, and each secret has one spelling only.
"""

import base64
import hashlib
import hmac
import re
import struct
from dataclasses import dataclass

SECRET_PREFIX = "ek_"
SIGNING_KEY_BYTES = 32
NONCE_BYTES = 14
CONFIG_BYTES = 16
NO_PART = b""
"""The part of a session of a secret that has none: no JSON is empty."""

MAX_USES = 255

_KEY_ID_BYTES = 6
_VERSION = 1
_FORM = struct.Struct(f">BQ{_KEY_ID_BYTES}s{CONFIG_BYTES}s{NONCE_BYTES}sB")
_MAC_BYTES = 32
_SPELLING = re.compile(rf"[A-Za-z0-9_-]{{{(_FORM.size + _MAC_BYTES) * 4 // 3}}}")
_PURPOSE = b"chorale client secret\0"


@dataclass(frozen=True, slots=True)
class Claims:
    """`expires_us`: microseconds since 1970. `key_id`: 12 hexadecimal digits, "" where no key is needed. `config`: what
    `config_digest` says of its tenant and its part of a session. `uses` 0: as many as its holder likes."""

    expires_us: int
    key_id: str
    config: bytes
    nonce: bytes
    uses: int = 0


def config_digest(tenant: str, initial: bytes) -> bytes:
    """Returns what stands for a tenant's part of a session inside a secret."""
    return hashlib.sha256(b"%d:%b%b" % (len(tenant), tenant.encode(), initial)).digest()[:CONFIG_BYTES]


class Seal:
    """Writes and reads secrets with one signing key."""

    def __init__(self, key: bytes) -> None:
        """Raises `ValueError` on a key that is too short."""
        if len(key) < SIGNING_KEY_BYTES:
            raise ValueError(f"a signing key has at least {SIGNING_KEY_BYTES} bytes")
        self._key = key

    def close(self, claims: Claims) -> str:
        """Returns the secret that says so."""
        body = _FORM.pack(
            _VERSION,
            claims.expires_us,
            bytes.fromhex(claims.key_id) if claims.key_id else bytes(_KEY_ID_BYTES),
            claims.config,
            claims.nonce,
            claims.uses,
        )
        return SECRET_PREFIX + base64.urlsafe_b64encode(body + self._mac(body)).decode()

    def open(self, presented: str) -> Claims | None:
        """Returns what a secret says; None where this server did not write it. Nothing of it is looked at before its
        MAC, which is compared in constant time."""
        spelling = presented.removeprefix(SECRET_PREFIX)
        if not presented.startswith(SECRET_PREFIX) or not _SPELLING.fullmatch(spelling):
            return None
        signed = base64.urlsafe_b64decode(spelling)
        body, mac = signed[: _FORM.size], signed[_FORM.size :]
        if not hmac.compare_digest(mac, self._mac(body)):
            return None
        version, expires_us, key_id, config, nonce, uses = _FORM.unpack(body)
        if version != _VERSION:
            return None
        return Claims(expires_us, key_id.hex() if any(key_id) else "", config, nonce, uses)

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, _PURPOSE + body, "sha256")
