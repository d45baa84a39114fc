"""`chorale check`: is everything there that a configuration needs? Starts nothing."""

import errno
import os
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from orchestrator.cli.outcome import CONFIGURATION, FAILED, refuse

if TYPE_CHECKING:
    from orchestrator.settings import Settings

EXAMPLES = """\b
Examples:
  chorale check                                 the defaults
  chorale check --config configs/default.yaml
  chorale check -c mine.yaml && chorale serve -c mine.yaml

\b
Exit codes: 0 all is there, 1 the machine is not ready (the port is taken), 2 the configuration is wrong or a model
is missing.
"""


_CONNECT_S = 2.0
"""How long an endpoint may take to be there."""

_WIDE = 200
"""Columns of the table where it goes to a file."""


class Outcome(Enum):
    """How a check ended, and with which exit code."""

    FINE = ("ok", 0)
    NOTE = ("note", 0)
    BUSY = ("fault", FAILED)
    WRONG = ("fault", CONFIGURATION)

    @property
    def word(self) -> str:
        return self.value[0]

    @property
    def exit_code(self) -> int:
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table."""

    subject: str
    outcome: Outcome
    text: str


def check(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="The configuration; without one the defaults hold."
        ),
    ] = None,
) -> None:
    """Check that everything is there.

    Looks at the configuration, the key file, the certificate, the ports, and the models of every worker. Starts
    nothing.
    """
    from orchestrator import settings
    from orchestrator.errors import ConfigError

    try:
        loaded = settings.load(config)
    except ConfigError as error:
        refuse(str(error), CONFIGURATION)
    findings = [Finding("configuration", Outcome.FINE, str(config or "the defaults")), *examine(loaded)]
    _show(findings)
    raise typer.Exit(max(finding.outcome.exit_code for finding in findings))


def examine(settings: "Settings") -> Iterator[Finding]:
    """Yields everything that was looked at."""
    yield from _keys(settings)
    yield from _signing_key(settings)
    yield from _certificate(settings)
    yield _port("address", settings.server.host, settings.server.port)
    if (grpc := settings.server.grpc) is not None:
        yield _port("gRPC", grpc.host, grpc.port)
    yield from _workers(settings)


def _keys(settings: "Settings") -> Iterator[Finding]:
    from orchestrator.errors import ConfigError
    from orchestrator.transports.key_file import read_key_file

    path = settings.server.key_file
    if path is None:
        yield Finding("keys", Outcome.FINE, f"none needed: only this machine reaches {settings.server.host}")
        return
    try:
        ring = read_key_file(path, settings.limits.default_output_tokens)
    except ConfigError as error:
        yield Finding("keys", Outcome.WRONG, str(error))
        return
    yield Finding("keys", Outcome.FINE, f"{path}: {len(ring)}")
    if ring.in_clear:
        text = f"{ring.in_clear} in clear, for whoever reads the file: chorale keys hash --file {path}"
        yield Finding("keys", Outcome.NOTE, text)
    if others_may_read(path):
        yield Finding("keys", Outcome.NOTE, f"others on this machine may read them: chmod 600 {path}")


def _signing_key(settings: "Settings") -> Iterator[Finding]:
    from orchestrator.errors import ConfigError
    from orchestrator.transports.key_file import read_signing_key

    path = settings.server.secret_file
    if path is None:
        return
    try:
        read_signing_key(path)
    except ConfigError as error:
        yield Finding("secret_file", Outcome.WRONG, str(error))
        return
    yield Finding("secret_file", Outcome.FINE, str(path))
    if others_may_read(path):
        text = f"others on this machine may make client secrets with it: chmod 600 {path}"
        yield Finding("secret_file", Outcome.NOTE, text)


def _certificate(settings: "Settings") -> Iterator[Finding]:
    from orchestrator.errors import ConfigError
    from orchestrator.transports.certificates import check_certificate

    tls = settings.server.tls
    if tls is None:
        return
    try:
        check_certificate(tls.cert, tls.key)
    except ConfigError as error:
        yield Finding("tls", Outcome.WRONG, str(error))
        return
    yield Finding("tls", Outcome.FINE, str(tls.cert))
    if others_may_read(tls.key):
        text = f"others on this machine may pass for this server with {tls.key}: chmod 600 {tls.key}"
        yield Finding("tls", Outcome.NOTE, text)


def others_may_read(path: Path) -> bool:
    """Tells whether a file is more than its owner's."""
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def _port(subject: str, host: str, port: int) -> Finding:
    from orchestrator.transports.server import listen

    where = f"{host}:{port}"
    try:
        sockets = listen(host, port)
    except OSError as error:
        hint = "; a server may be running there" if error.errno == errno.EADDRINUSE else ""
        return Finding(subject, Outcome.BUSY, f"{where}: {error.strerror}{hint}")
    for one in sockets:
        one.close()
    return Finding(subject, Outcome.FINE, where if port else f"{host}, any free port")


