"""`chorale bench limiter`: what tenants may use, held against an exact log of every request.

Traffic is made of seeded draws on virtual time, an hour of each kind, most of it twice what the quota gives or more.
Every way decides on the same requests by itself; windows are then summed over what it let in, at every request, from
the exact times. Only the cost of a decision is measured on the clock, and memory by what Python has allocated.
"""

import asyncio
import os
import random
import statistics
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from orchestrator.clock import US_PER_S, ms, seconds
from orchestrator.flow.limiter import Refusal
from orchestrator.flow.tenants import Hold, TenantLimits
from orchestrator.flow.token_limiter import Quota, Reservation, Resource, TokenLimiter

LIMIT = 10_000
WINDOW_US = seconds(60)
LOG, FUSED, TWO = "exact log", "fused limiter", "two weighted buckets"

Request = tuple[int, int, int]
"""When (µs), how much is asked for, and how much of it is used in the end."""


class Way(Protocol):
    def reserve(self, amount: int, now: int) -> Callable[[int, int], None] | None:
        """Lets a request in and returns what settles it (used, now), or None."""
        ...


class ExactLog:
    """Keeps every request of the last window: exact, and as large as the traffic."""

    def __init__(self, limit: int, window_us: int) -> None:
        self._limit, self._window_us = limit, window_us
        self._entries: deque[list[int]] = deque(maxlen=1_000_000)
        self._sum = 0

    def reserve(self, amount: int, now: int) -> Callable[[int, int], None] | None:
        while self._entries and self._entries[0][0] <= now - self._window_us:
            self._sum -= self._entries.popleft()[1]
        if self._sum + amount > self._limit:
            return None
        entry = [now, amount]
        self._entries.append(entry)
        self._sum += amount

        def settle(used: int, later: int) -> None:
            if entry[0] > later - self._window_us:
                self._sum -= entry[1] - used
                entry[1] = used

        return settle


class TwoBuckets:
    """The usual approximation: this minute's sum and the last one's, weighted by how much of it is in the window."""

    def __init__(self, limit: int, window_us: int) -> None:
        self._limit, self._window_us = limit, window_us
        self._number = 0
        self._now = self._before = 0

    def reserve(self, amount: int, now: int) -> Callable[[int, int], None] | None:
        number, into = divmod(now, self._window_us)
        if number != self._number:
            self._before = self._now if number == self._number + 1 else 0
            self._number, self._now = number, 0
        if self._now + self._before * (1 - into / self._window_us) + amount > self._limit:
            return None
        self._now += amount

        def settle(used: int, later: int) -> None:
            if self._number == number:
                self._now -= amount - used

        return settle


class Fused:
    """The server's own."""

    def __init__(self, limit: int, window_us: int) -> None:
        self._limiter = TokenLimiter(Quota(limit, window_us))

    def reserve(self, amount: int, now: int) -> Callable[[int, int], None] | None:
        taken = self._limiter.reserve(amount, now)
        return taken.settle if isinstance(taken, Reservation) else None


WAYS: dict[str, Callable[[int, int], Way]] = {LOG: ExactLog, FUSED: Fused, TWO: TwoBuckets}


def bursts(draw: random.Random, span_us: int) -> Iterator[Request]:
    """Up to 40 requests within 50 ms, then quiet for some seconds."""
    now = 0
    while now < span_us:
        for _ in range(draw.randint(1, 40)):
            amount = min(LIMIT, int(draw.lognormvariate(4.6, 0.8)) + 1)
            yield now, amount, amount
            now += draw.randint(0, ms(2))
        now += int(draw.expovariate(1 / seconds(7)))


def even(draw: random.Random, span_us: int) -> Iterator[Request]:
    """A request of the same size every 150 ms, give or take a third."""
    now = 0
    while now < span_us:
        yield now, 50, 50
        now += draw.randint(ms(100), ms(200))


def once_a_minute(draw: random.Random, span_us: int) -> Iterator[Request]:
    """All at once in 50 requests, each minute and a hundredth of a second, as a scheduled job does."""
    now = draw.randint(0, WINDOW_US)
    while now < span_us:
        for _ in range(50):
            yield now, LIMIT // 50, LIMIT // 50
        now += WINDOW_US + ms(10)


