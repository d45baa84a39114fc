"""The seam between sessions and whoever writes them down: a tap sees what happens to a session, and changes nothing.

A tap never waits and never raises: a session must not notice that it is recorded.
"""

from typing import Protocol

from orchestrator.sessions.effects import Effect
from orchestrator.sessions.events import Event
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.session import Session
from orchestrator.wire.session import Session as SessionView


class Tap(Protocol):
    """One session, seen from its recording. All times are session microseconds."""

    def heard(self, at_us: int, position: int, pcm: bytes, live: bool) -> None:
        """Sound (16 kHz int16) came at `at_us` and belongs at `position`; `live` as in `AudioHeard`."""
        ...

    def clip(self, name: str, pcm: bytes) -> None:
        """A client's item brought sound (16 kHz int16), which hearts know by this name."""
        ...

    def stepped(self, event: Event, now: int, effects: tuple[Effect, ...] | None, heart: Session) -> None:
        """The heart took an event and answered with `effects`, which nobody has carried out yet; None: it failed. How
        the heart stands now may be read from it, during this call only."""
        ...

    def close(self) -> None:
        """Nothing follows. Idempotent."""
        ...


class Recorder(Protocol):
    """Whoever writes sessions down."""

    def open(self, view: SessionView, rules: SessionRules, tag: str, secret: str) -> Tap | None:
        """Returns a tap for a session that begins now, at its time 0; None where it is not to be recorded. `tag` goes
        into its ids; `secret` must be written nowhere."""
        ...
