"""The log says who a line is about, and never a secret."""

import asyncio
import io
import json
import logging
import queue
from collections.abc import Callable, Iterator

import pytest

from orchestrator.observability import logs
from orchestrator.observability.logs import BLOT, bind, configure, redact

log = logging.getLogger("orchestrator.test")

Written = Callable[[], list[str]]


@pytest.fixture
def untouched_root() -> Iterator[None]:
    """Puts the root logger back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(write: Callable[[], None], level: str = "info", line_format: logs.Format = "json") -> list[str]:
    """What `write` logs."""
    stream = io.StringIO()
    opened = configure(level, line_format, stream)
    try:
        write()
    finally:
        opened.close()
    return stream.getvalue().splitlines()


@pytest.mark.usefixtures("untouched_root")
def test_log_lines_are_json_with_who_they_are_about() -> None:
    """What is bound around a line and what is given with it are fields of it; outside the block they are gone."""

    def write() -> None:
        with bind(session="sess_1", tenant="acme"), bind(link="link_2"):
            log.info("joined %d", 3, extra={"kind": "call"})
        log.warning("alone")

    first, second = (json.loads(line) for line in lines(write))
    assert first["time"].endswith("+00:00")
    del first["time"], second["time"]
    assert first == {
        "level": "info",
        "logger": "orchestrator.test",
        "message": "joined 3",
        "session": "sess_1",
        "tenant": "acme",
        "link": "link_2",
        "kind": "call",
    }
    assert second == {"level": "warning", "logger": "orchestrator.test", "message": "alone"}


@pytest.mark.usefixtures("untouched_root")
def test_log_fields_follow_tasks_and_do_not_mix() -> None:
    """Two sessions that log in turn keep their own names."""

    async def speak(name: str) -> None:
        with bind(session=name):
            for _ in range(3):
                log.info("x")
                await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(speak("a"), speak("b"))

    names = [json.loads(line)["session"] for line in lines(lambda: asyncio.run(both()))]
    assert sorted(names) == ["a", "a", "a", "b", "b", "b"]
    assert names != sorted(names)


@pytest.mark.usefixtures("untouched_root")
@pytest.mark.parametrize("line_format", ["json", "human"])
def test_log_shows_what_people_said_at_debug_only(line_format: logs.Format) -> None:
    """Transcripts and texts as fields are left out above DEBUG, whatever the level of the log is."""

    def write() -> None:
        log.debug("heard", extra={"transcript": "the debug words"})
        log.info("heard", extra={"transcript": "the secret words", "words": 3})

    text = "\n".join(lines(write, "debug", line_format))
    assert "the debug words" in text
    assert "the secret words" not in text
    assert "words" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "GET /v1/realtime%3Fsecret%3Dabc-_1",
            f"GET /v1/realtime%3Fsecret%3D{BLOT}",
        ),
        ("GET /v1/models/%73%2Fsk-0123456789", f"GET /v1/models/%73%2F{BLOT}"),
        (
            "GET /v1/realtime?session_id=s&secret=abc-_1&x=2",
            f"GET /v1/realtime?session_id=s&secret={BLOT}&x=2",
        ),
        ("?key=abc", f"?key={BLOT}"),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {BLOT}"),
        ("realtime, openai-insecure-api-key.abc, x", f"realtime, openai-insecure-api-key.{BLOT}, x"),
        ("made ek_0123456789abcdef", f"made {BLOT}"),
        ("key sk-0123456789abcdef!", f"key {BLOT}!"),
        ("of chorale-session-secret.rs_0-23456789abcdef", f"of chorale-session-secret.{BLOT}"),
        ("a monkey=1 and risk-free words", "a monkey=1 and risk-free words"),
        ("hours_0123456789abcdef, parse_0123456789abcdef", "hours_0123456789abcdef, parse_0123456789abcdef"),
    ],
)
def test_redact_blots_out_keys_and_secrets(text: str, expected: str) -> None:
    """Whatever looks like a credential goes, and nothing else."""
    assert redact(text) == expected


@pytest.mark.usefixtures("untouched_root")
@pytest.mark.parametrize("line_format", ["json", "human"])
def test_log_never_shows_a_secret_wherever_it_stands(line_format: logs.Format) -> None:
    """In the message, in arguments, in fields, in a library's line, and in a traceback."""
    secret = "ek_0123456789abcdef"

    def write() -> None:
        log.info("%s", secret)
        log.info("x", extra={"url": f"ws://h/v1/realtime?secret={secret}"})
        logging.getLogger("some.library").warning("sent 'Authorization: Bearer %s'", secret)
        try:
            raise ValueError(secret)
        except ValueError:
            log.exception("failed")

    text = "\n".join(lines(write, line_format=line_format))
    assert text.count(BLOT) >= 4
    assert secret not in text
    assert "ValueError" in text


@pytest.mark.usefixtures("untouched_root")
def test_log_for_people_is_one_short_line() -> None:
    """Level, where, what, fields; the level below is left out."""

    def write() -> None:
        log.debug("not shown")
        with bind(session="s1"):
            log.info("joined", extra={"code": None, "kind": "call"})

    (line,) = lines(write, line_format="human")
    assert line[13:] == "info    test: joined  [session=s1 kind=call]"


@pytest.mark.usefixtures("untouched_root")
def test_log_for_people_shows_what_would_move_the_cursor() -> None:
    """A client's words cannot colour, clear or overwrite a terminal."""
    (line,) = lines(lambda: log.info("GET /\x1b[2J\r\x9b1A", extra={"client": "a\x07"}), line_format="human")
    assert "GET /\\x1b[2J\\x0d\\x9b1A" in line
    assert "client=a\\x07" in line


def test_log_takes_json_where_nobody_watches() -> None:
    """`auto` on something that is no terminal writes JSON."""
    (line,) = lines(lambda: log.info("x"), line_format="auto")
    assert json.loads(line)["message"] == "x"


@pytest.mark.usefixtures("untouched_root")
def test_slow_reader_costs_lines_and_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full queue drops and counts; logging never waits for the stream."""
    monkeypatch.setattr(logs, "MAX_WAITING_LINES", 2)
    opened = logs.Logs(io.StringIO(), logs.JsonLines())
    hand = opened._hand
    assert isinstance(hand.queue, queue.Queue)
    for _ in range(5):
        hand.handle(logging.makeLogRecord({"msg": "x"}))
    assert opened.dropped == 3
