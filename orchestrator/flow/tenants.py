"""What each tenant has used of its quotas: one table, the same for all sessions of a tenant."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator.clock import seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.limiter import Refusal, RefusalReason
from orchestrator.flow.token_limiter import Quota, Reservation, Resource, TokenLimiter

Quotas = Mapping[Resource, Quota]

MOST_TENANTS = 100_000
"""Default bound of the accounts that are kept."""

LOOKED_AT = 64
"""So many accounts are looked at, at most, for one that may be forgotten: some 20 µs."""

FULL_RETRY_S = 1.0
"""When to come back where there is no room for another account."""


def quotas(
    llm_tokens: int | None = None,
    audio_s: float | None = None,
    requests: int | None = None,
    window_s: float = 60.0,
    burst: float = 1.0,
) -> Quotas:
    """Returns what may be used in `window_s` seconds; `burst` is the share of it that may be used at once."""
    limits = {
        Resource.LLM_TOKENS: llm_tokens,
        Resource.AUDIO_MS: None if audio_s is None else max(1, round(audio_s * 1000)),
        Resource.REQUESTS: requests,
    }
    return {
        resource: Quota(limit, seconds(window_s), None if burst >= 1 else max(1, int(limit * burst)))
        for resource, limit in limits.items()
        if limit is not None
    }


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many sessions and how many links a tenant may have at one time; None is no bound of its own. What it may use
    in a span of time are `Quotas`."""

    sessions: int | None = None
    links: int | None = None


BOUNDLESS = Allowance()


class Places:
    """What each tenant has at one time of something that is bounded for all together elsewhere: one number for each
    tenant that has any."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def taken(self, tenant: str) -> int:
        return self._taken.get(tenant, 0)

    def take(self, tenant: str, most: int | None) -> bool:
        """Takes a place, if the tenant has fewer than `most`; None is no bound. Each is given back once."""
        taken = self.taken(tenant)
        if most is not None and taken >= most:
            return False
        self._taken[tenant] = taken + 1
        return True

    def give_back(self, tenant: str) -> None:
        """Raises `InvalidState` where none is taken."""
        taken = self.taken(tenant)
        if taken == 0:
            raise InvalidState("places", "none", "a place was given back")
        if taken == 1:
            del self._taken[tenant]
        else:
            self._taken[tenant] = taken - 1


def fits_no_reply(quotas: Quotas, output_tokens: int) -> str | None:
    """Says which key of a quota, and how, leaves no room for a reply that reads one token and may write so many: every
    one would be refused. None where there is room."""
    quota, needed = quotas.get(Resource.LLM_TOKENS), output_tokens + 1
    if quota is None or quota.at_once >= needed:
        return None
    why = f"a reply without a bound reserves limits.default_output_tokens ({output_tokens}) and what it reads"
    if quota.limit < needed:
        return f"llm_tokens: expected at least {needed}, got {quota.limit}: {why}"
    return f"burst: expected a share of at least {needed} of {quota.limit} tokens, got {quota.at_once}: {why}"


@dataclass(slots=True)
class ResourceUse:
    """Amounts of one resource since the start, over all tenants of a tier: let in, refused, given back unused, and used
    beyond what was reserved."""

    reserved: int = 0
    refused: int = 0
    returned: int = 0
    overrun: int = 0


class Hold:
    """What one piece of work has reserved of several resources. It ends exactly once."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[Resource, tuple[Reservation, ResourceUse]]) -> None:
        self._parts: Mapping[Resource, tuple[Reservation, ResourceUse]] | None = parts

    @property
    def ended(self) -> bool:
        return self._parts is None

    @property
    def amounts(self) -> Mapping[Resource, int]:
        """What is reserved; nothing once it has ended."""
        return {resource: part.amount for resource, (part, _) in (self._parts or {}).items()}

    def settle(self, used: Mapping[Resource, int], now: int) -> None:
        """The work is done and used so much; of a resource that is not named, what was reserved. Raises `InvalidState`
        at a second end."""
        parts, self._parts = self._parts, None
        if parts is None:
            raise InvalidState("hold", "ended", "a second end")
        for resource, (part, use) in parts.items():
            amount = used.get(resource, part.amount)
            part.settle(amount, now)
            use.returned += max(0, part.amount - amount)
            use.overrun += max(0, amount - part.amount)

    def refund(self, now: int) -> None:
        """The work did not happen. Raises `InvalidState` at a second end."""
        self.settle(_NOTHING, now)


_NOTHING: Mapping[Resource, int] = dict.fromkeys(Resource, 0)


