"""Which web pages and which names may talk to the server. Pure rules on header values.

Browsers name the page that asks in ``Origin``; programs send none and are told apart by their key alone. A server
that needs no key also looks at ``Host``: a hostile page can make its own name point to 127.0.0.1 (DNS rebinding), and
the name in ``Host`` is what gives it away.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

LOOPBACK = "loopback"
ANY = "*"
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def is_loopback(host: str) -> bool:
    """Tells whether a name or address can only mean this machine (``localhost``, 127.0.0.0/8, ``::1``)."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def host_name(header: str | None) -> str | None:
    """Returns the name in a ``Host`` header, without port and brackets; None where it is no host."""
    return _name_and_port(f"//{header}")[0] if header else None


def check_entry(entry: str) -> str:
    """Returns an entry of a list of origins as it is compared: ``loopback``, ``*``, ``null`` or ``scheme://host[:port]``
    in lower case, without a default port. Raises `ValueError`."""
    if entry in (LOOPBACK, ANY, "null"):
        return entry
    canonical = _canonical(entry)
    if canonical is None:
        raise ValueError("an origin such as https://app.example.com, or loopback, or *")
    return canonical


def allows(entries: Iterable[str], origin: str | None, host: str | None) -> bool:
    """Tells whether a page may ask. `entries` are checked entries, `host` is the request's ``Host``.

    No origin is no page. A page that this server itself delivered is always allowed: its origin names our host.
    """
    if origin is None:
        return True
    allowed = entries if isinstance(entries, frozenset) else frozenset(entries)
    if ANY in allowed:
        return True
    if origin == "null":
        return "null" in allowed
    canonical = _canonical(origin)
    if canonical is None:
        return False
    if canonical in allowed or _same_host(canonical, host):
        return True
    return LOOPBACK in allowed and is_loopback(urlsplit(canonical).hostname or "")


def _same_host(origin: str, host: str | None) -> bool:
    if host is None:
        return False
    scheme = urlsplit(origin).scheme
    return _canonical(f"{scheme}://{host}") == origin


def _canonical(origin: str) -> str | None:
    parts = origin.split("://", 1)
    if len(parts) != 2 or parts[0].lower() not in ("http", "https"):
        return None
    scheme = parts[0].lower()
    name, port = _name_and_port(f"//{parts[1]}")
    if name is None:
        return None
    shown = f"[{name}]" if ":" in name else name
    return f"{scheme}://{shown}" if port in (None, _DEFAULT_PORTS[scheme]) else f"{scheme}://{shown}:{port}"


def _name_and_port(netloc: str) -> tuple[str | None, int | None]:
    """Reads ``//name[:port]`` and nothing more."""
    try:
        parts = urlsplit(netloc)
        name, port = parts.hostname, parts.port
    except ValueError:
        return None, None
    if not name or parts.path or parts.query or parts.fragment or parts.username is not None:
        return None, None
    if not all(character.isalnum() or character in "-._:%" for character in name):
        return None, None
    return name.rstrip("."), port