def settled(draw: random.Random, span_us: int) -> Iterator[Request]:
    """Bursts whose requests reserve more than they use in the end: a tenth to all of it."""
    for when, amount, _ in bursts(draw, span_us):
        yield when, amount, int(amount * draw.uniform(0.1, 1))


TRAFFIC: dict[str, Callable[[random.Random, int], Iterator[Request]]] = {
    "bursts": bursts,
    "even": even,
    "once a minute": once_a_minute,
    "settled": settled,
}


def decide(way: Way, requests: Sequence[Request], settle_after_us: int = seconds(3)) -> list[tuple[int, int]]:
    """Returns what a way lets in: when, and how much was used in the end. Work takes three seconds."""
    let_in: list[tuple[int, int]] = []
    running: deque[tuple[int, int, Callable[[int, int], None]]] = deque(maxlen=len(requests))
    for when, amount, used in requests:
        while running and running[0][0] <= when:
            due, spent, settle = running.popleft()
            settle(spent, due)
        end = way.reserve(amount, when)
        if end is not None:
            let_in.append((when, used))
            running.append((when + settle_after_us, used, end))
    return let_in


def worst_window(let_in: Sequence[tuple[int, int]]) -> int:
    """Returns the largest sum of any window ``(t - W, t]``: it ends with a request."""
    worst = held = first = 0
    for when, amount in let_in:
        held += amount
        while let_in[first][0] <= when - WINDOW_US:
            held -= let_in[first][1]
            first += 1
        worst = max(worst, held)
    return worst


def compare(kind: str, minutes: int, seed: int) -> list[Row]:
    """Returns a row for each way on one kind of traffic."""
    requests = list(TRAFFIC[kind](random.Random(f"{kind} {seed}"), minutes * WINDOW_US))
    let_in = {name: decide(make(LIMIT, WINDOW_US), requests) for name, make in WAYS.items()}
    exact = sum(used for _, used in let_in[LOG])
    return [
        {
            "traffic": kind,
            "way": name,
            "asked for": sum(amount for _, amount, _ in requests),
            "let in": (total := sum(used for _, used in found)),
            "of the log's": total / exact,
            "worst window": worst_window(found) / LIMIT,
        }
        for name, found in let_in.items()
    ]


async def at_once(calls: int) -> tuple[int, int]:
    """Returns what calls at one instant reserve, and use: each asks, waits for its model, and then settles."""
    limits = TenantLimits({2: {Resource.LLM_TOKENS: Quota(LIMIT, WINDOW_US)}})
    reserved = used = 0

    async def call() -> None:
        nonlocal reserved, used
        hold = limits.reserve("t", 2, {Resource.LLM_TOKENS: 133}, seconds(1))
        await asyncio.sleep(0)
        if isinstance(hold, Hold):
            reserved += 133
            used += 120
            hold.settle({Resource.LLM_TOKENS: 120}, seconds(2))

    await asyncio.gather(*(call() for _ in range(calls)))
    return reserved, used


