"""The three state machines of a session, as tables. The diagrams in docs/sessions.md are drawn from them.

The user's side (`Ear`), the assistant's side (`Mouth`) and the session's life run independently of one another: a user
may speak while the assistant does. A pair that a table does not list is our own fault and raises `InvalidState`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from orchestrator.errors import InvalidState


class Ear(Enum):
    """What is known of the user's speech."""

    QUIET = "quiet"
    HEARING = "hearing"
    TRANSCRIBING = "transcribing"


class EarEvent(Enum):
    SPEECH_BEGAN = "speech began"
    SPEECH_ENDED = "speech ended"
    COMMITTED = "buffer committed"
    CLEARED = "buffer cleared"
    ALL_TRANSCRIBED = "all transcribed"


EAR: Mapping[tuple[Ear, EarEvent], Ear] = {
    (Ear.QUIET, EarEvent.SPEECH_BEGAN): Ear.HEARING,
    (Ear.QUIET, EarEvent.COMMITTED): Ear.TRANSCRIBING,
    (Ear.QUIET, EarEvent.CLEARED): Ear.QUIET,
    (Ear.HEARING, EarEvent.SPEECH_ENDED): Ear.TRANSCRIBING,
    (Ear.HEARING, EarEvent.COMMITTED): Ear.TRANSCRIBING,
    (Ear.HEARING, EarEvent.CLEARED): Ear.QUIET,
    (Ear.HEARING, EarEvent.ALL_TRANSCRIBED): Ear.HEARING,
    (Ear.TRANSCRIBING, EarEvent.SPEECH_BEGAN): Ear.HEARING,
    (Ear.TRANSCRIBING, EarEvent.COMMITTED): Ear.TRANSCRIBING,
    (Ear.TRANSCRIBING, EarEvent.CLEARED): Ear.TRANSCRIBING,
    (Ear.TRANSCRIBING, EarEvent.ALL_TRANSCRIBED): Ear.QUIET,
}


class Mouth(Enum):
    """What the assistant is doing in the default conversation."""

    SILENT = "silent"
    REPLYING = "replying"
    PLAYING = "playing"


class MouthEvent(Enum):
    REPLY_BEGAN = "reply began"
    REPLY_ENDED = "reply ended"
    REPLY_ENDED_SOUNDING = "reply ended, still sounding"
    PLAYED_OUT = "played out"
    CUT = "cut"


MOUTH: Mapping[tuple[Mouth, MouthEvent], Mouth] = {
    (Mouth.SILENT, MouthEvent.REPLY_BEGAN): Mouth.REPLYING,
    (Mouth.REPLYING, MouthEvent.REPLY_ENDED): Mouth.SILENT,
    (Mouth.REPLYING, MouthEvent.REPLY_ENDED_SOUNDING): Mouth.PLAYING,
    (Mouth.PLAYING, MouthEvent.REPLY_BEGAN): Mouth.REPLYING,
    (Mouth.PLAYING, MouthEvent.PLAYED_OUT): Mouth.SILENT,
    (Mouth.PLAYING, MouthEvent.CUT): Mouth.SILENT,
}


class Life(Enum):
    """Whether the session takes part in anything."""

    OPEN = "open"
    WAITING = "waiting"
    DRAINING = "draining"
    CLOSED = "closed"


class LifeEvent(Enum):
    LINK_JOINED = "link joined"
    LAST_LINK_LEFT = "last link left"
    GRACE_OVER = "grace over"
    DRAIN = "drain"
    SETTLED = "settled or drain time over"
    END = "end"


LIFE: Mapping[tuple[Life, LifeEvent], Life] = {
    (Life.OPEN, LifeEvent.LINK_JOINED): Life.OPEN,
    (Life.OPEN, LifeEvent.LAST_LINK_LEFT): Life.WAITING,
    (Life.OPEN, LifeEvent.DRAIN): Life.DRAINING,
    (Life.OPEN, LifeEvent.END): Life.CLOSED,
    (Life.WAITING, LifeEvent.LINK_JOINED): Life.OPEN,
    (Life.WAITING, LifeEvent.GRACE_OVER): Life.DRAINING,
    (Life.WAITING, LifeEvent.DRAIN): Life.DRAINING,
    (Life.WAITING, LifeEvent.END): Life.CLOSED,
    (Life.DRAINING, LifeEvent.LINK_JOINED): Life.DRAINING,
    (Life.DRAINING, LifeEvent.LAST_LINK_LEFT): Life.DRAINING,
    (Life.DRAINING, LifeEvent.DRAIN): Life.DRAINING,
    (Life.DRAINING, LifeEvent.SETTLED): Life.CLOSED,
    (Life.DRAINING, LifeEvent.END): Life.CLOSED,
    (Life.CLOSED, LifeEvent.END): Life.CLOSED,
    (Life.CLOSED, LifeEvent.LAST_LINK_LEFT): Life.CLOSED,
    (Life.CLOSED, LifeEvent.DRAIN): Life.CLOSED,
}

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


class Machine(Generic[S, E]):
    """A current state and the table that moves it."""

    __slots__ = ("_name", "_table", "state")

    def __init__(self, name: str, table: Mapping[tuple[S, E], S], state: S) -> None:
        self._name = name
        self._table = table
        self.state = state

    def on(self, event: E) -> S:
        """Moves along the table and returns the new state. Raises `InvalidState` where the table has no row."""
        following = self._table.get((self.state, event))
        if following is None:
            raise InvalidState(self._name, self.state, event)
        self.state = following
        return following
