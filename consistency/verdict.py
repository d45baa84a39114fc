"""What the consistency engine answers, and what it asks for before it can.

Pure data. A verdict names the evidence that decided, so that a person can follow it. *Wants* are pieces of work whose
results come back through `ConsistencyEngine.observe`; whoever runs them chooses where.
"""

from dataclasses import dataclass

from consistency.observation import ForcedScore, Observation


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reason: what was measured (`distance`, `connectivity`, `fact`, `forced_score`, `confidence` …), its value
    rounded to 1e-4, and what it speaks about in a few words (``number 15 against 50``)."""

    name: str
    value: float
    about: str = ""


@dataclass(frozen=True, slots=True)
class WantScore:
    """Score these texts under the sound of an utterance (forced scoring): by the recogniser that heard it, or at rung 3
    by the second one."""

    observation_id: str
    texts: tuple[str, ...]
    rung: int = 0


@dataclass(frozen=True, slots=True)
class WantTranscript:
    """Recognise an utterance again at this rung (1 full length, 2 beam 5, 3 second recogniser)."""

    observation_id: str
    rung: int


Want = WantScore | WantTranscript


@dataclass(frozen=True, slots=True)
class Scores:
    """The result of a `WantScore` for `texts`; those without a score failed. Without `texts` it is about all that are
    wanted."""

    observation_id: str
    scores: tuple[ForcedScore, ...]
    texts: tuple[str, ...] = ()
    rung: int = 0


@dataclass(frozen=True, slots=True)
class Reheard:
    """The result of a `WantTranscript`: the new observation of the same utterance; None where it failed."""

    observation_id: str
    rung: int
    observation: Observation | None


@dataclass(frozen=True, slots=True)
class Accept:
    """The unit may be committed and answered. `adopted`: the observation whose text stands for each id where it is not
    its own (realigned). `superseded`: observations that lost a conflict, whose words and tokens count no more.
    `verified` is False where time ran out first."""

    unit: int
    evidence: tuple[Evidence, ...] = ()
    adopted: tuple[tuple[str, str], ...] = ()
    verified: bool = True
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something does not fit yet: nothing of the unit is committed until the wants are back."""

    unit: int
    wants: tuple[Want, ...]
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Freeze:
    """A conflict: the unit's tokens are frozen until the wants have settled it."""

    unit: int
    wants: tuple[Want, ...]
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """Only the user can tell: a question naming the readings, then the unit waits for the answer."""

    unit: int
    readings: tuple[str, ...]
    question: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class RollBack:
    """The unit's tokens do not hang together with their context: they leave, and the state is snapshot `to` again. Its
    text stays; `adopted` and `superseded` as in `Accept`."""

    unit: int
    to: int
    evidence: tuple[Evidence, ...] = ()
    adopted: tuple[tuple[str, str], ...] = ()
    superseded: tuple[str, ...] = ()


Verdict = Accept | Suspect | Freeze | Ask | RollBack
