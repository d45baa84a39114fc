"""A server for `chorale bench overhead`: the real one with a scripted language model, and with telemetry or without.

``python -m benchmarks.overhead_server MODE TOKENS [ENDPOINT]``: MODE is ``off``, ``metrics`` (one scrape a second) or
``all`` (that, and traces and metrics to ENDPOINT every second). The port is the first line of its output; each line of
its input is a question: ``usage`` is answered by the processor time so far; from ``profile`` on the event loop's thread
is profiled until ``report``, which is answered by a JSON list.
"""

import asyncio
import cProfile
import json
import pstats
import sys
import threading
import time
from dataclasses import replace

import uvloop

from benchmarks.ws_server import MOST_SOCKETS, PING_S, NoDetector, Ready, ScriptedModel, say, sockets
from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import MonotonicClock
from orchestrator.observability.loop_lag import LoopLag
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.sessions.registry import Registry
from orchestrator.settings import Settings
from orchestrator.settings.parts import registry_settings
from orchestrator.settings.watching import ServerParts, watch_server
from orchestrator.telemetry.options import TelemetrySettings
from orchestrator.telemetry.telemetry import Telemetry
from orchestrator.transports.auth import Gate, SecretBook
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.http import make_app
from orchestrator.transports.routes import Doors
from orchestrator.transports.server import ServerOptions, make_server
from orchestrator.transports.webrtc import CallDoor
from orchestrator.transports.websocket import WebSocketDoor
from orchestrator.workers.pool import WorkerPool
from orchestrator.workers.spec import PoolSettings
from orchestrator.workers.voice_activity import VoiceActivity

SCRAPE_EVERY_S = 1.0
MOST_FUNCTIONS = 25


def make_watching(mode: str, endpoint: str | None) -> Telemetry | None:
    """Returns telemetry as a mode has it."""
    if mode == "off":
        return None
    wanted = TelemetrySettings(endpoint=endpoint if mode == "all" else None, every_s=1.0)
    return Telemetry(wanted, MonotonicClock())


class Watched:
    """The server as `orchestrator.app` puts it together, with the scripted model in place of workers."""

    def __init__(self, mode: str, tokens: int, endpoint: str | None = None, burst: int = 1) -> None:
        settings, clock = Settings(), MonotonicClock()
        self.telemetry = make_watching(mode, endpoint)
        directory = replace(registry_settings(settings), max_sessions=MOST_SOCKETS)
        model = ScriptedModel(tokens, burst)
        scheduler = Scheduler(QueueBounds(jobs=2 * MOST_SOCKETS))
        self.dispatcher = Dispatcher(model, clock, scheduler, instrument=self.telemetry)
        voice = VoiceActivity(NoDetector())
        self.registry = Registry(directory, clock, self.dispatcher, voice, instrument=self.telemetry)
        secrets = SecretBook(8)
        entrance = Entrance(Gate(None, secrets), ("loopback",), (), clock)
        door = WebSocketDoor(self.registry, entrance, MOST_SOCKETS)
        model.registry, model.door = self.registry, door
        calls = CallDoor(self.registry, clock=clock)
        scrape = self.telemetry.scrape if self.telemetry is not None else None
        doors = Doors(
            entrance, door, calls, Ready(), directory.defaults, 3_600, clock, scrape, self.telemetry
        )
        self.lag = LoopLag(tell=self.telemetry.loop_lag if self.telemetry is not None else None)
        if self.telemetry is not None:
            pool = WorkerPool(PoolSettings(()), clock)
            parts = ServerParts(self.registry, self.dispatcher, pool, door, calls, secrets, None)
            watch_server(self.telemetry, parts, settings)
        self._app = make_app(doors, {})

    async def run(self, scrape_every_s: float = SCRAPE_EVERY_S) -> None:
        """Serves until it is killed."""
        self.dispatcher.start()
        self.lag.start()
        scraping = None
        if self.telemetry is not None:
            self.telemetry.start()
            scraping = asyncio.create_task(self._scrape(scrape_every_s))
        await make_server(self._app, ServerOptions(ping_s=PING_S)).serve(sockets())
        if scraping is not None:
            scraping.cancel()

    async def _scrape(self, every_s: float) -> None:
        assert self.telemetry is not None
        scrape = self.telemetry.scrape
        assert scrape is not None
        while True:
            await asyncio.sleep(every_s)
            await scrape.text()


class Profiling:
    """Profiles the event loop's thread, from a question to a question."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def begin(self) -> None:
        self._profile.enable()

    def report(self) -> list[dict[str, object]]:
        """Returns the functions that took most by themselves, in µs and as a share of all."""
        self._profile.disable()
        told = pstats.Stats(self._profile).get_stats_profile()
        functions = sorted(told.func_profiles.items(), key=lambda one: -one[1].tottime)
        total_s = sum(one.tottime for _, one in functions) or 1.0
        return [
            {
                "function": f"{_short(one.file_name)}{name}",
                "calls": str(one.ncalls),
                "ms": round(1_000 * one.tottime, 1),
                "%": round(100 * one.tottime / total_s, 1),
            }
            for name, one in functions[:MOST_FUNCTIONS]
        ]


def _short(path: str) -> str:
    """Returns the end of a path: what tells a file of ours or of a library."""
    return "" if path.startswith("~") else "/".join(path.split("/")[-2:]) + " "


def answer(profiling: Profiling, loop: asyncio.AbstractEventLoop) -> None:
    """In a thread: what the benchmark asks on our input. The profile is of the loop's thread: begun and read there."""
    for line in sys.stdin:
        match line.strip():
            case "usage":
                say(json.dumps({"cpu_s": time.process_time()}))
            case "profile":
                loop.call_soon_threadsafe(profiling.begin)
            case "report":
                loop.call_soon_threadsafe(lambda: say(json.dumps(profiling.report())))


async def main(mode: str, tokens: int, endpoint: str | None) -> None:
    """Serves until it is killed."""
    watched = Watched(mode, tokens, endpoint)
    loop = asyncio.get_running_loop()
    threading.Thread(target=answer, args=(Profiling(), loop), daemon=True).start()
    await watched.run()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