def memory(tenants: int, draw: random.Random) -> Row:
    """Returns the bytes of so many tenants' accounts: new, after one window of traffic, and after another."""
    limits = TenantLimits({2: {Resource.LLM_TOKENS: Quota(LIMIT, WINDOW_US)}}, capacity=tenants)
    names = [f"tenant-{number}" for number in range(tenants)]
    rounds = max(2, min(100, 20_000 // tenants))
    held, now = [], seconds(1)
    tracemalloc.start()
    try:
        for windows in (0, 1, 1):
            for _ in range(max(1, windows * rounds)):
                now += WINDOW_US // rounds
                for name in names:
                    _use(limits, name, now + draw.randint(0, 1_000))
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    new, first, second = (round(one / tenants) for one in held)
    return {
        "tenants": tenants,
        "bytes each, new": new,
        "after 1 window": first,
        "after 2 windows": second,
        "all, MB": held[-1] / 1e6,
    }


def cost(tenants: int, decisions: int, draw: random.Random) -> Row:
    """Returns the nanoseconds of a decision with its settlement, over so many tenants: the median of seven runs."""
    limits = TenantLimits({2: {Resource.LLM_TOKENS: Quota(LIMIT, WINDOW_US)}}, capacity=tenants)
    names = [f"tenant-{draw.randrange(tenants)}" for _ in range(decisions)]
    for number in range(tenants):
        _use(limits, f"tenant-{number}", 0)
    needs, now, runs = {Resource.LLM_TOKENS: 100}, seconds(1), []
    for _ in range(7):
        began = time.perf_counter_ns()
        for name in names:
            now += 997
            hold = limits.reserve(name, 2, needs, now)
            if isinstance(hold, Hold):
                hold.settle(needs, now)
        runs.append((time.perf_counter_ns() - began) / decisions)
    return {
        "tenants": tenants,
        "ns, reserve and settle": round(statistics.median(runs)),
        "least": round(min(runs)),
    }


def bare_cost(decisions: int) -> int:
    """Returns the nanoseconds of one limiter's decision alone, let in or refused: the median of seven runs."""
    limiter, now, runs = TokenLimiter(Quota(LIMIT, WINDOW_US)), seconds(1), []
    for _ in range(7):
        began = time.perf_counter_ns()
        for _ in range(decisions):
            now += 997
            limiter.reserve(1, now)
        runs.append((time.perf_counter_ns() - began) / decisions)
    return round(statistics.median(runs))


def _use(limits: TenantLimits, name: str, now: int) -> None:
    hold = limits.reserve(name, 2, {Resource.LLM_TOKENS: 100}, now)
    if isinstance(hold, Refusal) or hold is None:
        return
    hold.settle({Resource.LLM_TOKENS: 60}, now)


def command(
    minutes: Annotated[int, typer.Option(min=2, help="Of virtual time, for each kind of traffic.")] = 60,
    tenants: Annotated[int, typer.Option(min=10, help="The most accounts.")] = 100_000,
    decisions: Annotated[int, typer.Option(min=100, help="Timed, in each of seven runs.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Of the traffic.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """What tenants may use, held against an exact log: windows, what is let in, memory, cost.

    \b
    Examples:
      chorale bench limiter                                        an hour of each traffic, 100,000 tenants
      chorale bench limiter --minutes 5 --tenants 1000              small and quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    draw = random.Random(seed)
    traffic: list[Row] = []
    for kind in TRAFFIC:
        with console.status(f"{minutes} minutes of {kind}"):
            traffic += compare(kind, minutes, seed)
    console.print(table(f"{LIMIT:,} in any minute", traffic))
    reserved, used = asyncio.run(at_once(1_000))
    sizes = [size for size in (10, 1_000, 100_000) if size < tenants] + [tenants]
    held, costs = [], []
    for size in sizes:
        with console.status(f"{size} tenants"):
            held.append(memory(size, draw))
            costs.append(cost(size, decisions, draw))
    console.print(table("Memory of an account", held))
    console.print(table("Cost of a decision", costs))
    outcome = Outcome(
        "limiter",
        {"minutes": minutes, "tenants": tenants, "decisions": decisions, "seed": seed},
        tables={"traffic": traffic, "memory": held, "cost": costs},
    )
    fused = [row for row in traffic if row["way"] == FUSED]
    two = [row for row in traffic if row["way"] == TWO]
    worst = max(_number(row["worst window"]) for row in fused)
    share = min(_number(row["of the log's"]) for row in fused)
    growth = max(_number(row["after 2 windows"]) / _number(row["after 1 window"]) for row in held)
    outcome.figures |= {
        "worst window": worst,
        "least share of the log's": share,
        "worst window, two buckets": max(_number(row["worst window"]) for row in two),
        "least share of the log's, two buckets": min(_number(row["of the log's"]) for row in two),
        "reserved by 1,000 calls at once": reserved,
        "used by them": used,
        "ns, one limiter alone": bare_cost(decisions),
        "window, s": WINDOW_US / US_PER_S,
    }
    outcome.claims += [
        Claim("never over the limit in any window", worst <= 1, worst),
        Claim("nor by 1,000 calls at one instant", reserved <= LIMIT, reserved),
        Claim("lets in within 1 % of what an exact log does", 0.99 <= share <= 1.01, share),
        Claim("an account's memory does not grow with its traffic", growth <= 1.05, growth),
    ]
    outcome.show(console)
    console.print(f"one limiter alone: {outcome.figures['ns, one limiter alone']} ns a decision")
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return float(figure)
