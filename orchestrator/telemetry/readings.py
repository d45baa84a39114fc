"""What a running server is asked at each scrape: its sessions, jobs, workers, buffers and its own process.

Everything here is read on the event loop in one go, so it is numbers that exist already: nothing is counted for it. The
parts beside this package (doors, workers, recordings) are seen through the little that is asked of them.
"""

import asyncio
import gc
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.observability import names
from orchestrator.observability.faults import FAULTS
from orchestrator.observability.inventory import Inventory
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.sessions.registry import Registry
from orchestrator.telemetry.meters import TIERS, Reading, Source

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4_096


@dataclass(frozen=True, slots=True)
class WorkerReading:
    """A worker process now. `starts` counts the first one too."""

    worker_id: str
    is_ready: bool
    starts: int
    memory_bytes: int
    cpu_s: float
    memory_share: float | None = None


def process() -> Iterator[Reading]:
    """Reads the server's own process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield names.MEMORY, {}, _resident_bytes(usage)
    yield names.CPU, {"cpu.mode": "user"}, usage.ru_utime
    yield names.CPU, {"cpu.mode": "system"}, usage.ru_stime
    for generation, counts in enumerate(gc.get_stats()):
        yield names.GC, {"cpython.gc.generation": generation}, counts["collections"]
    yield names.TASKS, {}, len(asyncio.all_tasks())
    for loop, count in FAULTS.counts().items():
        yield names.LOOP_FAULTS, {"chorale.loop": loop}, count


def jobs(dispatcher: Dispatcher) -> Source:
    """Returns what reads the work that waits and runs."""

    def read() -> Iterator[Reading]:
        told = dispatcher.statistics()
        for kind, count in told.scheduler.queued.items():
            yield names.QUEUED, {"chorale.kind": kind}, count
        for kind, mark in told.scheduler.marks.items():
            yield names.QUEUE_MARK, {"chorale.kind": kind}, mark
        for kind, count in told.scheduler.running.items():
            yield names.RUNNING, {"chorale.kind": kind}, count
        for level in range(4):
            yield names.LEVELS, {"chorale.level": level}, told.scheduler.queued_by_level.get(level, 0)
        for level, weights in told.scheduler.weights.items():
            for word, weight in weights.items():
                yield names.WEIGHT, {"chorale.tier": TIERS[level], "chorale.weight": word}, weight
        for worker_id, one in told.instances.items():
            limited = {"chorale.worker": worker_id, "chorale.policy": one.policy}
            yield names.LIMIT, limited, one.jobs.limit
            yield names.LIMIT_IN_FLIGHT, limited, one.jobs.in_flight
        if told.tenants is not None:
            yield names.QUOTA_TENANTS, {}, told.tenants.tenants
            yield names.QUOTA_TURNED_AWAY, {}, told.tenants.turned_away
            for (tier, counted), use in told.tenants.use.items():
                used = {"chorale.tier": TIERS.get(tier, "unknown"), "chorale.resource": counted.value}
                for outcome in ("reserved", "refused", "returned", "overrun"):
                    yield names.QUOTA_USE, {**used, "chorale.outcome": outcome}, getattr(use, outcome)
        yield names.LATE_REPORTS, {}, told.dropped_reports
        if (served := told.service) is not None:
            yield names.SERVICE_LEVEL, {}, served.service.level
            yield names.SERVICE_DEGRADED, {}, int(served.service.degraded)
            yield names.PRESSURE, {}, served.pressure
            for what, count in served.shed.items():
                yield names.SHED, {"chorale.shed.what": what.name.lower()}, count

    return read


def workers(states: Callable[[], Sequence[WorkerReading]]) -> Source:
    """Returns what reads the worker processes."""

    def read() -> Iterator[Reading]:
        for state in states():
            about = {"chorale.worker": state.worker_id}
            yield names.WORKER_UP, about, int(state.is_ready)
            yield names.WORKER_RESTARTS, about, max(0, state.starts - 1)
            yield names.WORKER_MEMORY, about, state.memory_bytes
            yield names.WORKER_CPU, about, state.cpu_s
            if state.memory_share is not None:
                yield names.WORKER_MEMORY_SHARE, about, state.memory_share

    return read


def sessions(registry: Registry, inventory: Inventory, links: Mapping[str, Callable[[], int]]) -> Source:
    """Returns what reads sessions, links (by kind) and every buffer. The sum over sessions is made once a scrape."""

    def read() -> Iterator[Reading]:
        yield names.SESSIONS, {}, len(registry)
        for kind, count in links.items():
            yield names.LINKS, {"chorale.link.kind": kind}, count()
        readings = inventory.readings()
        for name, one in readings.items():
            about = {"chorale.buffer": name}
            yield names.BUFFER_ITEMS, about, one.items
            yield names.BUFFER_SIZE, about, one.size_bytes
            yield names.BUFFER_ITEM_LIMIT, about, one.bound_items
            yield names.BUFFER_LIMIT, about, one.bound_bytes
            yield names.BUFFER_DROPPED, about, one.dropped
        yield names.WINDOWS_DROPPED, {}, readings["detector_windows"].dropped

    return read


def _resident_bytes(usage: "resource.struct_rusage") -> int:
    """Returns what the process has in memory now; where the system does not tell, the most it ever had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1_024)
