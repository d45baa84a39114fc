"""What can happen to a session: the inputs of its heart. Times are session microseconds, positions 16 kHz samples."""

from dataclasses import dataclass

from msgspec import Struct

from modalities.audio.phrase_end import PhraseEnd
from orchestrator.scheduling.work import Report
from orchestrator.sessions.links import LinkKind
from orchestrator.wire.client import AnyClientEvent


@dataclass(frozen=True, slots=True)
class LinkJoined:
    """A connection was attached."""

    link_id: str
    kind: LinkKind


@dataclass(frozen=True, slots=True)
class LinkLeft:
    """A connection is gone."""

    link_id: str


@dataclass(frozen=True, slots=True)
class ClientSaid:
    """A valid client event (never an append). `position` is how much sound had been written when it came; `sent_us`
    when it was sent, as far as that is known."""

    link_id: str
    event: AnyClientEvent
    position: int
    sent_us: int


@dataclass(frozen=True, slots=True)
class ClientErred:
    """A client message that could not be taken; answered in order with what came before it."""

    link_id: str
    error: Exception
    event_id: str | None


@dataclass(frozen=True, slots=True)
class AudioHeard:
    """Sound up to `stop` has been written at `at_us`, and the speech probabilities of windows `first_window` … are
    known. `phrase_ends` are the pauses among them. `live` tells a paced source (a call) from one that may run ahead
    of real time."""

    stop: int
    at_us: int
    first_window: int
    probabilities: tuple[float, ...]
    live: bool
    phrase_ends: tuple[PhraseEnd, ...] = ()


class ReportCame(Struct, frozen=True, gc=False):
    """A worker answered (sound taken out). A `Struct`, as `effects.Emit`: there is one for each token."""

    report: Report


@dataclass(frozen=True, slots=True)
class PlayoutMoved:
    """A call's track has sent `samples` (24 kHz) of a response so far."""

    response_id: str
    samples: int


@dataclass(frozen=True, slots=True)
class PlayoutEnded:
    """A call's track has sent all of a finished response."""

    response_id: str


@dataclass(frozen=True, slots=True)
class PlayoutLost:
    """What was left to be played of a response is held no longer: a call that came back cannot have it."""

    response_id: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing happened but time: `Session.deadline` was reached."""


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """The server is going down: finish what runs, start nothing, be closed by `until_us`."""

    until_us: int


@dataclass(frozen=True, slots=True)
class EndAsked:
    """The session is to end now (hang-up, error at a border)."""

    reason: str


Event = (
    LinkJoined
    | LinkLeft
    | ClientSaid
    | ClientErred
    | AudioHeard
    | ReportCame
    | PlayoutMoved
    | PlayoutEnded
    | PlayoutLost
    | TimePassed
    | DrainAsked
    | EndAsked
)
