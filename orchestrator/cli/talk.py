"""`chorale talk`: says a recording, or a text, in a real WebRTC call and waits for the reply."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.outcome import CONFIGURATION, FAILED, refuse
from orchestrator.errors import ChoraleError

if TYPE_CHECKING:
    from orchestrator.clients.address import Event
    from orchestrator.clients.exchange import Exchange, News
    from orchestrator.clients.recording import Samples
    from orchestrator.clients.returning_call import ReturningCall

EXAMPLES = """\b
Examples:
  chorale talk question.wav                        say a recording; the reply's sound goes to reply.wav
  chorale talk question.mp3 --out answer.wav       any format that FFmpeg reads
  arecord -f S16_LE -r 16000 -d 5 | chorale talk -   five seconds of a microphone
  chorale talk --say "What time is it?"            typed into a call, answered by voice
  chorale talk question.wav --json                 every event of the server, one JSON object a line

\b
Exit codes: 0 the reply is complete, 1 it is not (a reason is given), 2 the command is wrong.
"""

SILENCE_S = 1.0
AUDIBLE = 300
MARGIN_S = 0.2
POLL_S = 0.05


def talk(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE|-", help="The recording to say; - is standard input.")
    ] = None,
    url: Annotated[str, typer.Option(envvar="CHORALE_URL", help="The server.")] = "http://127.0.0.1:8080",
    key: Annotated[
        str | None, typer.Option(envvar="CHORALE_API_KEY", help="An API key, where the server wants one.")
    ] = None,
    say: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Send this text, after the recording if there is one.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="WAV", help="Where the reply's sound goes.")] = Path(
        "reply.wav"
    ),
    transcription: Annotated[
        bool, typer.Option(help="Show what the server understands while it listens.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's events instead.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long to wait for a reply.")
    ] = 60.0,
) -> None:
    """Say a recording in a call, as a browser would, and hear the reply. A call that breaks is made again."""
    if file is None and say is None:
        refuse("Nothing to say: give a recording (or -), or --say TEXT.", CONFIGURATION)
    samples = _read(file) if file is not None else None
    printer = Printer(as_json)
    try:
        asyncio.run(_talk(url, key, samples, say, out, transcription, timeout, printer))
    except ValueError as error:
        refuse(str(error), CONFIGURATION)
    except ChoraleError as error:
        printer.end_line()
        refuse(f"Failed: {error}.", FAILED)


class Printer:
    """Shows events as they come: as lines for people, or as they are."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._within_line = False

    def show(self, event: "Event", news: "list[News]") -> None:
        """Prints an event, or what is new in it."""
        from orchestrator.clients.exchange import Answered, Answering, Hearing, Noticed, Understood

        if self._as_json:
            typer.echo(json.dumps(event))
            return
        for one in news:
            match one:
                case Hearing(text):
                    self.line(f"you …  {text}")
                case Understood(text):
                    self.line(f"you:   {text or '(nothing understood)'}")
                case Answering(text, first):
                    if first:
                        self.end_line()
                    typer.echo(f"reply: {text}" if first else text, nl=False)
                    self._within_line = True
                case Answered(note):
                    self.end_line()
                    if note is not None:
                        self.line(f"       ({note})")
                case Noticed(text):
                    self.line(f"       ({text})")

    def line(self, text: str) -> None:
        """Prints a line of its own; on standard error where events go to standard output."""
        self.end_line()
        typer.echo(text, err=self._as_json)

    def end_line(self) -> None:
        """Ends a line that was begun."""
        if self._within_line:
            typer.echo()
            self._within_line = False


def _read(file: str) -> "Samples":
    from orchestrator.clients.recording import NotSound, read_recording

    try:
        return read_recording(sys.stdin.buffer if file == "-" else file)
    except NotSound as error:
        refuse(f"{error}.", CONFIGURATION)
    except OSError as error:
        refuse(f"Cannot read {file}: {error.strerror}.", CONFIGURATION)