def _workers(settings: "Settings") -> Iterator[Finding]:
    """Looks for every model and option; loads none of them but the small detector, which lives in the server."""
    from orchestrator.errors import ChoraleError
    from orchestrator.settings.engines import as_installed, detector, worker_spec

    try:
        detector(settings)
        yield Finding("audio.vad", Outcome.FINE, settings.audio.vad.engine)
    except ChoraleError as error:
        yield Finding("audio.vad", Outcome.WRONG, str(error))
    for role, worker in as_installed(settings).workers.by_role().items():
        try:
            spec = worker_spec(role, worker, settings.models.allow_download)
        except ChoraleError as error:
            text = str(error).removeprefix(f"workers.{role}: ")
            yield Finding(f"workers.{role}", Outcome.WRONG, text)
            continue
        model = spec.options.get("path") or worker.model or "built in"
        size = f"{spec.count} x {spec.threads} thread{'s' if spec.threads > 1 else ''}"
        yield Finding(f"workers.{role}", Outcome.FINE, f"{spec.engine}, {size}: {model}")
        if spec.engine == "openai_compatible":
            yield from _endpoint(role, spec.options)
    yield _speech(settings)


def _endpoint(role: str, options: Mapping[str, object]) -> Iterator[Finding]:
    """Says what is missing at an endpoint: the key that it is to be shown, or the endpoint itself."""
    url = options.get("base_url")
    variable = options.get("key_environment") or (None if url else "OPENAI_API_KEY")
    if variable and not os.environ.get(str(variable), "").strip():
        text = f"the environment variable {variable}, which holds the key, is not set"
        yield Finding(f"workers.{role}", Outcome.WRONG, text)
    if not url:
        return
    parts = urlsplit(str(url))
    place = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    try:
        socket.create_connection(place, _CONNECT_S).close()
    except OSError:
        text = f"nobody answers at {place[0]}:{place[1]} now; the server waits for it"
        yield Finding(f"workers.{role}", Outcome.NOTE, text)


def _speech(settings: "Settings") -> Finding:
    """Names Piper's licence, or says what is missing for replies with a voice."""
    from orchestrator.settings.engines import lacks_piper

    speech = settings.workers.speech
    if speech is None:
        return Finding("speech", Outcome.NOTE, "switched off: replies are text")
    if speech.engine != "piper":
        return Finding("speech", Outcome.FINE, speech.engine)
    if lacks_piper(settings):
        text = "piper-tts is not installed: replies are text. For a voice: pip install piper-tts"
        return Finding("speech", Outcome.NOTE, text)
    return Finding(
        "speech", Outcome.NOTE, "piper-tts is GPL-3.0-or-later; it runs in a worker process of its own"
    )


def _show(findings: list[Finding]) -> None:
    """Prints a table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    styles = {Outcome.FINE: "green", Outcome.NOTE: "yellow", Outcome.BUSY: "red", Outcome.WRONG: "red"}
    table = Table(box=box.SIMPLE, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        outcome = Text(finding.outcome.word, styles[finding.outcome])
        table.add_row(finding.subject, outcome, Text(finding.text))
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
