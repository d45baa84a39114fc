"""`chorale replay`: recorded sessions run again, exactly or with today's models, and what is different is listed."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.outcome import CONFIGURATION, FAILED, refuse
from orchestrator.errors import ChoraleError

if TYPE_CHECKING:
    from orchestrator.recording.journal import Journal
    from orchestrator.recording.outcome import Outcome
    from orchestrator.recording.replay import Difference
    from orchestrator.settings import Settings

EXAMPLES = """\b
Examples:
  chorale replay recordings/                    every recording of a folder, exactly: no models, same effects
  chorale replay 20270101-120000-sess_1.jsonl --json
  chorale replay recordings/ --rerun            only what was said and typed, through today's models
  chorale replay recordings/ --model asr=whisper-base   the same with another recogniser

\b
Exit codes: 0 nothing is different, 1 something is, 2 the command is wrong or a recording cannot be read.
"""


def replay(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="Recordings (.jsonl), or folders of them.")
    ],
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Feed everything that happened, models' answers too (the default)."),
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Feed only what the user and the client did, to today's models.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=MODEL", help="Use this model for a role (asr, understand, llm, speech)."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="The configuration of today.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a recording.")] = False,
) -> None:
    """Run recorded sessions again, and list what is different."""
    if exact and (rerun or model):
        refuse("--exact runs no models: leave out --rerun and --model.", CONFIGURATION)
    files = list(found(paths))
    if not files:
        refuse(f"No recordings (*.jsonl) in {', '.join(map(str, paths))}.", CONFIGURATION)
    try:
        settings = _settings(config, model or [])
        with shown_progress(len(files)) as progress:
            results = list(_each(settings, files, bool(rerun or model), progress))
    except ChoraleError as error:
        refuse(str(error), CONFIGURATION)
    outcomes = [one for one in results if not isinstance(one, Unreadable)]
    unreadable = [one for one in results if isinstance(one, Unreadable)]
    if as_json:
        for one in results:
            typer.echo(json.dumps(one.as_plain()))
    elif outcomes:
        _table(outcomes)
    for one in unreadable:
        typer.echo(one.reason, err=True)
    if unreadable:
        raise typer.Exit(CONFIGURATION)
    if not all(outcome.is_equal for outcome in outcomes):
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A recording that cannot be read or run again, and why. The others of its folder are run all the same."""

    name: str
    reason: str

    def as_plain(self) -> dict[str, str]:
        """Returns it as JSON values."""
        return {"name": self.name, "error": self.reason}


def found(paths: list[Path]) -> Iterator[Path]:
    """Yields recordings by path; those of a folder in the order of their names. Exits where a path does not exist."""
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob("*.jsonl"))
        elif path.is_file():
            yield path
        else:
            refuse(f"There is no {path}.", CONFIGURATION)


def _each(
    settings: "Settings", files: list[Path], reruns: bool, progress: "Progress"
) -> "Iterator[Outcome | Unreadable]":
    """Yields what came of each recording; one of them is in memory at a time."""
    from orchestrator.recording.journal import load
    from orchestrator.recording.lines import JournalDamaged
    from orchestrator.recording.replay import NotReplayable
    from orchestrator.settings.studio import Studio

    studio = Studio(settings)
    try:
        for file in files:
            try:
                journal = load(file)
                yield studio.rerun(journal, progress) if reruns else _exact(settings, journal, progress)
            except (JournalDamaged, NotReplayable) as error:
                yield Unreadable(str(file), str(error))
            except OSError as error:
                yield Unreadable(str(file), f"Cannot read {file}: {error.strerror}.")
            progress(str(file), 1.0)
    finally:
        studio.close()


def _settings(config: Path | None, models: list[str]) -> "Settings":
    from orchestrator import settings

    options: dict[str, object] = {}
    for one in models:
        role, equals, name = one.partition("=")
        if not equals or role not in ("asr", "understand", "llm", "speech"):
            refuse(f"--model {one}: expected ROLE=MODEL with asr, understand, llm or speech.", CONFIGURATION)
        options[f"workers.{role}.model"] = name
    return settings.load(config, options=options)


Progress = Callable[[str, float], None]
"""Told a recording's name, and how much of it is done, in [0, 1]."""


def _exact(settings: "Settings", journal: "Journal", progress: Progress) -> "Outcome":
    from orchestrator.recording.outcome import Outcome
    from orchestrator.recording.replay import replay as replay_exactly
    from orchestrator.settings.parts import registry_settings

    began_s = time.perf_counter()
    total = max(1, journal.steps_count)
    replayed = replay_exactly(
        journal, registry_settings(settings).rules, lambda steps: progress(journal.name, steps / total)
    )
    progress(journal.name, 1.0)
    return Outcome.of_replay(journal, replayed, time.perf_counter() - began_s)


@contextmanager
def shown_progress(count: int) -> Iterator[Progress]:
    """Shows a bar on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda name, done: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        whole = bars.add_task("recordings", total=count)
        done_of: dict[str, float] = {}

        def show(name: str, done: float) -> None:
            done_of[name] = done
            bars.update(whole, completed=sum(done_of.values()), description=Path(name).name)

        yield show


def _table(outcomes: "list[Outcome]") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("recording", "lasted", "steps", "took", "result")
    for one in outcomes:
        result = "equal" if one.is_equal else f"{len(one.differences)} different"
        note = f" ({one.note})" if one.note else ""
        lasted = f"{one.lasted_s:.1f} s"
        table.add_row(Path(one.name).name, lasted, str(one.steps), f"{one.took_s:.2f} s", result + note)
    console.print(table)
    for one in outcomes:
        if one.is_equal:
            continue
        typer.echo(f"\n{Path(one.name).name}")
        for difference in one.differences:
            typer.echo(_told(difference))


def _told(difference: "Difference") -> str:
    """Returns a difference with both sides below each other, so that an eye finds where they part."""
    line = f"line {difference.line}, " if difference.line else ""
    recorded, now = (_indented(text) for text in (difference.expected, difference.got))
    at = f"{difference.at_us / 1e6:.3f} s"
    return f"  {line}{at}, {difference.about}\n    recorded: {recorded}\n    now:      {now}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n              ") or "nothing"
