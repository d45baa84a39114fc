"""A stretch of the user's speech, what recognisers make of it, and what it said in the end."""

from dataclasses import dataclass, field

from modalities.text.transcript import LocalAgreement
from orchestrator.scheduling.work import Transcribe, Transcribed
from orchestrator.sessions.figures import TurnTimes
from orchestrator.sessions.turns import Turn
from orchestrator.wire.server import ErrorBody


@dataclass(slots=True)
class Attempt:
    """A recognition of an utterance that had not ended when it was started at `began_us`, and its answer."""

    job_id: str
    work: Transcribe
    began_us: int
    answer: Transcribed | None = None
    answered_us: int = 0


@dataclass(slots=True)
class Utterance:
    """A stretch of the user's speech, from its start to its final transcript. `text` is what a draft made of the sound
    up to `text_to`; sound up to `drafted_to` has been given to a recogniser. `early` is the attempt at the final
    transcript, should it end with the silence that it is in. `shown`: clients have been promised its transcript."""

    item_id: str
    start: int
    began_us: int
    turn: Turn | None
    stop: int = -1
    answered: bool = False
    added: bool = False
    shown: bool = False
    agreement: LocalAgreement = field(default_factory=LocalAgreement)
    unsent: str = ""
    draft: Attempt | None = None
    early: Attempt | None = None
    drafted_to: int = 0
    text: str = ""
    text_to: int = 0
    times: TurnTimes | None = None
    stop_us: int = 0
    work: Transcribe | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """A final transcript is in. `wants_reply`: the server makes the answer by itself. `report` is what `utterance` was
    recognised as; the client is told by `Listener.tell`."""

    item_id: str
    text: str
    turn: Turn | None
    wants_reply: bool
    error: ErrorBody | None = None
    times: TurnTimes | None = None
    utterance: Utterance | None = None
    report: Transcribed | None = None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What the user will have said should the turn end with the silence that began at `stop`."""

    item_id: str
    stop: int
    began_us: int
    text: str