async def _talk(
    url: str,
    key: str | None,
    samples: "Samples | None",
    say: str | None,
    out: Path,
    transcription: bool,
    timeout_s: float,
    printer: Printer,
) -> None:
    from orchestrator.clients.exchange import Exchange
    from orchestrator.clients.returning import Rules
    from orchestrator.clients.returning_call import ReturningCall

    session: dict[str, object] = {"type": "realtime"}
    if transcription:
        session["audio"] = {"input": {"transcription": {"model": "whisper-1"}}}
    rules = Rules(notice=lambda text: printer.line(f"({text})"))
    async with ReturningCall.connect(url, key, session, rules) as call:
        printer.line(f"connected: {call.now.call_id}")
        exchange = Exchange(plays=True)
        reader = asyncio.create_task(_show_events(call, exchange, printer))
        try:
            if samples is not None:
                await _say(call, samples, reader)
                await _reply(call, exchange, reader, timeout_s, must_hear=True)
            if say is not None:
                await _type(call, say)
                exchange.expect_reply()
                await _reply(call, exchange, reader, timeout_s, must_hear=False)
        finally:
            reader.cancel()
            await asyncio.wait([reader])
        _save(call, out, printer)


async def _show_events(call: "ReturningCall", exchange: "Exchange", printer: Printer) -> None:
    async for event in call.events():
        printer.show(event, exchange.receive(event, time.monotonic()))


async def _say(call: "ReturningCall", samples: "Samples", reader: "asyncio.Task[None]") -> None:
    """Says a recording. Raises `CallFailed` where the call breaks meanwhile: half of it is no question."""
    from orchestrator.clients.address import CallFailed

    now = call.now
    saying = asyncio.create_task(now.say(samples, lead_s=SILENCE_S, tail_s=SILENCE_S))
    try:
        while not saying.done():
            if call.now is not now or now.failure is not None:
                raise CallFailed(f"{now.failure or 'the call broke'}, while the recording was being said")
            await asyncio.wait([saying, reader], timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        saying.cancel()


async def _reply(
    call: "ReturningCall",
    exchange: "Exchange",
    reader: "asyncio.Task[None]",
    timeout_s: float,
    must_hear: bool,
) -> None:
    """Waits until what was said has been answered. Raises `CallFailed` with the reason if it is not."""
    from orchestrator.clients.address import CallFailed

    began_s, replies = time.monotonic(), exchange.replies
    while True:
        now_s = time.monotonic()
        if exchange.failure is not None:
            raise CallFailed(exchange.failure)
        if exchange.replies > (0 if must_hear else replies) and exchange.is_settled(now_s):
            return
        if reader.done():
            raise CallFailed(call.failure or "the call has ended")
        if must_hear and exchange.is_deaf(began_s, now_s):
            raise CallFailed("the server heard no speech in the recording")
        if now_s - began_s > timeout_s:
            raise CallFailed(f"no complete reply within {timeout_s:.0f} s")
        await asyncio.wait([reader], timeout=POLL_S)


async def _type(call: "ReturningCall", text: str) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    await call.now.send({"type": "conversation.item.create", "item": item})
    await call.now.send({"type": "response.create"})


def _save(call: "ReturningCall", out: Path, printer: Printer) -> None:
    """Writes what could be heard, from the first sound to the last."""
    import numpy as np

    from orchestrator.clients.recording import CALL_RATE_HZ, write_wav

    samples = call.heard()
    audible = np.nonzero(np.abs(samples.astype(np.int32)) > AUDIBLE)[0]
    if len(audible) == 0:
        printer.line("the reply had no sound")
        return
    margin = int(MARGIN_S * CALL_RATE_HZ)
    spoken = samples[max(0, audible[0] - margin) : audible[-1] + margin]
    write_wav(out, spoken)
    printer.line(f"saved:  {out} ({len(spoken) / CALL_RATE_HZ:.1f} s)")
