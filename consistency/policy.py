"""Who wins where two observations contradict each other and nothing in the sound decides. Pure."""

from dataclasses import dataclass
from typing import Literal

from consistency.observation import Modality, Observation

Policy = Literal["later", "typed", "confirmed", "ask"]

WRITTEN: frozenset[Modality] = frozenset({"text", "form"})
SECOND = 3
"""The rung at which the second recogniser listens."""

_SETTLES_NOTHING: frozenset[Modality] = frozenset({"caption"})
"""What a client's recogniser made of the sound is no word of the user's: it wins by the sound alone."""


@dataclass(frozen=True, slots=True)
class EngineRules:
    """The numbers and the policy that the engine lives by.

    policy: ``ask`` is ``later`` for units about which the user may not be asked; about others he is, whatever it says.
    suspect, freeze: distances above which a pair is looked into, and is a conflict. connectivity: below it tokens are
    rolled back. compare_us: how far back an observation may restate or correct another one. rungs: how an utterance can
    be recognised again, in order; the second recogniser is asked where one leaves a pair suspect. lost: chance above
    which a slot's value counts as misheard (1: not looked into). fits, unlikely: log likelihood ratios of a forced text
    against what was recognised; from `fits` up it was said, from `unlikely` down it was not, between them the
    recogniser is asked again. today: the day on which it was said (ISO 8601), empty where nobody knows.
    """

    policy: Policy = "later"
    suspect: float = 0.5
    freeze: float = 0.85
    connectivity: float = 0.6
    compare_us: int = 8_000_000
    rungs: tuple[int, ...] = (1, 2)
    lost: float = 0.5
    fits: float = -3.0
    unlikely: float = -12.0
    today: str = ""


def place(observation: Observation) -> tuple[int, int, int, str, int]:
    """Returns what orders observations: when they began, then when they ended; never when they arrived."""
    ranks = {"speech": 0, "caption": 1, "text": 2, "form": 3}
    one = observation
    return one.start_us, one.stop_us, ranks[one.modality], one.id, one.revision


def is_near(a: Observation, b: Observation, within_us: int) -> bool:
    """Whether two observations lie at most so far apart."""
    first, second = (a, b) if a.start_us <= b.start_us else (b, a)
    return second.start_us - first.stop_us <= within_us


def later(a: Observation, b: Observation) -> Observation:
    """Returns the one that began later."""
    return max(a, b, key=place)


def winner(policy: Policy, a: Observation, b: Observation, support: tuple[int, int]) -> Observation | None:
    """Returns whose words stand; None where only the user can tell. `support`: how many others say the same as `a`, and
    as `b`. Symmetric."""
    if a.modality in _SETTLES_NOTHING or b.modality in _SETTLES_NOTHING:
        return min(a, b, key=lambda one: (one.modality in _SETTLES_NOTHING, place(one)))
    if policy == "ask":
        return None
    if policy == "typed" and (a.modality in WRITTEN) != (b.modality in WRITTEN):
        return a if a.modality in WRITTEN else b
    if policy == "confirmed" and support[0] != support[1]:
        return a if support[0] > support[1] else b
    return later(a, b)
