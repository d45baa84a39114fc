"""`chorale chat` against a real server that answers by rote."""

import os
import pty
import signal
import subprocess
import sys

import pytest
from msgspec import UNSET, structs
from typer.testing import CliRunner, Result

from orchestrator.cli import chat
from orchestrator.cli.main import app
from orchestrator.wire.client import CreateItem, CreateResponse
from orchestrator.wire.items import InputText, Message
from tests.clients.answering import AnsweringSession, answering

REPLY = "It is twelve o'clock.\n"


def run(*arguments: str, stdin: str | None = None, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(app, ["chat", *arguments], input=stdin)


def test_a_question_is_answered_on_standard_output() -> None:
    """The reply, and nothing else."""
    with answering() as server:
        result = run("What time is it?", "--url", server.url)
    assert result.exit_code == 0, result.output
    assert result.stdout == REPLY


def test_the_server_may_be_named_by_the_environment() -> None:
    """As the samples have it: `CHORALE_URL`, beside `CHORALE_API_KEY`."""
    with answering() as server:
        result = run("What time is it?", CHORALE_URL=server.url)
    assert result.exit_code == 0, result.output
    assert result.stdout == REPLY


def test_a_question_may_come_from_standard_input() -> None:
    """Where there is no terminal."""
    with answering() as server:
        result = run("--url", server.url, stdin="What time is it?\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == REPLY


def test_a_conversation_goes_on_until_the_input_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Line by line in one session; empty lines are not sent."""
    lines = iter(["First?", "  ", "Second?", None])

    async def next_line() -> str | None:
        return next(lines)

    monkeypatch.setattr(chat, "_next_line", next_line)
    monkeypatch.setattr("sys.stdin", Terminal())
    with answering() as server:
        chat.chat(url=server.url, text=None, key=None, model=None, instructions=None, timeout=20)
    assert next(lines, "all") == "all"
    items = [event.item for event in server.session.submitted if isinstance(event, CreateItem)]
    assert [structs.replace(item, id=UNSET) for item in items] == [
        Message("user", (InputText("First?"),)),
        Message("user", (InputText("Second?"),)),
    ]


def test_a_conversation_goes_on_behind_a_reply_that_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is told, and the next line is asked."""
    lines = iter(["First?", "Second?", None])

    async def next_line() -> str | None:
        return next(lines)

    monkeypatch.setattr(chat, "_next_line", next_line)
    monkeypatch.setattr("sys.stdin", Terminal())
    with answering("fails") as server:
        chat.chat(url=server.url, text=None, key=None, model=None, instructions=None, timeout=20)
    assert capsys.readouterr().err.count("the model is gone") == 2


class Terminal:
    """Standard input as a person has it."""

    def isatty(self) -> bool:
        return True


def _as_from_a_shell() -> None:
    """Ctrl-C counts: whoever runs the tests in the background may ignore it, and programs inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def test_a_person_at_a_terminal_is_asked_answered_and_may_leave_by_ctrl_c() -> None:
    """A line is answered as soon as it is typed; Ctrl-C while nothing is typed ends the command at once: 130."""
    with answering() as server:
        ours, theirs = pty.openpty()
        source = "from orchestrator.cli.main import main; main()"
        command = [sys.executable, "-X", "faulthandler", "-c", source, "chat", "--url", server.url]
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, preexec_fn=_as_from_a_shell
        ) as chatting:
            os.close(theirs)
            try:
                read_until(ours, b"you> ")
                os.write(ours, b"What time is it?\n")
                assert b"It is twelve o'clock." in read_until(ours, b"you> ")
                chatting.send_signal(signal.SIGINT)
                assert chatting.wait(60) == 130
            except subprocess.TimeoutExpired:
                chatting.send_signal(signal.SIGABRT)  # tells in which line it hangs
                pytest.fail(f"Ctrl-C was not followed: {chatting.communicate()[1].decode()}")
            finally:
                chatting.kill()
                os.close(ours)


def read_until(terminal: int, end: bytes) -> bytes:
    """Reads what a command writes to a terminal, up to a prompt."""
    seen = b""
    while not seen.endswith(end):
        seen += os.read(terminal, 4096)
    return seen


def test_the_reply_comes_as_it_is_written() -> None:
    """The command prints each piece at once: with standard output in a pipe, too."""
    with answering() as server:
        source = "from orchestrator.cli.main import main; main()"
        command = [sys.executable, "-c", source, "chat", "Hello", "--url", server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, REPLY), done.stderr


@pytest.mark.parametrize(("mood", "words"), [("refuses", "no more today"), ("fails", "the model is gone")])
def test_a_reply_that_fails_is_exit_code_1_and_a_reason(mood: str, words: str) -> None:
    """What the server said about it is what the user reads."""
    with answering(mood) as server:
        result = run("Hello", "--url", server.url)
    assert result.exit_code == 1
    assert words in result.stderr


def test_a_server_that_is_away_is_said_so() -> None:
    """With the command that starts one."""
    result = run("Hello", "--url", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "connection refused" in result.stderr
    assert "chorale serve" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"), [((" ",), "empty"), (("Hello", "--url", "nowhere"), "not a server's URL")]
)
def test_a_wrong_command_is_exit_code_2(arguments: tuple[str, ...], words: str) -> None:
    """Before anything is sent."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_settings_reach_the_session() -> None:
    """Text is asked for, typed turns are on, instructions are passed on."""
    with answering() as server:
        result = run("Hello", "--url", server.url, "--instructions", "Be brief.", "--model", "small")
    assert result.exit_code == 0, result.output
    view = server.session.view
    assert (view.output_modalities, view.instructions, view.model) == (("text",), "Be brief.", "small")
    assert view.chorale.typed_turns  # type: ignore[union-attr]
    assert not any(isinstance(event, CreateResponse) for event in server.session.submitted)


def test_a_reply_whose_connection_breaks_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """F-C1: the connection is made again, the reply goes on where it was, and somebody is told."""
    say = AnsweringSession._say

    def break_off(session: AnsweringSession, kind: str, **fields: object) -> None:
        say(session, kind, **fields)
        if kind.endswith("text.delta"):
            for link in list(session.links.values()):
                link.close(1011, "something broke")

    monkeypatch.setattr(AnsweringSession, "_say", break_off)
    with answering() as server:
        result = run("What time is it?", "--url", server.url)
    assert result.exit_code == 0, result.output
    assert result.stdout == REPLY
    assert "something broke" in result.stderr
    assert "coming back" in result.stderr
