"""Who is asking: keys from a file, client secrets made for browsers, and where a request carries either.

A key stands for a tenant, its tier and the pages that may use it. A client secret (``ek_…``) is made with a key, stands
for the same tenant for a while, and brings a part of a session with it; it is worth no more than its key is at that
time. Neither is ever logged or echoed. Time is wall-clock time here: secrets may outlive the process.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded, Unauthorized
from orchestrator.flow.tenants import BOUNDLESS, Allowance, Quotas
from orchestrator.ids import random_bytes
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import SessionRequest
from orchestrator.transports.proxies import caller
from orchestrator.transports.signed_secret import (
    NO_PART,
    NONCE_BYTES,
    SECRET_PREFIX,
    SIGNING_KEY_BYTES,
    Claims,
    Seal,
    config_digest,
)

KEY_SUBPROTOCOL = "openai-insecure-api-key."
SELECTED_SUBPROTOCOL = "realtime"

MAX_INITIAL_BYTES = 65_536
"""The part of a session that one client secret may carry."""

KEY_ID_DIGITS = 12
_ALIKE_BYTES = 2
_NEVER = 2**63


@dataclass(frozen=True, slots=True)
class Principal:
    """Who may do what. `origins` None means: the server's own list. `initial` is the partial session (JSON) of a client
    secret; `temporary` is true for a client secret, which cannot make further ones. `key_id` names the key and is no
    secret. `secret_id` names a client secret that is good for a number of uses only."""

    tenant: str
    tier: Tier
    origins: tuple[str, ...] | None = None
    initial: bytes | None = None
    temporary: bool = False
    key_id: str = ""
    allowance: Allowance = BOUNDLESS
    secret_id: bytes | None = None

    def request(
        self, model: str | None, initial: bytes | None, traceparent: str | None = None
    ) -> SessionRequest:
        """Returns what opens a session for it, by the request that is being answered."""
        return SessionRequest(
            self.tenant,
            self.tier,
            model,
            initial,
            traceparent,
            key_id=self.key_id,
            allowance=self.allowance,
            session_id=caller().session_id,
        )


LOCAL = Principal(tenant="local", tier=Tier.GOLD)
"""Everyone, on a server that only this machine can reach and that has no key file."""


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the key file; `digest` is the SHA-256 of the key. `quotas`: its tenant's own, None: its tier's.
    `expires_us`: microseconds since 1970, from which on it is worth nothing; None is never."""

    digest: bytes
    principal: Principal
    quotas: Quotas | None = None
    expires_us: int | None = None

    @property
    def id(self) -> str:
        """The first digits of its digest: names it in logs and in the file, and tells nothing about it."""
        return self.digest.hex()[:KEY_ID_DIGITS]

    def is_valid(self, now_us: int) -> bool:
        return self.expires_us is None or now_us < self.expires_us


class KeyRing:
    """The keys of a file."""

    def __init__(self, keys: Sequence[Key], in_clear: int = 0) -> None:
        """`in_clear`: how many of them the file shows to whoever can read it. What one key of a tenant says of its
        sessions and links holds for all its keys."""
        allowances = _allowances(keys)
        self._keys = tuple(
            replace(
                key,
                principal=replace(key.principal, key_id=key.id, allowance=allowances[key.principal.tenant]),
            )
            for key in keys
        )
        self._by_id = {key.id: key for key in self._keys}
        self._alike: dict[bytes, list[Key]] = {}
        for key in self._keys:
            self._alike.setdefault(key.digest[:_ALIKE_BYTES], []).append(key)
        self._valid: frozenset[tuple[str, str]] = frozenset()
        self._changes_us = 0
        self._origins = frozenset(origin for key in self._keys for origin in key.principal.origins or ())
        self.in_clear = in_clear

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> Sequence[Key]:
        return self._keys

    @property
    def quotas(self) -> Mapping[str, Quotas]:
        """The tenants that have quotas of their own, and these."""
        return {key.principal.tenant: key.quotas for key in self._keys if key.quotas is not None}

    @property
    def origins(self) -> frozenset[str]:
        """Every origin that some key allows (a browser's preflight names no key)."""
        return self._origins

    def find(self, presented: str, now_us: int = 0) -> Principal | None:
        """Returns whose key this is. Compares with every key whose hash begins alike, each in constant time: the time
        taken tells nothing about any of them, and does not grow with their number."""
        digest = digest_of(presented)
        found = None
        for key in self._alike.get(digest[:_ALIKE_BYTES], ()):
            if hmac.compare_digest(digest, key.digest):
                found = key
        return found.principal if found is not None and found.is_valid(now_us) else None

    def named(self, key_id: str, now_us: int) -> Principal | None:
        """Returns for whom the key with this id stands now."""
        key = self._by_id.get(key_id)
        return key.principal if key is not None and key.is_valid(now_us) else None

    def valid(self, now_us: int) -> frozenset[tuple[str, str]]:
        """Returns the ids of the keys that are worth something now, each with its tenant: the same object for as long
        as they are the same."""
        if now_us >= self._changes_us:
            left = [key for key in self._keys if key.is_valid(now_us)]
            self._valid = frozenset((key.id, key.principal.tenant) for key in left)
            self._changes_us = min(
                (key.expires_us for key in left if key.expires_us is not None), default=_NEVER
            )
        return self._valid


