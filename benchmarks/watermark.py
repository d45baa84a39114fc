"""`chorale bench watermark`: an adaptive against a fixed mark for what may wait, on virtual time.

One kind of work, served first come first served at a rate that changes: short jobs in one phase, jobs four times as
long in the next (longer conversations, memory pressure). Work comes in bursts; the size of a burst is told in seconds
of work, so a burst of long jobs has fewer of them. A mark has to keep the waits of what it lets in within the bound in
both phases, also where twice as much comes as can be done; what it then refuses of smaller bursts is the price. The
queue and the marks are the server's own objects.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from orchestrator.buffers.input_queue import InputQueue, QueueBounds
from orchestrator.clock import US_PER_S, ms, seconds
from orchestrator.flow.watermark import (
    WAIT_BOUNDS_US,
    AdaptiveWatermark,
    FixedWatermark,
    Watermark,
    target_us,
)

ROOM = 512
BOUND_US = max(WAIT_BOUNDS_US)
EVERY_US = seconds(3)
SPREAD_US = ms(100)
SETTLE_US = seconds(10)
"""After a change of phase: what is refused then is told apart."""

VARYING = (200, 800)
"""Jobs a second, phase by phase."""

MOST_REFUSED = 0.001
_OVERLOAD_S = 6.0
"""Of work in each burst: twice what can be done until the next one."""

_SEARCHED = 24
"""Steps of a twentieth of a second that are looked at for what a mark sustains."""

Make = Callable[[], Watermark]


@dataclass(slots=True)
class Phase:
    """What came of the jobs of one phase, after it had settled; `refused_settling` before."""

    waits_us: list[int] = field(default_factory=list)
    asked: int = 0
    refused: int = 0
    refused_settling: int = 0

    @property
    def p99_us(self) -> int:
        ordered = sorted(self.waits_us)
        return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] if ordered else 0


@dataclass(frozen=True, slots=True)
class Played:
    """One mark at one size of bursts. `lost` were let in and not served."""

    phases: Sequence[Phase]
    lost: int

    @property
    def p99_us(self) -> int:
        """That of the worse phase."""
        return max(phase.p99_us for phase in self.phases)

    @property
    def refused(self) -> float:
        """The share, of the worse phase."""
        return max(phase.refused / max(1, phase.asked) for phase in self.phases)


def play(mark: Watermark, burst_s: float, phase_s: float, rates: Sequence[int] = VARYING) -> Played:
    """Plays a phase of each rate, one after the other, with bursts of `burst_s` of work."""
    queue = InputQueue(QueueBounds(jobs=ROOM, watermark=1.0), {"llm": mark})
    waiting: deque[int] = deque(maxlen=ROOM)
    phases = []
    served, free_us = 0, 0
    for number, rate in enumerate(rates):
        phase, took_us = Phase(), US_PER_S // rate
        phases.append(phase)
        began = number * seconds(phase_s)
        jobs = max(1, round(burst_s * rate))
        for burst_us in range(began, began + seconds(phase_s), EVERY_US):
            settled = burst_us - began >= SETTLE_US
            arrivals = [burst_us + SPREAD_US * n // jobs for n in range(jobs)]
            for now in [*arrivals, burst_us + EVERY_US]:
                # Whatever is done until this arrival leaves first.
                while waiting and max(free_us, waiting[0]) <= now:
                    start_us = max(free_us, waiting[0])
                    if served:
                        queue.finished("llm", took_us, free_us)
                    waited_us = start_us - waiting.popleft()
                    queue.started("llm", 3, 0, waited_us, start_us)
                    free_us = start_us + took_us
                    served += 1
                    if settled:
                        phase.waits_us.append(waited_us)
                if now == burst_us + EVERY_US:
                    continue
                admitted = queue.admit("llm", 3, 0, 0, now)
                if admitted:
                    waiting.append(now)
                if settled:
                    phase.asked += 1
                    phase.refused += not admitted
                else:
                    phase.refused_settling += not admitted
    return Played(phases, queue.admitted - served - len(waiting))


def sustained(make: Make, phase_s: float, rates: Sequence[int] = VARYING) -> float:
    """Returns the largest burst, in seconds of work, of which at most `MOST_REFUSED` is refused and whose waits are
    within the bound at the 99th percentile; 0 where there is none."""
    low, high = 0, _SEARCHED
    while low < high:
        middle = (low + high + 1) // 2
        played = play(make(), middle / 20, phase_s, rates)
        if played.refused <= MOST_REFUSED and played.p99_us <= BOUND_US:
            low = middle
        else:
            high = middle - 1
    return low / 20


def best_fixed(phase_s: float, rates: Sequence[int] = VARYING) -> float:
    """Returns the largest share of the room whose mark keeps the bound where twice as much comes as can be done."""
    shares = [one / 20 for one in range(20, 0, -1)]
    return next(
        share
        for share in shares
        if play(FixedWatermark(ROOM, share), _OVERLOAD_S, phase_s, rates).p99_us <= BOUND_US
    )


def study(phase_s: float, rates: Sequence[int]) -> list[Row]:
    """Returns a row for the best fixed mark, one for the default share, one for the adaptive mark."""
    best = best_fixed(phase_s, rates)
    makes: dict[str, Make] = {
        f"fixed, {best:.0%} (the most that keeps the bound)": lambda: FixedWatermark(ROOM, best),
        "fixed, 85 %": lambda: FixedWatermark(ROOM),
        "adaptive": lambda: AdaptiveWatermark(ROOM, target_us()),
    }
    rows: list[Row] = []
    for name, make in makes.items():
        over = play(make(), _OVERLOAD_S, phase_s, rates)
        rows.append(
            {
                "mark": name,
                "sustains, s of work": sustained(make, phase_s, rates),
                "p99 at overload, ms": over.p99_us / 1_000,
                "keeps the bound": "yes" if over.p99_us <= BOUND_US else "no",
                "refused at overload, %": 100 * over.refused,
                "accepted and lost": over.lost,
            }
        )
    return rows


def command(
    phase_s: Annotated[
        float, typer.Option("--seconds", min=30, help="Of virtual time, for each phase.")
    ] = 120,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Marks of the job queue side by side, adaptive and fixed: virtual time, nothing random.

    \b
    Examples:
      chorale bench watermark                two minutes of each phase
      chorale bench watermark --seconds 30   quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    with console.status("a rate that changes"):
        varying = study(phase_s, VARYING)
    with console.status("a rate that does not"):
        constant = study(phase_s, VARYING[1:])
    console.print(
        table(f"{VARYING[0]} and {VARYING[1]} jobs a second, bound {BOUND_US // 1_000} ms", varying)
    )
    console.print(table(f"{VARYING[1]} jobs a second all the time", constant))
    outcome = Outcome("watermark", {"seconds": phase_s}, tables={"varying": varying, "constant": constant})
    fixed, default, adaptive = varying
    ratio = _number(adaptive["sustains, s of work"]) / max(0.05, _number(fixed["sustains, s of work"]))
    wait = _number(adaptive["p99 at overload, ms"]) / _number(default["p99 at overload, ms"])
    flat = _number(constant[2]["sustains, s of work"]) / max(
        0.05, _number(constant[0]["sustains, s of work"])
    )
    lost = sum(_number(row["accepted and lost"]) for row in [*varying, *constant])
    outcome.figures.update({"sustained, adaptive : fixed": ratio, "the same at a constant rate": flat})
    outcome.claims += [
        Claim(
            "adaptive keeps the bound at twice what can be done, in ms",
            adaptive["keeps the bound"] == "yes",
            adaptive["p99 at overload, ms"],
        ),
        Claim("adaptive sustains 1.27 times the burst of the best fixed mark, or more", ratio >= 1.27, ratio),
        Claim(
            "its p99 at the same overload is 0.65 of the default fixed mark's, or less", wait <= 0.65, wait
        ),
        Claim("nothing that was accepted is lost", lost == 0, lost),
    ]
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return float(figure)
