"""What the users of one run do and when: a value made before anybody connects, the same for every policy."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random


@dataclass(frozen=True, slots=True)
class Plan:
    """One run against one server.

    Turns arrive as a Poisson process of `rate` per second, whatever the server does. Each is meant for a moment, given
    in seconds from the start, and its latency counts from then. A user of its group who has no turn open takes it;
    where all of them do, it waits for one. Those meant for the first `warm_s` are made and not counted. `duration_s`
    is counted; after it users wait `drain_s` for what is open.

    Users take the API `keys` in turn (none: no key): those with one key are a group. The first `speaking` users stream
    sound all the time, from the file `sound` (24 kHz int16), and say it once per turn, each by its own Poisson process
    at a user's share of the rate. A session that has had `turns_per_session` written turns is closed, and its user
    opens another (0: never). `max_tokens` bounds a reply.
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

    @property
    def groups(self) -> int:
        return max(1, len(self.keys))

    def group_of(self, user: int) -> int:
        return user % self.groups

    def written(self) -> list[tuple[float, int]]:
        """Returns when turns are meant to be written, ascending, and by which group."""
        chance = Random(self.seed)
        rate = self.rate * (self.users - self.speaking) / self.users
        writers = range(min(self.speaking, self.users - 1), self.users)
        able = sorted({self.group_of(user) for user in writers})
        return [(at_s, able[chance.randrange(len(able))]) for at_s in self._arrivals(chance, rate)]

    def spoken(self, user: int) -> list[float]:
        """Returns when this speaking user is meant to have said something, ascending."""
        return list(self._arrivals(Random(self.seed * 1_000_003 + user), self.rate / self.users))

    def _arrivals(self, chance: Random, rate: float) -> Iterator[float]:
        now = chance.expovariate(rate) if rate > 0 else self.until_s
        while now < self.until_s:
            yield round(now, 6)
            now += chance.expovariate(rate)

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

    `user` is -1 where none of its `group` was free for it. `outcome`: ``completed``, the error code of a turn that
    failed, or ``unfinished``. `tokens` are deltas of text.
    """

    intended_s: float
    group: int = 0
    user: int = -1
    spoken: bool = False
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
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]  # 0.95 · 100 is a little over 95
