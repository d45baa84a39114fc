"""What a session's heart wants done: carried out by its runner, in order, without waiting."""

from dataclasses import dataclass

from msgspec import Struct

from orchestrator.scheduling.job import Job
from orchestrator.sessions.figures import TurnTimes
from orchestrator.wire.server import ServerEvent
from orchestrator.wire.session import AudioFormat


class Emit(Struct, frozen=True, gc=False):
    """Number the event, keep it in the output log and show it to every link. There is one for each token of a reply: a
    `Struct` is made in a fraction of a frozen dataclass's time."""

    event: ServerEvent


@dataclass(frozen=True, slots=True)
class EmitAudio:
    """Number and send piece `index` of speech job `job_id` as sound of a response."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    job_id: str
    index: int
    format: AudioFormat


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a private event to one link."""

    link_id: str
    event: ServerEvent


@dataclass(frozen=True, slots=True)
class Start:
    """Queue a job."""

    job: Job


@dataclass(frozen=True, slots=True)
class Cancel:
    """Take a job back; nothing of it is wanted any more."""

    job_id: str


@dataclass(frozen=True, slots=True)
class FinishPlayout:
    """No more sound follows for this response."""

    response_id: str


@dataclass(frozen=True, slots=True)
class ResumePlayout:
    """Play what was sent of a response so far on the track that has just come, between these samples (24 kHz)."""

    response_id: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class FlushPlayout:
    """Stop the sound of calls at once."""


@dataclass(frozen=True, slots=True)
class ForgetClip:
    """A stored clip is not needed any more."""

    clip: str


@dataclass(frozen=True, slots=True)
class ForgetPicture:
    """A stored image is in no prompt any more."""

    name: str


@dataclass(frozen=True, slots=True)
class NoteTurn:
    """Log how long the stages of an answer to a spoken turn took."""

    times: TurnTimes


@dataclass(frozen=True, slots=True)
class CloseLink:
    """Close one link: another has taken its place."""

    link_id: str
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class CloseLinks:
    """Close every link; the session has ended."""

    code: int
    reason: str


Effect = (
    Emit
    | EmitAudio
    | Tell
    | Start
    | Cancel
    | FinishPlayout
    | ResumePlayout
    | FlushPlayout
    | ForgetClip
    | ForgetPicture
    | NoteTurn
    | CloseLink
    | CloseLinks
)
