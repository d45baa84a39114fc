"""Who is asking: keys from a file, client secrets made for browsers, and where a request carries either.

A key stands for a tenant, its tier and the pages that may use it. A client secret (``ek_…``) is made with a key, stands
for the same tenant for a while, and brings a part of a session with it. Neither is ever logged or echoed.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded, Unauthorized
from orchestrator.flow.tenants import Quotas
from orchestrator.ids import random_id
from orchestrator.scheduling.job import Tier

SECRET_PREFIX = "ek_"
KEY_SUBPROTOCOL = "openai-insecure-api-key."
SELECTED_SUBPROTOCOL = "realtime"

MAX_INITIAL_BYTES = 65_536
"""The part of a session that one client secret may carry."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who may do what. `origins` None means: the server's own list. `initial` is the partial session (JSON) of a client
    secret; `temporary` is true for a client secret, which cannot make further ones."""

    tenant: str
    tier: Tier
    origins: tuple[str, ...] | None = None
    initial: bytes | None = None
    temporary: bool = False


LOCAL = Principal(tenant="local", tier=Tier.GOLD)
"""Everyone, on a server that only this machine can reach and that has no key file."""


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the key file; `digest` is the SHA-256 of the key. `quotas`: its tenant's own, None: its tier's."""

    digest: bytes
    principal: Principal
    quotas: Quotas | None = None


class KeyRing:
    """The keys that are valid."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def quotas(self) -> Mapping[str, Quotas]:
        """The tenants that have quotas of their own, and these."""
        return {key.principal.tenant: key.quotas for key in self._keys if key.quotas is not None}

    @property
    def origins(self) -> frozenset[str]:
        """Every origin that some key allows (a browser's preflight names no key)."""
        return frozenset(origin for key in self._keys for origin in key.principal.origins or ())

    def find(self, presented: str) -> Principal | None:
        """Returns whose key this is. Compares with every key, each in constant time, so that the time taken tells
        nothing about any of them."""
        digest = digest_of(presented)
        found = None
        for key in self._keys:
            if hmac.compare_digest(digest, key.digest):
                found = key.principal
        return found


def digest_of(secret: str) -> bytes:
    """Returns the SHA-256 of a key or secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A secret that was just made: shown once, kept only as its digest."""

    value: str
    expires_us: int


@dataclass(frozen=True, slots=True)
class _Issued:
    principal: Principal
    expires_us: int


class SecretBook:
    """The client secrets that are valid, in memory: at most `capacity`, a quarter of that per tenant.

    A full book refuses (`Overloaded`); expired secrets leave when a new one is made. Bound in bytes: `capacity` times
    `MAX_INITIAL_BYTES`.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._per_tenant = max(1, capacity // 4)
        self._issued: OrderedDict[bytes, _Issued] = OrderedDict()
        self.refused = 0
        """Secrets that there was no room for, since the start."""

    def __len__(self) -> int:
        return len(self._issued)

    def make(self, owner: Principal, initial: bytes | None, lifetime_s: int, now_us: int) -> ClientSecret:
        """Returns a new secret that stands for `owner` and carries `initial`. Raises `Overloaded`."""
        self._drop_expired(now_us)
        mine = [one.expires_us for one in self._issued.values() if one.principal.tenant == owner.tenant]
        if len(mine) >= self._per_tenant:
            self._refuse(mine, now_us)
        if len(self._issued) >= self._capacity:
            self._refuse([one.expires_us for one in self._issued.values()], now_us)
        value = random_id(SECRET_PREFIX.rstrip("_"), 32)
        expires_us = now_us + lifetime_s * US_PER_S
        principal = Principal(owner.tenant, owner.tier, owner.origins, initial, temporary=True)
        self._issued[digest_of(value)] = _Issued(principal, expires_us)
        return ClientSecret(value, expires_us)

    def find(self, presented: str, now_us: int) -> Principal | None:
        """Returns whom a secret stands for, None where it is unknown or expired. Looked up by digest: the time taken
        tells nothing about the secrets themselves."""
        issued = self._issued.get(digest_of(presented))
        if issued is None or issued.expires_us <= now_us:
            return None
        return issued.principal

    def _drop_expired(self, now_us: int) -> None:
        for digest in [digest for digest, one in self._issued.items() if one.expires_us <= now_us]:
            del self._issued[digest]

    def _refuse(self, expiries_us: list[int], now_us: int) -> None:
        self.refused += 1
        wait_s = (min(expiries_us) - now_us) / US_PER_S
        raise Overloaded("too many client secrets are valid at this time", wait_s)


class Gate:
    """Turns a presented key or secret into a `Principal`."""

    def __init__(self, ring: KeyRing | None, secrets: SecretBook) -> None:
        """`ring` None makes a server without keys: everyone is `LOCAL`, whatever key they bring."""
        self._ring = ring
        self.secrets = secrets

    @property
    def needs_key(self) -> bool:
        return self._ring is not None

    @property
    def origins(self) -> frozenset[str]:
        """Origins that keys bring along, over the server's own."""
        return self._ring.origins if self._ring else frozenset()

    def admit(self, presented: str | None, now_us: int) -> Principal:
        """Returns who asks. Raises `Unauthorized`; a client secret is checked on a keyless server too, since a session
        hangs on it."""
        if presented is not None and presented.startswith(SECRET_PREFIX):
            principal = self.secrets.find(presented, now_us)
            if principal is None:
                raise Unauthorized("The client secret is unknown or has expired.")
            return principal
        if self._ring is None:
            return LOCAL
        if presented is None:
            raise Unauthorized("No API key was given. Send it as 'Authorization: Bearer <key>'.")
        principal = self._ring.find(presented)
        if principal is None:
            raise Unauthorized("Incorrect API key.")
        return principal


def offered_subprotocols(headers: Mapping[str, str]) -> list[str]:
    """Returns the WebSocket subprotocols that a client offers, in order."""
    offered = headers.get("sec-websocket-protocol", "")
    return [name for entry in offered.split(",") if (name := entry.strip())]


def credential(headers: Mapping[str, str]) -> str | None:
    """Returns the key that a request carries: ``Authorization: Bearer``, else the subprotocol that browsers use.

    `headers` has lower-case names. None where there is no key.
    """
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    for name in offered_subprotocols(headers):
        if name.startswith(KEY_SUBPROTOCOL) and len(name) > len(KEY_SUBPROTOCOL):
            return name[len(KEY_SUBPROTOCOL) :]
    return None