@dataclass(frozen=True, slots=True)
class TenantStatistics:
    """`tenants` have an account now; `forgotten` were idle for a whole window, so that a new account says the same;
    `turned_away` found no room for one. `use`: by tier and resource, as of now."""

    tenants: int
    forgotten: int
    turned_away: int
    use: Mapping[tuple[int, Resource], ResourceUse]


class TenantLimits:
    """Accounts of at most `capacity` tenants, 1.5 KB each; one that is as good as new makes room for another.
    `LOOKED_AT` of the longest unused are looked at for each that comes, for the next one those that follow.

    A tenant with quotas of its own (a key file names them) has one account, whichever tier it comes with; others have
    one per tier.
    """

    def __init__(
        self,
        by_tier: Mapping[int, Quotas],
        own: Mapping[str, Quotas] | None = None,
        capacity: int = MOST_TENANTS,
    ) -> None:
        self._by_tier = dict(by_tier)
        self._own = dict(own or {})
        self._capacity = capacity
        self._accounts: OrderedDict[tuple[str, int], dict[Resource, TokenLimiter]] = OrderedDict()
        self._use: dict[tuple[int, Resource], ResourceUse] = {}
        self._forgotten = 0
        self._turned_away = 0

    def quotas_of(self, tenant: str, tier: int) -> Quotas:
        """Returns what a tenant may use; of a resource that is not there, as much as it likes."""
        own = self._own.get(tenant)
        return self._by_tier.get(tier, {}) if own is None else own

    def set_own(self, own: Mapping[str, Quotas]) -> None:
        """Lets other tenants have quotas of their own, or the same other ones. Whose quotas change begins anew; what is
        reserved of its old account is still booked there."""
        before, self._own = self._own, dict(own)
        changed = {tenant for tenant in before.keys() | own.keys() if before.get(tenant) != own.get(tenant)}
        for key in [key for key in self._accounts if key[0] in changed]:
            del self._accounts[key]

    def reserve(
        self, tenant: str, tier: int, needs: Mapping[Resource, int], now: int
    ) -> Hold | Refusal | None:
        """Takes all that is needed or nothing. None where no quota bounds any of it."""
        quotas = self.quotas_of(tenant, tier)
        if quotas.keys().isdisjoint(needs):
            return None
        account = self._account(tenant, tier, quotas, now)
        if account is None:
            self._turned_away += 1
            return Refusal(FULL_RETRY_S, RefusalReason.TENANT)
        taken: dict[Resource, tuple[Reservation, ResourceUse]] = {}
        for resource, amount in needs.items():
            limiter = account.get(resource)
            if limiter is None:
                continue
            use = self._use.setdefault((tier, resource), ResourceUse())
            part = limiter.reserve(amount, now)
            if isinstance(part, Refusal):
                use.refused += amount
                for other, _ in taken.values():
                    other.refund(now)
                return part
            taken[resource] = (part, use)
        for part, use in taken.values():
            use.reserved += part.amount
        return Hold(taken)

    def left(self, tenant: str, tier: int, now: int) -> dict[Resource, tuple[int, int, int]]:
        """Returns of each quota of a tenant its limit, what is left of it, and in how long (µs) all of it is again."""
        account = self._accounts.get((tenant, 0 if tenant in self._own else tier), {})
        found = {}
        for resource, quota in self.quotas_of(tenant, tier).items():
            limiter = account.get(resource)
            found[resource] = (quota.limit, *((quota.limit, 0) if limiter is None else limiter.left(now)))
        return found

    def statistics(self) -> TenantStatistics:
        use = {key: replace(use) for key, use in self._use.items()}
        return TenantStatistics(len(self._accounts), self._forgotten, self._turned_away, use)

    def _account(
        self, tenant: str, tier: int, quotas: Quotas, now: int
    ) -> dict[Resource, TokenLimiter] | None:
        """Returns a tenant's account as the one used last, a new one where it has none; None where there is no room."""
        key = (tenant, 0 if tenant in self._own else tier)
        account = self._accounts.get(key)
        if account is not None:
            self._accounts.move_to_end(key)
            return account
        if len(self._accounts) >= self._capacity and not self._forget_one(now):
            return None
        account = self._accounts[key] = {resource: TokenLimiter(quota) for resource, quota in quotas.items()}
        return account

    def _forget_one(self, now: int) -> bool:
        """Forgets an account that a new one would say the same as; what is in use is not looked at again at once."""
        for _ in range(min(LOOKED_AT, len(self._accounts))):
            oldest = next(iter(self._accounts))
            if all(limiter.is_new(now) for limiter in self._accounts[oldest].values()):
                del self._accounts[oldest]
                self._forgotten += 1
                return True
            self._accounts.move_to_end(oldest)
        return False
