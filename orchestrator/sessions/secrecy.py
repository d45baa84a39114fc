"""Who is shown a session's secret: it is in no heart and no recording, and is put in for those alone whom it is for."""

from typing import TypeVar

from msgspec import UNSET, structs

from orchestrator.sessions.askers import Asker
from orchestrator.sessions.links import Link, LinkKind, LoggedEvent
from orchestrator.wire import codec
from orchestrator.wire.server import ServerEvent, SessionCreated, SessionUpdated

Showing = TypeVar("Showing", SessionCreated, SessionUpdated)


def for_holders(entry: LoggedEvent, event: SessionUpdated, event_id: str, secret: str) -> LoggedEvent:
    """Returns the entry of `event` with what links send whose client may know the secret."""
    if event.session.chorale is UNSET:
        return entry
    return LoggedEvent(entry.data, codec.encode(_with_secret(event, secret), event_id))


def told_to(reader: Link | Asker, event: ServerEvent, secret: str) -> ServerEvent:
    """Returns a private event as `reader` may see it. A sideband's client has named a call and shown no secret."""
    if not isinstance(event, SessionCreated) or isinstance(reader, Asker) or reader.kind is LinkKind.SIDEBAND:
        return event
    return _with_secret(event, secret)


def _with_secret(event: Showing, secret: str) -> Showing:
    """Returns the event with the secret; as it is where the client has none of Chorale's switches on."""
    session = event.session
    if session.chorale is UNSET:
        return event
    chorale = structs.replace(session.chorale, secret=secret)
    return structs.replace(event, session=structs.replace(session, chorale=chorale))
