"""How a verb ends: exit codes, and what is said on the way out."""

from typing import NoReturn

import typer

FAILED = 1
CONFIGURATION = 2


def refuse(message: str, code: int) -> NoReturn:
    """Says why on standard error and ends the process with `code`."""
    typer.echo(message, err=True)
    raise typer.Exit(code)
