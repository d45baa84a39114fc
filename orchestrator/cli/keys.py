"""`chorale keys`: makes, shows and withdraws the keys of a key file. A server that runs takes the change by itself."""

import os
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.outcome import CONFIGURATION, FAILED, refuse

if TYPE_CHECKING:
    from orchestrator.transports.auth import Key

EXAMPLES = """\b
Examples:
  chorale keys new acme                           a key for acme, in ./keys.yaml; printed once
  chorale keys new acme --tier silver --sessions 5 --expires 2027-06-30
  chorale keys list
  chorale keys revoke 3f9a1c20b7d4                by its id; the links that came by it are closed
  chorale keys hash                               no key in clear is left in the file

\b
To rotate: make a second key for the tenant, hand it out, then revoke the first. Put the file into the configuration
as server.key_file. Exit codes: 0 done, 1 the file cannot be written, 2 it is wrong.
"""

app = typer.Typer(
    help="Make, show and withdraw keys.", epilog=EXAMPLES, rich_markup_mode=None, no_args_is_help=True
)

FileOption = Annotated[
    Path,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        envvar="CHORALE_SERVER__KEY_FILE",
        help="The key file (server.key_file).",
    ),
]
_DEFAULT = Path("keys.yaml")
_KEY_BYTES = 32
_WIDE = 160
"""Columns of the table where it goes to a file."""


@app.command("new", epilog=EXAMPLES)
def new(
    tenant: Annotated[str, typer.Argument(help="Whose sessions it opens.")],
    file: FileOption = _DEFAULT,
    tier: Annotated[str, typer.Option(help="platinum, gold or silver: how soon its work is done.")] = "gold",
    origins: Annotated[
        list[str] | None, typer.Option("--origin", help="A web page that may use it; may be repeated.")
    ] = None,
    sessions: Annotated[
        int | None, typer.Option(min=1, help="How many sessions its tenant may have at once.")
    ] = None,
    links: Annotated[
        int | None, typer.Option(min=1, help="How many connections its tenant may have at once.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DAY", help="From when on it is worth nothing (2027-01-31).")
    ] = None,
) -> None:
    """Make a key and print it, this once.

    The file gets its hash only, and is made if it is not there.
    """
    import secrets

    from orchestrator.transports.auth import digest_of
    from orchestrator.transports.key_entries import with_entry

    key = "sk-" + secrets.token_urlsafe(_KEY_BYTES)
    digest = digest_of(key)
    entry: dict[str, object] = {"sha256": digest.hex(), "tenant": tenant, "tier": tier}
    if origins:
        entry["origins"] = origins
    entry |= {name: value for name, value in (("sessions", sessions), ("links", links)) if value is not None}
    if expires is not None:
        entry["expires"] = _day(expires)
    _change(file, lambda text: with_entry(text, entry, file), may_be_new=True)
    typer.echo(key)
    typer.echo(f"Its id is {digest.hex()[:12]}. The key itself is kept nowhere: put it away now.", err=True)


@app.command("list", epilog=EXAMPLES)
def show(file: FileOption = _DEFAULT) -> None:
    """Show the keys of a file: for whom each is, but never the key."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from orchestrator.errors import ConfigError
    from orchestrator.transports.key_file import read_key_file

    try:
        ring = read_key_file(file)
    except ConfigError as error:
        refuse(str(error), CONFIGURATION)
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in ("id", "tenant", "tier", "sessions", "links", "limits", "origins", "expires"):
        table.add_column(column, overflow="fold", no_wrap=column in ("id", "tier"))
    for key in ring.keys:
        table.add_row(*_row(key))
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
    if ring.in_clear:
        typer.echo(f"{ring.in_clear} in clear: chorale keys hash --file {file}", err=True)


@app.command("revoke", epilog=EXAMPLES)
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `chorale keys list` shows it.")],
    file: FileOption = _DEFAULT,
) -> None:
    """Take a key out of the file.

    A server that runs refuses it some seconds later and closes what came by it (server.revoke).
    """
    from orchestrator.transports.key_entries import without_entry

    _change(file, lambda text: without_entry(text, key_id.lower(), file))
    typer.echo(f"{key_id} is withdrawn.", err=True)


@app.command("hash", epilog=EXAMPLES)
def hide(file: FileOption = _DEFAULT) -> None:
    """Put the hash of each key in its place, for a file that holds keys in clear.

    The keys stay valid; who reads the file can use them no more.
    """
    from orchestrator.transports.key_entries import without_clear_keys

    _change(file, lambda text: without_clear_keys(text, file))


def _row(key: "Key") -> tuple[str, ...]:
    who, quotas = key.principal, key.quotas
    limits = (
        "its tier's"
        if quotas is None
        else ", ".join(f"{one.name.lower()} {quotas[one].limit}" for one in quotas)
    )
    return (
        key.id,
        who.tenant,
        who.tier.name.lower(),
        str(who.allowance.sessions or "any"),
        str(who.allowance.links or "any"),
        limits or "none",
        "the server's" if who.origins is None else ", ".join(who.origins) or "none",
        "never" if key.expires_us is None else _shown(key.expires_us),
    )


def _shown(expires_us: int) -> str:
    return datetime.fromtimestamp(expires_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _day(written: str) -> date:
    try:
        return datetime.fromisoformat(written) if "T" in written else date.fromisoformat(written)
    except ValueError:
        refuse(f"--expires: expected a day like 2027-01-31, got {written}", CONFIGURATION)


def _change(file: Path, edit: Callable[[str], str], may_be_new: bool = False) -> None:
    """Puts an edited file in the place of the file, whole or not at all. One at a time: the new one, beside it until it
    is done, tells others to wait."""
    from orchestrator.errors import ConfigError

    file = file.resolve()  # a link stays one
    beside = file.with_name(f".{file.name}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        refuse(f"{beside} is there: another `chorale keys` is at work, or was killed; then remove it", FAILED)
    except OSError as error:
        refuse(f"{file}: cannot be written: {error.strerror}", FAILED)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write(edit(_text_of(file, may_be_new)))
            written.flush()
            os.fsync(written.fileno())
            _keep_owner(file, written.fileno())
        beside.replace(file)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, ConfigError):
            refuse(str(error), CONFIGURATION)
        if isinstance(error, OSError):
            refuse(f"{file}: cannot be written: {error.strerror}", FAILED)
        raise


def _text_of(file: Path, may_be_new: bool) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        if may_be_new:
            return ""
        refuse(f"{file}: cannot be read: No such file or directory", FAILED)
    except UnicodeDecodeError:
        refuse(f"{file}: not YAML text", CONFIGURATION)


def _keep_owner(file: Path, descriptor: int) -> None:
    """The server that reads the file may be another user; others than it and its owner may never."""
    try:
        before = file.stat()
    except FileNotFoundError:
        return
    os.fchmod(descriptor, before.st_mode & 0o770)
    if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, before.st_uid, before.st_gid)
