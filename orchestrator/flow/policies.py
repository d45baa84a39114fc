"""The limit of one worker as it is asked for, and the object that keeps it."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.clock import ms
from orchestrator.flow.concurrency import FixedLimit, Limit

Policy = Literal["fixed", "reference", "aimd", "gradient"]


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """How many jobs one worker may have at one time: `base` to begin with, at most `most`.

    `p95_us` and `slope_us` say which durations are too long (`ReferenceLimit`, `AimdLimit`).
    """

    policy: Policy = "fixed"
    base: int = 1
    most: int = 1
    p95_us: int = ms(300)
    slope_us: int = ms(1000)


def limit_of(settings: LimitSettings) -> Limit:
    """Returns a new limit, for one worker."""
    return FixedLimit(min(settings.base, settings.most))
