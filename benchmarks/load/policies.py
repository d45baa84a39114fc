"""What is compared: each policy is a configuration of the server, and two of them a limit that the server does not have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Tree = dict[str, Any]

ENGINE = "benchmarks.load.accelerator:make"
MOST_SESSIONS = 2_000
PARALLEL = 256
"""Replies that the accelerator may have inside where nothing limits it: more than its memory has room for."""

TIERS = ("platinum", "gold", "gold", "silver", "silver", "silver", "silver", "silver", "silver", "silver")
"""Users take these in turn: one of ten is platinum, two are gold, the rest silver."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`settings` lie over `common`. `door`: a limit of the study's own (`doors`), asked before the server's."""

    name: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    door: str = ""


_OPEN: Tree = {
    "flow": {
        "max_jobs": 100_000, "max_waiting": 100_000, "watermark": "fixed", "share": 1.0, "shedding": False,
        "slo_error_rate": 1.0,
    },
}  # fmt: skip
"""No bound that this study could reach."""


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
        "logging": {"level": "warning", "format": "json"},
    }  # fmt: skip


def stacked(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Returns the two as one tree, the upper one's values where both have one."""
    tree: Tree = dict(below)
    for key, value in above.items():
        under = tree.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        tree[key] = stacked(under, value) if both and under is not None else value
    return tree


POLICIES: Mapping[str, Policy] = {
    policy.name: policy for policy in (Policy("none", "everything is let in and waits", _OPEN),)
}
