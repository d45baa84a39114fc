"""Who asks, where proxies stand between: their word is taken only if the configuration names them.

``X-Forwarded-For`` is read from the right, as far as it was written by proxies that are known; the first address that
is none of theirs is who asked. Everything left of it anybody may have written.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers

NEW_SESSION_HEADER = "chorale-new-session"
"""By which a proxy names the session that a request may open: 32 hexadecimal digits, as nginx numbers requests."""

_WANTED = re.compile(r"[0-9a-f]{32}")
_FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-proto", "x-forwarded-host", "via")
"""What proxies write by themselves; one that writes none of these cannot be told from a program on this machine."""

_MOST_HOPS = 16
_SCHEMES = {"http": ("http", "ws"), "https": ("https", "wss")}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request. `address`: "" where it is not known. `by_proxy`: a known proxy passed it on. `hidden`: a
    proxy passed it on that is not known, so that `address` may be anybody's. `session_id`: what a known proxy wants a
    session to be called that is opened now, so that it finds the way back to it. `unnamed`: a known proxy does not say
    who asks, so that `address` is its own, and everybody's."""

    address: str = ""
    by_proxy: bool = False
    hidden: bool = False
    session_id: str | None = None
    unnamed: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it comes from this machine itself."""
        known = _address(self.address)
        return not self.hidden and (known is None or known.is_loopback)

    @property
    def is_one_of_many(self) -> bool:
        """Whether the address tells callers apart: this machine's own may be an unknown proxy's, so everybody's, as is
        that of a known proxy which does not say who asks."""
        known = _address(self.address)
        return known is not None and not known.is_loopback and not self.unnamed


UNKNOWN = Caller()

_now: ContextVar[Caller] = ContextVar("caller", default=UNKNOWN)


def caller() -> Caller:
    """Returns who sent the request that is being answered; `UNKNOWN` outside of one."""
    return _now.get()


@contextlib.contextmanager
def calling(who: Caller) -> Iterator[None]:
    """Makes `caller` return `who` inside, also in tasks that are started there."""
    token = _now.set(who)
    try:
        yield
    finally:
        _now.reset(token)


class Proxies:
    """The proxies that are believed."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        """`networks`: addresses or networks. Raises `ValueError`."""
        self._networks = tuple(ip_network(one) for one in networks)

    def caller_of(self, peer: str | None, headers: Headers) -> Caller:
        """Returns who asks by a connection from `peer`."""
        here = _address(peer or "")
        shown = peer or "" if here is None else str(here)
        if not self._knows(here):
            return Caller(shown, hidden=_is_passed_on(headers))
        chain = ",".join(headers.getlist("x-forwarded-for")).split(",")
        unnamed = False
        for hop in reversed(chain[-_MOST_HOPS:]):
            known = _address(_without_port(hop.strip()))
            if known is None:
                unnamed = True  # nothing was written, or no address: who wrote that is all that is known
                break
            shown = str(known)
            if not self._knows(known):
                break
        wanted = headers.get(NEW_SESSION_HEADER, "")
        session_id = f"sess_{wanted}" if _WANTED.fullmatch(wanted) else None
        hidden = unnamed and _is_passed_on(headers)
        return Caller(shown, by_proxy=True, hidden=hidden, session_id=session_id, unnamed=unnamed)

    def scheme_of(self, peer: str | None, headers: Headers, scheme: str) -> str:
        """Returns by which scheme the client asks: what a known proxy says, else the connection's own."""
        if not self._knows(_address(peer or "")):
            return scheme
        http, socket = _SCHEMES.get(headers.get("x-forwarded-proto", "").strip().lower(), (scheme, scheme))
        return socket if scheme in ("ws", "wss") else http

    def _knows(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def _is_passed_on(headers: Headers) -> bool:
    return any(name in headers for name in _FORWARDED)


def _address(written: str) -> IPv4Address | IPv6Address | None:
    try:
        known = ip_address(written.partition("%")[0])
    except ValueError:
        return None
    if isinstance(known, IPv6Address) and known.ipv4_mapped is not None:
        return known.ipv4_mapped
    return known


def _without_port(written: str) -> str:
    """Returns the address of ``1.2.3.4:80`` and ``[::1]:80``."""
    if written.startswith("["):
        return written[1:].partition("]")[0]
    return written.partition(":")[0] if written.count(":") == 1 else written
