"""`chorale serve`: reads the configuration and runs the server until it is told to stop."""

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.outcome import CONFIGURATION, FAILED, refuse

if TYPE_CHECKING:
    from orchestrator.settings import Settings

log = logging.getLogger(__name__)

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""numpy's threads gain nothing on the small products of the event loop, and wait for each other on a busy machine:
resampling a second of sound took 8 ms instead of 0.1 on two loaded cores."""

EXAMPLES = """\b
Examples:
  chorale serve                             for this machine: no key needed
  chorale serve --port 9000
  chorale serve -c configs/default.yaml
  chorale serve -c mine.yaml --host 0.0.0.0   for others too: mine.yaml names a key file
  CHORALE_SERVER__PORT=9000 chorale serve   any setting, by its name

\b
SIGTERM or Ctrl-C lets running turns finish (server.drain_s); a second one stops at once.
Exit codes: 0 stopped as told, 1 failed, 2 the configuration is wrong or a model is missing.
"""

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The configuration; without one the defaults hold."),
]


def serve(
    config: ConfigOption = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen (server.host).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Where to listen (server.port); 0 takes a free one.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write every session down there whose client does not decline."),
    ] = None,
) -> None:
    """Run the server with all its workers.

    It takes WebRTC calls and WebSockets, and serves the page.
    """
    from orchestrator import settings
    from orchestrator.errors import ChoraleError, ConfigError, ModelMissing

    options: dict[str, object] = {"server.host": host, "server.port": port}
    if record is not None:
        options |= {"recording.dir": str(record), "recording.enabled": True}
    try:
        _run(
            settings.load(config, options={key: value for key, value in options.items() if value is not None})
        )
    except (ConfigError, ModelMissing) as error:
        refuse(str(error), CONFIGURATION)
    except ChoraleError as error:
        refuse(str(error), FAILED)


def _run(settings: "Settings") -> None:
    """Runs until told to stop. Raises `ChoraleError` where the server cannot come up."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    from orchestrator.app import Application
    from orchestrator.observability import logs

    opened = logs.configure(settings.logging.level, settings.logging.format)
    try:
        application = Application(settings, _progress())
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(application.run(_announce))
    finally:
        opened.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Returns uvloop's where there is one (not on Windows)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _announce(url: str) -> None:
    """Says on standard output that the server is ready, and where.

    What was made up to here stays to the end: the garbage collector is not to look through it again and again. A full
    round takes 200 to 300 ms for that alone, in which no call is heard and no word is sent.
    """
    gc.collect()
    gc.freeze()
    typer.echo(f"Chorale is ready: {url}")
    sys.stdout.flush()


def _progress() -> Callable[[str, str], None]:
    """Returns what shows how workers start: coloured lines on a terminal, lines of the log elsewhere."""
    if not sys.stderr.isatty():
        return _log_progress
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)

    def show(worker_id: str, line: str) -> None:
        style = "green" if line.startswith("ready") else "red" if line.startswith("failed") else "dim"
        console.print(Text.assemble(f"  {worker_id:<14}", (line, style)))

    return show


def _log_progress(worker_id: str, line: str) -> None:
    level = logging.WARNING if line.startswith("failed") else logging.INFO
    log.log(level, "worker %s", line, extra={"worker": worker_id})
