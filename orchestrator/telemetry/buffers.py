"""The buffers of a running server, by the names that docs/buffers.md gives them ("What the running server reports")."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.buffers.transit import MOST_SLOTS
from orchestrator.observability import logs
from orchestrator.observability.inventory import BufferReading, Inventory
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.kinds import KINDS
from orchestrator.sessions.holdings import Holdings
from orchestrator.sessions.registry import Registry
from orchestrator.telemetry.gathering import MOST_JOBS, MOST_TURNS
from orchestrator.telemetry.shipper import MOST_SPANS
from orchestrator.telemetry.telemetry import Telemetry

Held = Callable[[], tuple[int, int, int]]
"""Tells how many and how many bytes are held now, and how many were dropped since the start."""


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """What one session may hold."""

    sessions: int
    log_events: int
    log_bytes: int
    total_log_bytes: int
    inbox_events: int
    detector_windows: int
    clip_bytes: int


def register_sessions(
    inventory: Inventory, registry: Registry, bounds: SessionBounds
) -> Callable[[], Awaitable[None]]:
    """Adds what sessions hold: one walk over them for all of it. Returns what walks in steps, for the reading that
    follows; without that the reading walks by itself."""
    walked: list[Holdings] = []

    async def walk() -> None:
        walked[:] = [await registry.holdings_in_steps()]

    def read() -> dict[str, BufferReading]:
        held, logs = walked.pop() if walked else registry.holdings(), registry.logs()
        count = held.sessions
        return {
            "sessions": BufferReading(items=count, bound_items=bounds.sessions, dropped=registry.refused),
            "ring": BufferReading(
                items=held.ring_samples,
                size_bytes=2 * held.ring_samples,
                bound_items=held.ring_capacity,
                bound_bytes=2 * held.ring_capacity,
            ),
            "detector_windows": BufferReading(
                items=held.detector_windows,
                bound_items=count * bounds.detector_windows,
                dropped=held.windows_dropped,
            ),
            "inbox": BufferReading(
                items=held.inbox_events,
                bound_items=count * bounds.inbox_events,
                dropped=held.events_refused,
            ),
            "clips": BufferReading(
                size_bytes=held.clip_bytes,
                bound_bytes=count * bounds.clip_bytes,
                dropped=held.clips_refused,
            ),
            "output_log": BufferReading(
                items=held.log_events,
                size_bytes=held.log_bytes,
                bound_items=count * bounds.log_events,
                bound_bytes=count * bounds.log_bytes,
                dropped=held.log_dropped,
            ),
            "output_logs": BufferReading(
                items=logs.sessions,
                size_bytes=logs.size,
                bound_items=bounds.sessions,
                bound_bytes=bounds.total_log_bytes,
                dropped=logs.cleared,
            ),
        }

    names = ("sessions", "ring", "detector_windows", "inbox", "clips", "output_log", "output_logs")
    inventory.register_group(names, read)
    return walk


def register_jobs(inventory: Inventory, dispatcher: Dispatcher, bounds: QueueBounds) -> None:
    """Adds the work that waits and the work that is inside."""

    def read() -> dict[str, BufferReading]:
        told = dispatcher.statistics()
        return {
            "jobs_waiting": BufferReading(
                items=sum(told.scheduler.queued.values()),
                size_bytes=told.scheduler.queued_audio_bytes,
                bound_items=bounds.jobs * len(KINDS),
                bound_bytes=bounds.audio_bytes,
                dropped=told.scheduler.refused,
            ),
            "jobs_inside": BufferReading(
                items=told.jobs.in_flight, bound_items=told.jobs.limit, dropped=told.jobs.refused
            ),
            "jobs_in_transit": BufferReading(
                items=told.transit.ready + told.transit.processing, bound_items=MOST_SLOTS
            ),
        }

    inventory.register_group(("jobs_waiting", "jobs_inside", "jobs_in_transit"), read)


def register_held(inventory: Inventory, name: str, held: Held, bound_items: int, bound_bytes: int) -> None:
    """Adds a kind of buffer that there are several of; the bounds are those of all that there may be."""

    def read() -> BufferReading:
        items, size_bytes, dropped = held()
        return BufferReading(
            items=items,
            size_bytes=size_bytes,
            bound_items=bound_items,
            bound_bytes=bound_bytes,
            dropped=dropped,
        )

    inventory.register(name, read)


def register_telemetry(inventory: Inventory, telemetry: Telemetry) -> None:
    """Adds telemetry's own buffers."""

    def spans() -> BufferReading:
        waiting, dropped = telemetry.spans_waiting
        return BufferReading(items=waiting, bound_items=MOST_SPANS, dropped=dropped)

    def gathered() -> BufferReading:
        return BufferReading(items=telemetry.jobs_gathered, bound_items=MOST_TURNS * MOST_JOBS)

    inventory.register("spans", spans)
    inventory.register("jobs_of_open_turns", gathered)


def register_logs(inventory: Inventory) -> None:
    """Adds the lines of the log that wait to be written."""

    def lines() -> BufferReading:
        waiting, dropped = logs.waiting()
        return BufferReading(items=waiting, bound_items=logs.MAX_WAITING_LINES, dropped=dropped)

    inventory.register("log_lines", lines)
