"""`chorale bench limits`: how many replies a worker should have at one time, by each policy, on virtual time.

The worker is the simulated accelerator of the load study (`benchmarks.load.model`): continuous batching, memory that
fills, no hardware. Requests come by themselves (Poisson, seeded), wait first come first served, and are given up where
their first token is not there in time. The same requests for every policy. Limits are the server's own objects.
"""

import os
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, quantiles
from typing import Annotated

import typer

from benchmarks.load.model import Decoding, Replies
from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from orchestrator.clock import US_PER_S, seconds
from orchestrator.flow.limiter import Limiter, Permit
from orchestrator.flow.policies import LimitSettings, limit_of

MOST = 256
"""Places of the worker: more than its memory has room for."""

PATIENCE_US = seconds(4)
"""When a first token is given up."""

POLICIES: Mapping[str, LimitSettings] = {
    "none": LimitSettings("fixed", MOST, MOST),
    "fixed, 64": LimitSettings("fixed", 64, MOST),
    "reference": LimitSettings("reference", 128, MOST),
    "aimd": LimitSettings("aimd", 64, MOST, p95_us=seconds(0.3), slope_us=seconds(0.3)),
    "gradient": LimitSettings("gradient", 64, MOST),
}


@dataclass(slots=True)
class _Asked:
    arrived_us: int
    permit: Permit | None = None
    sent_us: int = 0
    first_us: int | None = None


@dataclass(slots=True)
class Run:
    """What came of one policy at one load."""

    firsts_us: list[int] = field(default_factory=list)
    inside_us: list[int] = field(default_factory=list)
    answered: int = 0
    given_up: int = 0
    lost: int = 0
    limits: list[int] = field(default_factory=list)

    def row(self, policy: str, load: float, span_s: float) -> Row:
        """Returns the figures; `lost` were inside when they were given up: work for nobody."""
        total, inside = (_cuts(self.firsts_us), _cuts(self.inside_us))
        return {
            "replies/s": load,
            "policy": policy,
            "answered/s": self.answered / span_s,
            "p50, ms": total[49] / 1_000,
            "p95, ms": total[94] / 1_000,
            "p95 inside, ms": inside[94] / 1_000,
            "given up, %": 100 * self.given_up / max(1, self.answered + self.given_up),
            "lost inside, %": 100 * self.lost / max(1, self.answered + self.given_up),
            "limit, mean": fmean(self.limits or [0]),
        }


def run(settings: LimitSettings, load: float, span_s: float, seed: int, warm_s: float = 20) -> Run:
    """Returns what one policy does with `load` replies a second for so long, after a while to settle.

    `seed` decides when requests come and how long they are; the worker's jitter has draws of its own.
    """
    arrivals, jitter = random.Random(f"arrivals {seed}"), random.Random(f"jitter {seed}")
    model = Replies()
    worker, limit = Decoding(model, jitter), limit_of(settings)
    limiter, told = Limiter(limit), Run()
    waiting: deque[str] = deque(maxlen=int(load * span_s * 2) + 1_000)
    asked: dict[str, _Asked] = {}
    now, number, next_us, tick_us = 0, 0, 0, US_PER_S
    end_us, counts_from = seconds(warm_s + span_s), seconds(warm_s)
    while now < end_us:
        while next_us <= now:
            asked[str(number)] = _Asked(next_us)
            waiting.append(str(number))
            number += 1
            next_us += int(arrivals.expovariate(load) * US_PER_S)
        _give_up(asked, worker, now, told if now >= counts_from else Run())
        _send(waiting, asked, worker, limiter, model, now)
        if now >= tick_us:
            limit.tick(now, worker.memory_share)
            tick_us += US_PER_S
            if now >= counts_from:
                told.limits.append(limit.value)
        if not len(worker):
            now = min(next_us, tick_us)
            continue
        step = worker.step()
        now += max(1, int(step.took_s * US_PER_S))
        for key in step.told:
            one = asked[key]
            if one.first_us is None:
                one.first_us = now
                if one.permit is not None:
                    one.permit.answered(now)
        for key in step.ended:
            one = asked.pop(key)
            if one.permit is not None:
                one.permit.succeeded(now)
            if now >= counts_from and one.first_us is not None:
                told.answered += 1
                told.firsts_us.append(one.first_us - one.arrived_us)
                told.inside_us.append(one.first_us - one.sent_us)
    return told


def _cuts(durations_us: Sequence[int]) -> Sequence[float]:
    return quantiles(durations_us, n=100) if len(durations_us) > 1 else [0.0] * 99


def _give_up(asked: dict[str, _Asked], worker: Decoding, now: int, told: Run) -> None:
    """Takes out what has waited too long for its first token, in the queue or inside."""
    for key, one in list(asked.items()):
        if now - one.arrived_us <= PATIENCE_US:
            break  # in order of arrival, but for those that have begun
        if one.first_us is not None:
            continue
        del asked[key]
        told.given_up += 1
        if one.permit is not None:
            worker.drop([key])
            one.permit.dropped(now)
            told.lost += 1


def _send(
    waiting: deque[str],
    asked: dict[str, _Asked],
    worker: Decoding,
    limiter: Limiter,
    model: Replies,
    now: int,
) -> None:
    """Lets in as many as the limit allows."""
    while waiting:
        if waiting[0] not in asked:
            waiting.popleft()
            continue
        permit = limiter.acquire(now)
        if not isinstance(permit, Permit):
            return
        key = waiting.popleft()
        asked[key].permit, asked[key].sent_us = permit, now
        worker.add(key, *model.length_of(int(key)))


def study(loads: Sequence[float], span_s: float, seed: int) -> list[Row]:
    """Returns a row for every policy at every load."""
    return [
        run(settings, load, span_s, seed).row(name, load, span_s)
        for load in loads
        for name, settings in POLICIES.items()
    ]


def command(
    span_s: Annotated[float, typer.Option("--seconds", min=5, help="Of virtual time, for each.")] = 60,
    loads: Annotated[str, typer.Option(help="Replies a second, with commas between.")] = "30,45,60,90",
    seed: Annotated[int, typer.Option(help="Of arrivals, lengths and jitter.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Limits of one worker side by side: the simulated accelerator on virtual time.

    \b
    Examples:
      chorale bench limits                                     a minute at four loads
      chorale bench limits --loads 100,200 --seconds 20         small and quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    asked = [float(load) for load in loads.split(",")]
    rows: list[Row] = []
    for load in asked:
        with console.status(f"{load:g} replies a second"):
            rows += study([load], span_s, seed)
    console.print(table("Limits of one worker (simulated accelerator)", rows))
    outcome = Outcome("limits", {"seconds": span_s, "loads": loads, "seed": seed}, tables={"policies": rows})
    last = {str(row["policy"]): row for row in rows[-len(POLICIES) :]}
    for name, row in last.items():
        outcome.figures[f"{name}: answered/s"] = row["answered/s"]
        outcome.figures[f"{name}: lost inside, %"] = row["lost inside, %"]
    none = max(_number(last["none"]["answered/s"]), 1 / span_s)
    gain = min(_number(row["answered/s"]) for name, row in last.items() if name != "none") / none
    waste = max(_number(row["lost inside, %"]) for name, row in last.items() if name != "none")
    outcome.claims += [
        Claim("at the highest load every limit answers 1.3 times what none does, or more", gain >= 1.3, gain),
        Claim("at most 1 % of it is work for nobody", waste <= 1, waste),
    ]
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return float(figure)
