"""`chorale chat`: typed turns over a WebSocket, the reply as it is written."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from orchestrator.cli.outcome import CONFIGURATION, FAILED, refuse
from orchestrator.errors import ChoraleError

if TYPE_CHECKING:
    from orchestrator.clients.text_socket import ReturningSocket

EXAMPLES = """\b
Examples:
  chorale chat "What can you do?"                  one question, the reply on standard output
  chorale chat                                     a conversation; Ctrl-D ends it
  echo "Sum this up: …" | chorale chat             the question from standard input
  chorale chat --url https://voice.example.com --key sk-… "Hello"

\b
Exit codes: 0 every reply is complete, 1 one is not (a reason is given), 2 the command is wrong.
"""

PROMPT = "you> "


def chat(
    text: Annotated[str | None, typer.Argument(help="What to ask; without it you are asked in turn.")] = None,
    url: Annotated[str, typer.Option(envvar="CHORALE_URL", help="The server.")] = "http://127.0.0.1:8080",
    key: Annotated[
        str | None, typer.Option(envvar="CHORALE_API_KEY", help="An API key, where the server wants one.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model to ask for; the server's own by default.")
    ] = None,
    instructions: Annotated[str | None, typer.Option(help="How the assistant is to behave.")] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long to wait for a reply.")
    ] = 60.0,
) -> None:
    """Type to the assistant and read its replies as they are written. A connection that breaks is made again."""
    interactive = text is None and sys.stdin.isatty()
    if text is None and not interactive:
        text = sys.stdin.read()
    if text is not None and not text.strip():
        refuse("Nothing to ask: the text is empty.", CONFIGURATION)
    try:
        asyncio.run(_chat(url, key, model, instructions, text, timeout))
    except ValueError as error:
        refuse(str(error), CONFIGURATION)
    except ChoraleError as error:
        refuse(f"Failed: {error}.", FAILED)


async def _chat(
    url: str, key: str | None, model: str | None, instructions: str | None, text: str | None, timeout_s: float
) -> None:
    from orchestrator.clients.returning import Rules
    from orchestrator.clients.text_socket import ReturningSocket

    rules = Rules(notice=lambda text: typer.echo(f"({text})", err=True))
    async with ReturningSocket.connect(url, key, model, rules) as socket:
        conversation = Conversation(socket, timeout_s)
        await conversation.begin(instructions)
        if text is not None:
            await conversation.ask(text)
            return
        while (line := await _next_line()) is not None:
            if line.strip():
                try:
                    await conversation.ask(line)
                except ReplyFailed as error:  # the conversation goes on
                    typer.echo(f"({error})", err=True)


async def _next_line() -> str | None:
    """Returns what a person types next, None at the end of the input. Ctrl-C ends the command, not the next line: no
    thread waits for the keyboard."""
    typer.echo(PROMPT, nl=False)
    loop, keyboard = asyncio.get_running_loop(), sys.stdin.fileno()
    typed = asyncio.Event()
    loop.add_reader(keyboard, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(keyboard)
    line = sys.stdin.readline()  # a terminal gives whole lines
    if not line:
        typer.echo()
        return None
    return line


class ReplyFailed(ChoraleError):
    """The server says why there is no reply; the session lives on."""


class Conversation:
    """Asks, and prints what comes back."""

    def __init__(self, socket: "ReturningSocket", timeout_s: float) -> None:
        self._socket = socket
        self._timeout_s = timeout_s
        self._answers_by_itself = False

    async def begin(self, instructions: str | None) -> None:
        """Asks for text. A Chorale server then answers typed messages by itself; any other is asked to each time."""
        session: dict[str, object] = {"type": "realtime", "output_modalities": ["text"]}
        session["chorale"] = {"typed_turns": True}
        if instructions is not None:
            session["instructions"] = instructions
        await self._socket.send({"type": "session.update", "session": session})
        async with _patience(self._timeout_s, "the session"):
            while True:
                event = await self._socket.receive()
                if event["type"] == "error":
                    _fail(event["error"]["message"])
                if event["type"] == "session.updated":
                    extension = event["session"].get("chorale") or {}
                    self._answers_by_itself = bool(extension.get("typed_turns"))
                    return

    async def ask(self, text: str) -> None:
        """Sends a text and prints the reply as it is written. Raises `ReplyFailed` where the server
        says that there is none, `CallFailed` if the connection breaks or time runs out."""
        from orchestrator.clients.exchange import Answered, Answering, Exchange, Noticed

        exchange = Exchange(plays=False)
        exchange.expect_reply()
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self._socket.send({"type": "conversation.item.create", "item": item})
        if not self._answers_by_itself:
            await self._socket.send({"type": "response.create"})
        async with _patience(self._timeout_s, "a complete reply"):
            while exchange.replies == 0 or not exchange.is_settled(time.monotonic()):
                for news in exchange.receive(await self._socket.receive(), time.monotonic()):
                    match news:
                        case Answering(delta, _):
                            typer.echo(delta, nl=False)
                        case Answered(note):
                            typer.echo(f" ({note})" if note else "")
                        case Noticed(note):
                            typer.echo(f"({note})", err=True)
                        case _:
                            pass
                if exchange.failure is not None:
                    raise ReplyFailed(exchange.failure)


@asynccontextmanager
async def _patience(timeout_s: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError:
        _fail(f"no sign of {what} within {timeout_s:.0f} s")


def _fail(why: str) -> NoReturn:
    from orchestrator.clients.address import CallFailed

    raise CallFailed(why)
