"""`chorale bench NAME`: runs one of the measurements that lie in benchmarks/ of the source tree."""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import typer

import orchestrator

PASS_ON: dict[str, bool | list[str]] = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}
"""How `bench` is registered: everything behind the verb, ``--help`` too, belongs to the benchmark."""


def bench(context: typer.Context) -> None:
    """Measure the server. Without a name: what there is.

    `chorale bench NAME --help` tells about one benchmark.
    """
    inner = typer.Typer(
        add_completion=False, help="Measure the server against its claims.", rich_markup_mode=None
    )
    inner.callback()(_nothing_in_common)
    for module in found():
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        inner.command(name, short_help=_first_sentence(module.command))(module.command)
    inner(args=context.args or ["--help"], prog_name="chorale bench")


def found() -> Iterator[ModuleType]:
    """Yields the benchmarks: the modules of benchmarks/ that have a `command`. Exits where there is no source tree."""
    root = Path(orchestrator.__file__).parent.parent
    if not (root / "benchmarks" / "__init__.py").is_file():
        typer.echo("The benchmarks are part of the source tree, not of the installed package.", err=True)
        raise typer.Exit(2)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    package = importlib.import_module("benchmarks")
    for entry in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        module = importlib.import_module(f"benchmarks.{entry.name}")
        if hasattr(module, "command"):
            yield module


def _first_sentence(command: Callable[..., object]) -> str:
    """Returns how a benchmark begins to tell what it does: all of it, where a list would cut it short."""
    paragraph = " ".join(inspect.cleandoc(command.__doc__ or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


def _nothing_in_common() -> None:
    """Measure the server against its claims."""
