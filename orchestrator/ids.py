"""Identifiers.

Random ones for sessions, calls and secrets; counted ones inside a session, so that replay repeats them.
"""

import secrets

_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def random_id(prefix: str, length: int = 20) -> str:
    """Returns ``prefix_`` and `length` random characters (about 5.9 bits each)."""
    return f"{prefix}_" + "".join(secrets.choice(_ALPHABET) for _ in range(length))


def session_secret() -> str:
    """Returns a secret that lets its holder come back to a session (``rs_`` and 256 bits)."""
    return "rs_" + secrets.token_urlsafe(32)


def random_bytes(length: int) -> bytes:
    """Returns bytes that nobody can guess."""
    return secrets.token_bytes(length)


def event_tag(session_id: str) -> str:
    """Returns what stands in all ids that a session gives: entry n of its log is ``event_<tag>_<n>``."""
    return session_id.rsplit("_", 1)[-1][-12:]


class IdSequence:
    """Counts ids of any prefix within one session: the same inputs give the same ids again.

    `tag` makes them unique between sessions.
    """

    __slots__ = ("_next", "tag")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._next = 0

    def take(self, prefix: str) -> str:
        """Returns the next id, for example ``item_k3Jd9s0a1b2c000004``."""
        self._next += 1
        return f"{prefix}_{self.tag}{self._next:06d}"
