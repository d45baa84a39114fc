"""Options that `chorale bench load-study` and `chorale bench soak` have in common."""

from pathlib import Path
from typing import Annotated

import typer

Users = Annotated[int, typer.Option(min=1, help="Sessions that are open at one time.")]

LocustPython = Annotated[
    Path,
    typer.Option(help="Python with Locust (`make load`).", show_default=".venv-clients/load/bin/python"),
]

JsonFile = Annotated[Path | None, typer.Option("--json", help="Where the figures go.")]