def _allowances(keys: Sequence[Key]) -> dict[str, Allowance]:
    """Returns how many sessions and links each tenant may have: it has one account, whichever of its keys is used."""
    found: dict[str, Allowance] = {}
    for key in keys:
        own, before = key.principal.allowance, found.get(key.principal.tenant, BOUNDLESS)
        found[key.principal.tenant] = Allowance(
            own.sessions if before.sessions is None else before.sessions,
            own.links if before.links is None else before.links,
        )
    return found


def digest_of(secret: str) -> bytes:
    """Returns the SHA-256 of a key or secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A secret that was just made: shown once, kept nowhere."""

    value: str
    expires_us: int


@dataclass(slots=True)
class _Kept:
    """What is remembered for a secret until it expires: the part of a session that it carries, or how many `uses` it is
    still good for."""

    tenant: str
    expires_us: int
    initial: bytes = b""
    uses: int = 0


class SecretBook:
    """Makes client secrets, and knows them again by their signature: what one says is not kept.

    Kept are parts of sessions, once for all secrets with the same, and numbers of uses: at most `capacity` of both, a
    quarter of that per tenant. A full book refuses (`Overloaded`); what has expired leaves when there is more to keep.
    Bound in bytes: `capacity` times `MAX_INITIAL_BYTES`.
    """

    def __init__(self, capacity: int, signing_key: bytes | None = None) -> None:
        """Without a `signing_key` no other book takes the secrets. Raises `ValueError` on a short one."""
        self._capacity = capacity
        self._per_tenant = max(1, capacity // 4)
        self._seal = Seal(random_bytes(SIGNING_KEY_BYTES) if signing_key is None else signing_key)
        self._kept: dict[bytes, _Kept] = {}
        self.refused = 0
        """Secrets that there was no room for, since the start."""

    def __len__(self) -> int:
        return len(self._kept)

    def make(
        self, owner: Principal, initial: bytes | None, lifetime_s: int, now_us: int, uses: int = 0
    ) -> ClientSecret:
        """Returns a new secret that stands for `owner` and carries `initial`; with `uses` it begins so many things and
        no more. Raises `Overloaded`."""
        expires_us = now_us + lifetime_s * US_PER_S
        config = config_digest(owner.tenant, NO_PART if initial is None else initial)
        nonce = random_bytes(NONCE_BYTES)
        keeping: dict[bytes, _Kept] = {}
        if initial is not None:
            keeping[config] = _Kept(owner.tenant, expires_us, initial=initial)
        if uses:
            keeping[nonce] = _Kept(owner.tenant, expires_us, uses=uses)
        self._keep(owner.tenant, keeping, now_us)
        claims = Claims(expires_us, owner.key_id, config, nonce, uses)
        return ClientSecret(self._seal.close(claims), expires_us)

    def find(self, presented: str, now_us: int) -> Claims | None:
        """Returns what a secret says. None where it was not made here or has expired."""
        claims = self._seal.open(presented)
        return None if claims is None or claims.expires_us <= now_us else claims

    def part_of(self, claims: Claims, tenant: str) -> bytes | None:
        """Returns the part of a session that belongs to a secret; None where it has none. Raises `LookupError` where it
        was made for another tenant than that which its key has now, or what belongs to it is not here any more: no
        other session is to take its place."""
        if claims.config == config_digest(tenant, NO_PART):
            return None
        kept = self._kept[claims.config]
        if kept.tenant != tenant:
            raise LookupError("made for another tenant")
        return kept.initial

    def use(self, secret_id: bytes) -> bool:
        """Takes one of a secret's uses; false where none is left."""
        kept = self._kept.get(secret_id)
        if kept is None or kept.uses == 0:
            return False
        kept.uses -= 1
        return True

    def give_back(self, secret_id: bytes) -> None:
        """What was to begin did not: the use counts again."""
        kept = self._kept.get(secret_id)
        if kept is not None:
            kept.uses += 1

    def _keep(self, tenant: str, more: Mapping[bytes, _Kept], now_us: int) -> None:
        """Raises `Overloaded` and keeps nothing where there is no room for all of it."""
        if not more:
            return
        for name in [name for name, one in self._kept.items() if one.expires_us <= now_us]:
            del self._kept[name]
        new = len(more.keys() - self._kept.keys())
        mine = [one.expires_us for one in self._kept.values() if one.tenant == tenant]
        if new and len(mine) + new > self._per_tenant:
            self._refuse(mine, now_us, is_tenant=True)
        if new and len(self._kept) + new > self._capacity:
            self._refuse([one.expires_us for one in self._kept.values()], now_us)
        for name, one in more.items():
            known = self._kept.get(name)
            if known is None:
                self._kept[name] = one
            else:
                known.expires_us = max(known.expires_us, one.expires_us)

    def _refuse(self, expiries_us: list[int], now_us: int, is_tenant: bool = False) -> None:
        self.refused += 1
        wait_s = (min(expiries_us) - now_us) / US_PER_S if expiries_us else 1.0
        whose = " of this key's tenant" if is_tenant else ""
        raise Overloaded(f"too many client secrets{whose} are valid at this time", wait_s, is_tenant)


class Gate:
    """Turns a presented key or secret into a `Principal`."""

    def __init__(self, ring: KeyRing | None, secrets: SecretBook) -> None:
        """`ring` None makes a server without keys: everyone is `LOCAL`, whatever key they bring."""
        self._ring = ring
        self._known: frozenset[tuple[str, str]] = frozenset()
        self.secrets = secrets

    @property
    def needs_key(self) -> bool:
        return self._ring is not None

    @property
    def origins(self) -> frozenset[str]:
        """Origins that keys bring along, over the server's own."""
        return self._ring.origins if self._ring else frozenset()

    def replace(self, ring: KeyRing) -> None:
        """These keys hold from now on, and no others."""
        self._ring = ring

    def gone(self, now_us: int) -> frozenset[str]:
        """Returns the ids of keys that were worth something when it was last asked and are not now, nor are their
        secrets: taken out of the file, given to another tenant, or expired."""
        before = self._known
        self._known = self._ring.valid(now_us) if self._ring is not None else frozenset()
        if self._known is before:
            return frozenset()
        return frozenset(key_id for key_id, _ in before - self._known)

    def admit(self, presented: str | None, now_us: int) -> Principal:
        """Returns who asks. Raises `Unauthorized`; a client secret is checked on a keyless server too, since a session
        hangs on it."""
        if presented is not None and presented.startswith(SECRET_PREFIX):
            principal = self._holder(presented, now_us)
            if principal is None:
                raise Unauthorized("The client secret is unknown or has expired.")
            return principal
        if self._ring is None:
            return LOCAL
        if presented is None:
            raise Unauthorized("No API key was given. Send it as 'Authorization: Bearer <key>'.")
        principal = self._ring.find(presented, now_us)
        if principal is None:
            raise Unauthorized("Incorrect API key.")
        return principal

    def named(self, key_id: str, now_us: int) -> Principal | None:
        """Returns whom the key of this id lets in now; None where it is worth nothing any more."""
        if self._ring is None:
            return LOCAL if not key_id else None
        return self._ring.named(key_id, now_us) if key_id else None

    def is_worth_something(self, principal: Principal, now_us: int) -> bool:
        """Says whether the key by which somebody was let in still stands for the same tenant."""
        if self._ring is None or not principal.key_id:
            return True
        now = self._ring.named(principal.key_id, now_us)
        return now is not None and now.tenant == principal.tenant

    def use(self, principal: Principal) -> None:
        """Something begins: takes one of a client secret's uses. Raises `Unauthorized` where none is left."""
        if principal.secret_id is not None and not self.secrets.use(principal.secret_id):
            raise Unauthorized("The client secret has been used.")

    def give_back(self, principal: Principal) -> None:
        """What `use` was for did not begin."""
        if principal.secret_id is not None:
            self.secrets.give_back(principal.secret_id)

    def _holder(self, presented: str, now_us: int) -> Principal | None:
        """Returns whom a secret stands for: its key as it is now."""
        claims = self.secrets.find(presented, now_us)
        maker = None if claims is None else self.named(claims.key_id, now_us)
        if claims is None or maker is None:
            return None
        try:
            initial = self.secrets.part_of(claims, maker.tenant)
        except LookupError:
            return None
        return replace(
            maker, initial=initial, temporary=True, secret_id=claims.nonce if claims.uses else None
        )


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
