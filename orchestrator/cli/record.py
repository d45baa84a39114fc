"""`chorale record`: says a recording, or types, to this machine's models, and writes the session down."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from orchestrator.cli.outcome import CONFIGURATION, FAILED, refuse
from orchestrator.cli.replay import shown_progress
from orchestrator.errors import ChoraleError

if TYPE_CHECKING:
    from orchestrator.recording.scenario import Input

EXAMPLES = """\b
Examples:
  chorale record question.wav --out recordings/     a call that says this, written down
  chorale record question.wav --type 4.5="fifty, please" --out recordings/
  chorale record order.session.yaml --out recordings/   what a scenario does, whatever it expects
  chorale serve --record recordings/                a server that writes all its sessions down

\b
No server is needed: the session runs here, as fast as the models go. `chorale replay` runs it again.
Exit codes: 0 written, 1 the session failed, 2 the command is wrong.
"""


def record(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A recording of speech, or a *.session.yaml.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the session is written down.")] = Path(
        "recordings"
    ),
    typed: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="SECONDS=TEXT", help="Type a message at this time of the session."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="The configuration.")
    ] = None,
) -> None:
    """Hold a session with this machine's models and write it down."""
    from orchestrator import settings
    from orchestrator.recording.scenario import SUFFIX, Expected, Input, Scenario, parse
    from orchestrator.settings.studio import Studio, store

    if file is not None and not file.is_file():
        refuse(f"There is no {file}.", CONFIGURATION)
    inputs = [_typed(one) for one in typed or []]
    try:
        if file is not None and file.name.endswith(SUFFIX):
            scenario = parse(file.read_text(encoding="utf-8"), file.name)
        else:
            if file is not None:
                inputs.insert(0, Input(at=1.0, audio=str(file.resolve())))
            if not inputs:
                refuse("Nothing to record: give a recording, a scenario, or --type.", CONFIGURATION)
            scenario = Scenario(expect=Expected(), inputs=tuple(inputs), link="call", engines="real")
        studio = Studio(settings.load(config))
    except ChoraleError as error:
        refuse(str(error), CONFIGURATION)
    try:
        with shown_progress(1) as progress:
            rehearsed = studio.rehearse(
                scenario, file or Path("typed"), tell=lambda done: progress("session", done)
            )
        stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{(file or Path('typed')).name.split('.')[0]}"
        path = store(rehearsed, out, stem)
    except ChoraleError as error:
        refuse(str(error), FAILED)
    except OSError as error:
        refuse(f"Cannot write to {out}: {error.strerror}.", FAILED)
    finally:
        studio.close()
    for line in rehearsed.story.lines():
        typer.echo(line)
    typer.echo(f"written: {path}")


def _typed(one: str) -> "Input":
    from orchestrator.recording.scenario import Input

    at, equals, text = one.partition("=")
    try:
        seconds = float(at)
    except ValueError:
        _refuse(one)
    if not equals or not text or seconds < 0:
        _refuse(one)
    return Input(at=seconds, text=text)


def _refuse(one: str) -> NoReturn:
    refuse(f"--type {one}: expected SECONDS=TEXT.", CONFIGURATION)
