"""What is compared: each policy is a configuration of the server, two of them with a limit that it does not have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Tree = dict[str, Any]

ENGINE = "benchmarks.load.accelerator:make"
MOST_SESSIONS = 2_000
PARALLEL = 256
"""Replies that the accelerator may have inside where nothing limits it: more than its memory has room for."""

TIERS = ("platinum", "gold", "gold", "silver", "silver", "silver", "silver", "silver", "silver", "silver")
"""Users take these in turn: one of ten is platinum, two are gold, the rest silver."""


RATE_SHARE = 0.95
"""Of the capacity that was measured: what the policies that count arrivals let in."""

BASE = 32
"""Where limits that learn begin: an eighth of the places."""

WINDOW_S = 5.0
"""Of the quotas; the plain sliding window has one second, as the token bucket has one second's worth at once."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`settings` lie over what all share, for a server that can answer so many turns a second. `door`: a limit of the
    study's own (`doors`) in the place of the server's quotas."""

    name: str
    about: str
    settings: Callable[[float], Tree]
    door: str = ""


def _open(capacity: float) -> Tree:
    """No bound that this study could reach."""
    flow = {
        "max_jobs": 100_000, "max_waiting": 100_000, "watermark": "fixed", "share": 1.0, "shedding": False,
        "slo_error_rate": 1.0,
    }  # fmt: skip
    return {"flow": flow}


def _fused(capacity: float) -> Tree:
    """Each tier has its users' share of what is let in."""
    shares = {tier: TIERS.count(tier) / len(TIERS) for tier in dict.fromkeys(TIERS)}
    quotas = {
        tier: {"requests": max(1, round(share * RATE_SHARE * capacity * WINDOW_S)), "window_s": WINDOW_S}
        for tier, share in shares.items()
    }
    return stacked(_open(capacity), {"limits": quotas})


def _reference(capacity: float) -> Tree:
    """The formula, which never allows more than its base, a number found by trying; about a second of work may wait."""
    flow = {"max_waiting": max(4, round(capacity)), "watermark": "fixed", "share": 0.85}
    return stacked(
        _open(capacity),
        {"flow": flow, "workers": {"llm": {"limit": {"policy": "reference", "base": 2 * BASE}}}},
    )


def _best(capacity: float) -> Tree:
    """What the server does by itself, with a limit that learns, and an aim of one second for what waits."""
    return {
        "workers": {"llm": {"limit": {"policy": "aimd", "base": BASE}}},
        "flow": {"target_wait_ms": 1_000},
    }


POLICIES: Mapping[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("none", "everything is let in, and waits", _open),
        Policy(
            "token bucket",
            "a rate of answers, a second's worth at once",
            _open,
            "token_bucket",
        ),
        Policy("sliding window", "so many answers in any second", _open, "sliding_window"),
        Policy("fused", "quotas by tier, by a sliding window", _fused),
        Policy(
            "reference",
            "the reference formula over the accelerator, a short fixed queue before it",
            _reference,
        ),
        Policy("best", "the server's own: a limit that learns (AIMD), adaptive mark, shedding, guard", _best),
    )
}


def common(seed: int = 1) -> Tree:
    """Returns the configuration that all policies share: the real server, its workers on simulated accelerators."""
    return {
        "server": {"max_sessions": MOST_SESSIONS, "max_links": MOST_SESSIONS, "drain_s": 0, "ping_s": 60},
        "workers": {
            "asr": {"engine": ENGINE, "options": {"role": "asr", "seed": seed}, "parallel": 16},
            "understand": {
                "engine": ENGINE, "options": {"role": "embed", "seed": seed}, "parallel": 32, "domain": None,
            },
            "llm": {"engine": ENGINE, "options": {"role": "llm", "seed": seed}, "parallel": PARALLEL},
            "speech": None,
        },
        "logging": {"level": "info", "format": "json"},
    }  # fmt: skip


def stacked(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Returns the two as one tree, the upper one's values where both have one."""
    tree: Tree = dict(below)
    for key, value in above.items():
        under = tree.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        tree[key] = stacked(under, value) if both and under is not None else value
    return tree


def real() -> Tree:
    """Returns the configuration of the variant with the models that are installed, without a voice."""
    return {
        "server": {"max_sessions": MOST_SESSIONS, "max_links": MOST_SESSIONS, "drain_s": 0, "ping_s": 60},
        "workers": {"speech": None},
        "logging": {"level": "info", "format": "json"},
    }
