"""The one check at the entrance of every door: the name asked for, the page that asks, the key it brings, and how much
of its tenant is inside already."""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.clock import Clock
from orchestrator.errors import Overloaded, Unauthorized
from orchestrator.flow.tenants import Places
from orchestrator.observability.refusal_lines import RefusalLines
from orchestrator.transports import origins
from orchestrator.transports.attempts import Attempts
from orchestrator.transports.auth import ClientSecret, Gate, Principal, credential
from orchestrator.transports.proxies import Caller, caller
from orchestrator.transports.refusals import Refusal, ShuttingDown

log = logging.getLogger(__name__)

KEY_WITHDRAWN = "The key has been withdrawn."
KEY_WITHDRAWN_CODE = 1008

_RETRY_AFTER_S = 5.0


def _wall_us() -> int:
    return time.time_ns() // 1_000


@dataclass(slots=True, eq=False)
class Inside:
    """A link that has come in. `close` (code, reason) is set by its door: it is called where its key is withdrawn.
    `is_withdrawn`: for doors that wait for something before there is anything to close."""

    key_id: str
    close: Callable[[int, str], None] = lambda code, reason: None
    is_withdrawn: bool = False


class Entrance:
    """Decides who may come in. `headers` are lower-case names to values throughout; `proxies.caller` is who sent
    them."""

    def __init__(
        self,
        gate: Gate,
        allowed_origins: Sequence[str],
        hosts: Sequence[str],
        clock: Clock,
        wall_us: Callable[[], int] = _wall_us,
    ) -> None:
        """`allowed_origins` are checked entries (`origins.check_entry`); `hosts` further names of a keyless server.
        `wall_us`: microseconds since 1970, by which keys and secrets expire."""
        self.gate = gate
        self.attempts = Attempts()
        self._origins = tuple(allowed_origins)
        self._hosts = frozenset(host.lower() for host in hosts)
        self._clock = clock
        self._wall_us = wall_us
        self._refusals = RefusalLines(log)
        self._closed = False
        self._inside: set[Inside] = set()
        self._links = Places()

    def close(self) -> None:
        """Lets nobody in from now on (a server that drains)."""
        self._closed = True

    @property
    def links(self) -> int:
        """Links that are inside, or about to be."""
        return len(self._inside)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raises `Refusal` (421) where a keyless server is asked for under a name that is not its own, or by a proxy
        for somebody who is not on this machine, or may not be."""
        if self.gate.needs_key:
            return
        name = origins.host_name(headers.get("host"))
        if name is None or not (origins.is_loopback(name) or name in self._hosts):
            raise Refusal(
                421,
                "host_not_allowed",
                "This server answers to localhost only. Name further hosts in server.hosts, or set server.key_file.",
            )
        if not caller().is_local:
            raise Refusal(
                421,
                "forwarded",
                "This server has no keys and answers to its own machine only, and a proxy asks for somebody else, or "
                "server.proxies does not name it. Set server.key_file.",
            )

    def check_page(self, headers: Mapping[str, str]) -> str | None:
        """Returns the origin of the page that asks, None for a program. Raises `Refusal` (403) on a page that neither
        the server nor any of its keys allows: all that a preflight can be told."""
        origin = headers.get("origin")
        host = headers.get("host")
        if not (
            origins.allows(self._origins, origin, host) or origins.allows(self.gate.origins, origin, host)
        ):
            raise _page_refused()
        return origin

    def admit(self, headers: Mapping[str, str]) -> Principal:
        """Returns who asks. Raises `Unauthorized` and `Refusal` (403: this key may not be used on that page; 429: too
        many wrong keys came from there)."""
        presented, who = credential(headers), caller()
        counts = presented is not None and who.is_one_of_many
        if counts:
            self._check_attempts(who)
        try:
            principal = self.gate.admit(presented, self._wall_us())
        except Unauthorized:
            if counts:
                self._failed(who)
            raise
        self._check_own_page(principal, headers)
        return principal

    def admit_opener(self, key_id: str, headers: Mapping[str, str]) -> Principal | None:
        """Returns who opened a session by the key of this id, for one who shows the session's secret and no key: that
        key bounds what is done with it. None where it is worth nothing any more. Raises `Refusal` (403)."""
        principal = self.gate.named(key_id, self._wall_us())
        self._check_own_page(principal, headers)
        return principal

    def check_again(self, principal: Principal) -> None:
        """Raises `Unauthorized` where the key by which somebody was let in has been withdrawn since."""
        if not self.gate.is_worth_something(principal, self._wall_us()):
            raise Unauthorized(KEY_WITHDRAWN)

    @contextlib.contextmanager
    def beginning(self, principal: Principal) -> Iterator[None]:
        """Something new begins inside, for one who was let in by `admit`: it takes one of a client secret's uses, which
        is not lost where it does not come about. Raises `ShuttingDown`, and `Unauthorized` where no use is left or the
        key has been withdrawn since: a body may come slowly."""
        self.check_again(principal)
        self._begin(principal)
        try:
            yield
        except BaseException:
            self.gate.give_back(principal)
            raise

    @contextlib.contextmanager
    def telling(self, tenant: str, kind: str, count: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Something of this `kind` is let in inside, for this tenant ("": it is not known yet). Who would be at another
        time is told of in the log, and counted by `count`; who never is, is no loss."""
        try:
            yield
        except (Overloaded, ShuttingDown) as error:
            count()
            if isinstance(error, Overloaded):
                reason, retry_after_s = error.code, error.retry_after_s
            else:
                reason, retry_after_s = error.wire_code or error.code, _RETRY_AFTER_S
            self._refusals.note(tenant, kind, reason, self._clock.now_us(), retry_after_s)
            raise

    @contextlib.contextmanager
    def link(self, principal: Principal) -> Iterator[Inside]:
        """A link of this principal lives inside. Raises `Overloaded` where its tenant has as many as it may, and
        `Unauthorized` where the key has been withdrawn since it was let in: what it asks for may have come slowly."""
        self.check_again(principal)
        most = principal.allowance.links
        if not self._links.take(principal.tenant, most):
            raise Overloaded(
                f"All {most} links of this key's tenant are in use", _RETRY_AFTER_S, is_tenant=True
            )
        one = Inside(principal.key_id)
        self._inside.add(one)
        try:
            yield one
        finally:
            self._inside.discard(one)
            self._links.give_back(principal.tenant)

    def withdraw(self, key_ids: frozenset[str]) -> None:
        """Closes every link that came in by one of these keys."""
        for one in [one for one in self._inside if one.key_id in key_ids]:
            one.is_withdrawn = True
            one.close(KEY_WITHDRAWN_CODE, KEY_WITHDRAWN)

    def gone(self) -> frozenset[str]:
        """Returns the keys that are worth nothing any more since it was last asked (`Gate.gone`)."""
        return self.gate.gone(self._wall_us())

    def make_secret(
        self, owner: Principal, initial: bytes | None, lifetime_s: int, uses: int = 0
    ) -> ClientSecret:
        """Returns a client secret (`SecretBook.make`). Raises `Overloaded`."""
        return self.gate.secrets.make(owner, initial, lifetime_s, self._wall_us(), uses)

    def _check_own_page(self, principal: Principal | None, headers: Mapping[str, str]) -> None:
        """Raises `Refusal` (403) where this key may not be used on the page that asks."""
        own = None if principal is None else principal.origins
        if not origins.allows(
            self._origins if own is None else own, headers.get("origin"), headers.get("host")
        ):
            raise _page_refused()

    def _begin(self, principal: Principal) -> None:
        if self._closed:
            raise ShuttingDown
        self.gate.use(principal)

    def _check_attempts(self, who: Caller) -> None:
        wait_s = self.attempts.blocked_for(who.address, self._clock.now_us())
        if wait_s > 0:
            raise Refusal(
                429,
                "too_many_attempts",
                "Too many wrong keys came from this address.",
                headers={"Retry-After": str(math.ceil(wait_s))},
            )

    def _failed(self, who: Caller) -> None:
        wait_s = self.attempts.failure(who.address, self._clock.now_us())
        if wait_s > 0:
            whose = " from what may be a proxy that server.proxies does not name" if who.hidden else ""
            log.warning(
                "too many wrong keys%s", whose, extra={"client": who.address, "refused_for_s": wait_s}
            )


def _page_refused() -> Refusal:
    return Refusal(
        403, "origin_not_allowed", "Web pages of this origin may not use this server (see server.origins)."
    )
