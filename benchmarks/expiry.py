"""`chorale bench expiry`: how exactly jobs end at their deadlines, on the real clock.

A dispatcher with workers that never answer: half of the jobs run when their time comes, half still wait. Deadlines lie
anywhere within the span (seeded), no event falls on them: only the dispatcher's timer does. Beside it the loop has the
load of a server that is at work: jobs that are submitted, answered and delivered all the time.
"""

import asyncio
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import US_PER_S, MonotonicClock, seconds
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Failed, Replied, Reply, Report, Speak, Spoke, Work, WorkKind
from orchestrator.scheduling.worker_ports import WorkerEvents

AIM_MS = 5.0
REFERENCE_MS = 16.0
_LEAD_S = 0.5


class SilentWorkers:
    """A language model with so many places that never answers, and a voice that answers at once."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._events: WorkerEvents | None = None
        self.running: set[str] = set()

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        return {
            "llm": FreeSlots("llm", self._places - len(self.running)),
            "speech": FreeSlots("speech", 64),
        }

    def hopeless(self, kind: WorkKind) -> bool:
        return False

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        assert self._events is not None
        for job in jobs:
            if worker_id == "llm":
                self.running.add(job.id)
            else:
                asyncio.get_running_loop().call_soon(self._events.reported, worker_id, Spoke(job.id, 0))

    def cancel(self, worker_id: str, job_id: str) -> None:
        """The place stays taken: what waits behind it goes on waiting until its own deadline."""


async def measure(jobs: int, span_s: float, load: float, seed: int) -> dict[str, list[float]]:
    """Returns how late each job was told of its end, in ms, by where it was; negative would be early."""
    clock, draws = MonotonicClock(), random.Random(seed)
    workers = SilentWorkers(jobs // 2)
    most = 4 * jobs + 1_000
    dispatcher = Dispatcher(
        workers, clock, Scheduler(QueueBounds(jobs=most, watermark=1.0)), Limiter(FixedLimit(most))
    )
    dispatcher.start()
    late: dict[str, list[float]] = {"waiting": [], "running": []}
    deadlines: dict[str, int] = {}
    done = asyncio.Event()

    def note(report: Report) -> None:
        assert isinstance(report, Failed)
        assert report.code == "deadline_exceeded"
        where = "running" if report.job_id in workers.running else "waiting"
        late[where].append((clock.now_us() - deadlines[report.job_id]) / 1_000)
        if sum(map(len, late.values())) == jobs:
            done.set()

    began = clock.now_us()
    for number in range(jobs):
        session = f"s{number}"
        dispatcher.listen(session, note)
        deadline = began + seconds(_LEAD_S) + draws.randrange(int(span_s * US_PER_S))
        deadlines[f"j{number}"] = deadline
        dispatcher.submit(_job(f"j{number}", session, Reply(()), began, deadline))
    dispatcher.listen("busy", _ignore)
    busy = asyncio.create_task(_keep_busy(dispatcher, clock, load))
    async with asyncio.timeout(span_s + 60):
        await done.wait()
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    dispatcher.close()
    return late


def _job(id: str, session: str, work: Work, now: int, deadline_us: int) -> Job:
    return Job(id, session, work, Tier.SILVER, 3, now, deadline_us)


def _ignore(report: Report) -> None:
    assert not isinstance(report, Replied)


async def _keep_busy(dispatcher: Dispatcher, clock: MonotonicClock, load: float) -> None:
    """Submits so many short jobs a second, in small handfuls as a server's do."""
    number = 0
    while load:
        for _ in range(5):
            now = clock.now_us()
            dispatcher.submit(_job(f"b{number}", "busy", Speak("Hello."), now, now + seconds(5)))
            number += 1
        await asyncio.sleep(5 / load)


def row(where: str, late_ms: Sequence[float]) -> Row:
    """Returns the figures of the jobs that were at one place."""
    ordered = sorted(late_ms)
    return {
        "job was": where,
        "jobs": len(ordered),
        "earliest, ms": ordered[0],
        "p50, ms": ordered[len(ordered) // 2],
        "p99, ms": ordered[len(ordered) * 99 // 100],
        "latest, ms": ordered[-1],
    }


def command(
    jobs: Annotated[int, typer.Option(min=10, help="Half of them run, half wait.")] = 2_000,
    span_s: Annotated[float, typer.Option("--seconds", min=1, help="Within which deadlines lie.")] = 20,
    load: Annotated[float, typer.Option(min=0, help="Other jobs a second, submitted and answered.")] = 500,
    seed: Annotated[int, typer.Option(help="Of the deadlines.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Deadlines of jobs against the clock: how late the end is told, and never early.

    \b
    Examples:
      chorale bench expiry                            2,000 jobs in 20 s beside 500 others a second
      chorale bench expiry --jobs 200 --seconds 2      quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    with console.status(f"{jobs} deadlines in {span_s:g} s"):
        late = _on_the_servers_loop(jobs, span_s, load, seed)
    rows = [row(where, late_ms) for where, late_ms in late.items()]
    console.print(table("From the deadline to the report", rows))
    everything = sorted(one for of_one in late.values() for one in of_one)
    p99 = everything[int(0.99 * (len(everything) - 1))]
    arguments = {"jobs": jobs, "seconds": span_s, "load": load, "seed": seed}
    outcome = Outcome(
        "expiry", arguments, {"p99, ms": p99, "latest, ms": everything[-1]}, tables={"late": rows}
    )
    outcome.claims += [
        Claim("no job ends before its deadline", everything[0] >= 0, everything[0]),
        Claim(f"99 of 100 end within the reference's {REFERENCE_MS:g} ms", p99 <= REFERENCE_MS, p99),
        Claim(f"and within {AIM_MS:g} ms", p99 <= AIM_MS, p99),
    ]
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _on_the_servers_loop(jobs: int, span_s: float, load: float, seed: int) -> dict[str, list[float]]:
    """Runs on uvloop where it is installed, as the server does."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(measure(jobs, span_s, load, seed))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(jobs, span_s, load, seed))
