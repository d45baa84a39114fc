"""The limit of one worker as it is asked for, and the object that keeps it."""

from dataclasses import dataclass
from typing import Literal, assert_never

from orchestrator.clock import ms
from orchestrator.flow.aimd_limit import AimdLimit
from orchestrator.flow.concurrency import FixedLimit, Limit
from orchestrator.flow.gradient_limit import GradientLimit
from orchestrator.flow.reference_limit import ReferenceLimit

Policy = Literal["fixed", "reference", "aimd", "gradient"]


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """How many jobs one worker may have at one time: `base` to begin with, at most `most`.

    `p95_us` and `slope_us` say which durations are too long: for ``reference`` the two numbers of its formula, for
    ``aimd`` their sum. ``gradient`` asks for neither.
    """

    policy: Policy = "fixed"
    base: int = 1
    most: int = 1
    p95_us: int = ms(300)
    slope_us: int = ms(1000)


def limit_of(settings: LimitSettings) -> Limit:
    """Returns a new limit, for one worker."""
    base, most = settings.base, settings.most
    match settings.policy:
        case "fixed":
            return FixedLimit(min(base, most))
        case "reference":
            return ReferenceLimit(base, most, settings.p95_us, settings.slope_us)
        case "aimd":
            return AimdLimit(base, most, settings.p95_us + settings.slope_us)
        case "gradient":
            return GradientLimit(base, most)
        case _:
            assert_never(settings.policy)
