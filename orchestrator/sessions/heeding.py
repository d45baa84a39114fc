"""Which wishes of a client a session goes by (heart): recordings are older than some of them."""

from msgspec import UNSET, Raw, structs

from orchestrator.sessions.rules import SessionRules
from orchestrator.wire.session import Session
from orchestrator.wire.update import merge


def heeded(view: Session, rules: SessionRules) -> Session:
    """Returns the session as its parts are to go by it. Where the rules heed no such wishes, ``truncation``,
    ``parallel_tool_calls`` and ``include`` are shown to clients, and change nothing."""
    if rules.heeds:
        return view
    return structs.replace(view, truncation="auto", parallel_tool_calls=UNSET, include=None)


def updated(
    view: Session, wishes: Raw, rules: SessionRules, *, audio_started: bool, type_settled: bool
) -> Session:
    """Returns the session changed by a client (`wire.update.merge`). Raises `WireError`."""
    view = merge(
        view,
        wishes,
        audio_started=audio_started,
        type_settled=type_settled,
        heeds=rules.heeds,
    )
    if view.chorale is UNSET:
        return view
    # There is a secret; what it is, the shell adds for those who may know.
    return structs.replace(view, chorale=structs.replace(view.chorale, secret=""))
