"""`chorale VERB`: the root of the command line. Importing it, and asking for help, loads no engine and no server."""

import importlib
import importlib.metadata
import importlib.util
from typing import Annotated

import typer

from orchestrator.cli import check, serve

EXAMPLES = """\b
Examples:
  chorale serve                        a server for this machine, with its page at http://127.0.0.1:8080
  chorale check --config mine.yaml     is everything there that this configuration needs?
  chorale chat                         a conversation in the terminal
  chorale VERB --help                  more about a verb
"""

app = typer.Typer(
    name="chorale",
    help="Chorale: spoken and written conversations, over the OpenAI Realtime protocol.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_GROUPS = ("models", "keys")
"""Verbs with verbs of their own: modules with an `app`."""

_VERBS = ("talk", "chat", "record", "replay", "bench")
"""Verbs whose module has a function of the same name; `PASS_ON` beside it hands all its arguments on."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"chorale {importlib.metadata.version('chorale')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Chorale: spoken and written conversations, over the OpenAI Realtime protocol."""


app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("check", epilog=check.EXAMPLES)(check.check)


def _register() -> None:
    """Adds the verbs that are installed."""
    for name in (*_GROUPS, *_VERBS):
        module_name = f"orchestrator.cli.{name}"
        if importlib.util.find_spec(module_name) is None:
            continue
        module = importlib.import_module(module_name)
        if name in _GROUPS:
            app.add_typer(module.app, name=name)
        else:
            options = getattr(module, "PASS_ON", None)
            app.command(name, context_settings=options, epilog=getattr(module, "EXAMPLES", None))(
                getattr(module, name)
            )


_register()


def main() -> None:
    """The entry point of the installed command."""
    app()
