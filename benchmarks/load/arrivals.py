"""What the users of one run do and when: a value made before anybody connects, the same for every policy."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random


@dataclass(frozen=True, slots=True)
class Plan:
    """One run against one server.

    Turns arrive as a Poisson process over all users (`rate` per second), whatever the server does: each is meant for a
    moment, given in seconds from the start, and its latency counts from then, also where its user was still busy with
    the one before. Those meant for the first `warm_s` are made and not counted. `duration_s` is counted; after it
    users wait `drain_s` for what is open. The first `speaking` users stream sound all the time, from the file `sound`
    (24 kHz int16), and say it once per turn. Users take the API `keys` in turn (none: no key). A session that has had
    `turns_per_session` turns is closed, and its user opens another (0: never). `max_tokens` bounds a reply.
    """

    port: int
    users: int
    rate: float
    seed: int = 1
    warm_s: float = 5.0
    duration_s: float = 60.0
    drain_s: float = 15.0
    speaking: int = 0
    sound: str = ""
    keys: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    connect_per_s: int = 200
    turns_per_session: int = 0
    max_tokens: int = 0

    @property
    def until_s(self) -> float:
        """When the last turn may arrive."""
        return self.warm_s + self.duration_s

    def key_of(self, user: int) -> str | None:
        return self.keys[user % len(self.keys)] if self.keys else None

    def times(self) -> list[list[float]]:
        """Returns for each user when its turns are meant to begin, ascending."""
        chance = Random(self.seed)
        times: list[list[float]] = [[] for _ in range(self.users)]
        now = chance.expovariate(self.rate) if self.rate > 0 else self.until_s
        while now < self.until_s:
            times[chance.randrange(self.users)].append(round(now, 6))
            now += chance.expovariate(self.rate)
        return times

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def read_plan(path: Path) -> Plan:
    """Returns the plan that a file holds."""
    content = json.loads(path.read_text())
    content["keys"] = tuple(content["keys"])
    return Plan(**content)


@dataclass(slots=True)
class Turn:
    """One turn as its user saw it; times in seconds from the start, None for what did not happen.

    `outcome`: ``completed``, the error code of a turn that failed, or ``unfinished``. `tokens` are deltas of text.
    """

    user: int
    intended_s: float
    sent_s: float | None = None
    first_s: float | None = None
    done_s: float | None = None
    outcome: str = "unfinished"
    tokens: int = 0


@dataclass(slots=True)
class Seen:
    """What one process of users saw. `ended_s` is when they stopped waiting; `faults` are connections that failed."""

    connected: int = 0
    ended_s: float = 0.0
    cpu_s: float = 0.0
    late_ms: float = 0.0
    """How late the users were at worst with what nothing but they themselves held up: over a few milliseconds, the
    machine was too small for them."""
    turns: list[Turn] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def read_seen(path: Path) -> Seen:
    """Returns what a file of a process of users holds."""
    content = json.loads(path.read_text())
    content["turns"] = [Turn(**turn) for turn in content["turns"]]
    return Seen(**content)


def percentile(values: Sequence[float], share: float) -> float | None:
    """Returns the value that `share` of them do not pass (nearest rank); None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]
