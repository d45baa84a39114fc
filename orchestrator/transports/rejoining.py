"""How a client says, at any door, which session it comes back to, that it may, and after which event it reads on."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.errors import WireError
from orchestrator.ids import event_tag
from orchestrator.sessions.links import SessionDirectory, SessionPort
from orchestrator.transports.auth import offered_subprotocols
from orchestrator.transports.cursor import event_number
from orchestrator.wire.faults import bad_value

ID_HEADER = "Chorale-Session-Id"
SECRET_HEADER = "Chorale-Session-Secret"

SECRET_SUBPROTOCOL = "chorale-session-secret."
"""What browsers put before the secret, whose WebSockets send no headers of their own."""


@dataclass(frozen=True, slots=True)
class Back:
    """A client that comes back to its session. `after`: the number of the last event that it has; None: it reads
    on from now."""

    session: SessionPort
    after: int | None


def shown_secret(headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """Returns the session secret that a request shows: in its header, as a subprotocol, or in its address (which stands
    in other people's logs). Empty where there is none. `headers` has lower-case names."""
    if secret := headers.get(SECRET_HEADER.lower()):
        return secret
    for name in offered_subprotocols(headers):
        if name.startswith(SECRET_SUBPROTOCOL):
            return name.removeprefix(SECRET_SUBPROTOCOL)
    return query.get("secret", "")


def reads_on(after: str | None, session: SessionPort) -> int | None:
    """Returns the number after which a client reads on; None where it does not say: from now on. Raises `WireError`
    on anything but the number or id of an event that this session has sent."""
    if after is None:
        return None
    number = event_number(after, event_tag(session.id))
    if number is None or number > session.last:
        raise bad_value(
            "after", f"expected the number, up to {session.last}, or the id of an event of this session."
        )
    return number


def comes_back(
    directory: SessionDirectory, headers: Mapping[str, str], query: Mapping[str, str], tenant: str | None
) -> Back | None:
    """Returns the session that a request comes back to, and from where; None where it names none. Raises
    `SessionClosed` (there is none, the secret is another, it is another tenant's) and `WireError`."""
    session_id = query.get("session_id")
    if not session_id:
        if "after" in query and not query.get("call_id"):
            raise WireError("invalid_value", "'after' is for a session that 'session_id' names.", "after")
        return None
    session = directory.by_id(session_id, shown_secret(headers, query), tenant)
    return Back(session, reads_on(query.get("after"), session))


def handed_over(session: SessionPort) -> dict[str, str]:
    """Returns the headers that give a client what it needs to come back."""
    return {ID_HEADER: session.id, SECRET_HEADER: session.secret}
