"""`chorale talk` against a real server that answers by rote."""

import io
import json
import wave
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli import talk
from orchestrator.cli.main import app
from orchestrator.clients.exchange import SIGN_WITHIN_S
from orchestrator.clients.recording import read_recording, write_wav
from orchestrator.transports.auth import LOCAL, Key, KeyRing, digest_of
from tests.clients.answering import WORDS, AnsweringSession, answering
from tests.transports.calling import tone


@pytest.fixture
def question(tmp_path: Path) -> Path:
    """A recording in which somebody says something for half a second."""
    path = tmp_path / "question.wav"
    write_wav(path, tone(0.5, rate_hz=16_000), 16_000)
    return path


@pytest.fixture(autouse=True)
def little_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second around each recording is long for a test."""
    monkeypatch.setattr(talk, "SILENCE_S", 0.1)


def run(*arguments: str, stdin: bytes | None = None, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(app, ["talk", *arguments], input=stdin)


def test_a_recording_is_said_and_the_reply_shown_and_saved(question: Path, tmp_path: Path) -> None:
    """What was understood, as it was, then the reply's words, then its sound in a file; the exit code is 0."""
    out = tmp_path / "reply.wav"
    with answering() as server:
        result = run(str(question), "--url", server.url, "--out", str(out))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("connected: rtc_")
    assert "you …  what" in lines
    assert f"you:   {WORDS}" in lines
    assert "reply: It is twelve o'clock." in lines
    assert lines[-1].startswith(f"saved:  {out}")
    sound = read_recording(out)
    assert np.count_nonzero(np.abs(sound.astype(int)) > 300) * 1.05 > 0.45 * 48_000
    assert len(sound) < 1.2 * 48_000


def test_standard_input_is_a_recording(question: Path, tmp_path: Path) -> None:
    """`-` reads a WAV."""
    with answering() as server:
        result = run("-", "--url", server.url, "--out", str(tmp_path / "r.wav"), stdin=question.read_bytes())
    assert result.exit_code == 0, result.output
    assert WORDS in result.stdout


def test_a_text_is_typed_and_answered_by_voice(tmp_path: Path) -> None:
    """Without a recording."""
    out = tmp_path / "reply.wav"
    with answering() as server:
        result = run("--say", "What time is it?", "--url", server.url, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "reply: It is twelve o'clock." in result.stdout
    with wave.open(str(out)) as file:
        assert (file.getframerate(), file.getnchannels()) == (48_000, 1)


def test_a_text_may_follow_a_recording(question: Path, tmp_path: Path) -> None:
    """Two turns of one call, two replies."""
    with answering() as server:
        result = run(
            str(question), "--say", "And now?", "--url", server.url, "--out", str(tmp_path / "r.wav")
        )
    assert result.exit_code == 0, result.output
    assert result.stdout.count("reply: ") == 2


def test_json_prints_the_events_and_nothing_else(question: Path, tmp_path: Path) -> None:
    """Each line of standard output is an event; remarks go to standard error."""
    with answering() as server:
        result = run(str(question), "--json", "--url", server.url, "--out", str(tmp_path / "r.wav"))
    assert result.exit_code == 0, result.output
    kinds = [json.loads(line)["type"] for line in result.stdout.splitlines()]
    assert kinds[0] == "session.created"
    assert {"input_audio_buffer.speech_started", "response.done", "output_audio_buffer.stopped"} <= set(kinds)
    assert "saved:" in result.stderr


@pytest.mark.parametrize(
    ("mood", "words"), [("refuses", "no more today"), ("fails", "the reply failed: the model is gone")]
)
def test_a_reply_that_fails_is_exit_code_1_and_a_reason(mood: str, words: str, tmp_path: Path) -> None:
    """What the server said about it is what the user reads."""
    with answering(mood) as server:
        result = run("--say", "Hello", "--url", server.url, "--out", str(tmp_path / "r.wav"))
    assert result.exit_code == 1
    assert words in result.stderr


def test_a_reply_that_does_not_come_is_given_up(question: Path, tmp_path: Path) -> None:
    """After `--timeout` seconds."""
    with answering("deaf") as server:
        result = run(str(question), "--timeout", "1", "--url", server.url, "--out", str(tmp_path / "r.wav"))
    assert result.exit_code == 1
    assert "no complete reply within 1 s" in result.stderr


def test_a_recording_without_speech_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of waiting for the whole time-out."""
    monkeypatch.setattr("orchestrator.clients.exchange.SIGN_WITHIN_S", 0.3)
    assert SIGN_WITHIN_S > 5
    write_wav(tmp_path / "silence.wav", np.zeros(8_000, np.int16), 16_000)
    with answering() as server:
        result = run(str(tmp_path / "silence.wav"), "--url", server.url, "--out", str(tmp_path / "r.wav"))
    assert result.exit_code == 1
    assert "heard no speech" in result.stderr


def test_a_key_is_shown_where_one_is_wanted(tmp_path: Path) -> None:
    """By option or environment; without one the refusal says what to do."""
    ring = KeyRing([Key(digest_of("sk-right"), LOCAL)])
    out = str(tmp_path / "r.wav")
    with answering(ring=ring) as server:
        assert run("--say", "Hello", "--url", server.url, "--out", out, "--key", "sk-right").exit_code == 0
        assert (
            run("--say", "Hello", "--url", server.url, "--out", out, CHORALE_API_KEY="sk-right").exit_code
            == 0
        )
        refused = run("--say", "Hello", "--url", server.url, "--out", out)
    assert refused.exit_code == 1
    assert "CHORALE_API_KEY" in refused.stderr


def test_a_server_that_is_away_is_said_so() -> None:
    """With the command that starts one; also where the environment names the server."""
    for result in (
        run("--say", "Hello", "--url", "http://127.0.0.1:9"),
        run("--say", "Hello", CHORALE_URL="http://127.0.0.1:9"),
    ):
        assert result.exit_code == 1
        assert "no server answers at http://127.0.0.1:9" in result.stderr
    assert "chorale serve" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Nothing to say"),
        (("missing.wav",), "Cannot read missing.wav: No such file"),
        ((__file__,), "not a recording that can be read"),
        (("--say", "Hello", "--url", "nowhere"), "not a server's URL"),
        (("--say", "Hello", "--timeout", "0"), "--timeout"),
    ],
)
def test_a_wrong_command_is_exit_code_2(arguments: tuple[str, ...], words: str) -> None:
    """Before anything is called."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_standard_input_that_is_no_recording_is_a_wrong_command() -> None:
    """Its name is in the sentence."""
    result = run("-", stdin=io.BytesIO(b"no sound").getvalue())
    assert result.exit_code == 2
    assert "the input" in result.stderr


def test_a_recording_that_is_cut_off_is_a_failure_and_not_an_endless_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call breaks while the recording is being said: what is left of it is not said in the next call, and the
    command ends with the reason."""
    path = tmp_path / "long.wav"
    write_wav(path, tone(60, rate_hz=16_000), 16_000)
    with answering() as server:

        def cut() -> None:
            for link in list(server.session.links.values()):
                link.close(1011, "something broke")

        speech_started = AnsweringSession.speech_started

        def started(session: AnsweringSession) -> None:
            speech_started(session)
            server.loop.call_soon_threadsafe(cut)

        monkeypatch.setattr(AnsweringSession, "speech_started", started)
        result = run(str(path), "--url", server.url, "--out", str(tmp_path / "r.wav"))
    assert result.exit_code == 1
    assert "while the recording was being said" in result.output
