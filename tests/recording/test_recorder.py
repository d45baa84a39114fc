"""Which sessions are recorded, seen from real sessions on virtual time; and that they do not notice."""

import asyncio
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import WireError
from orchestrator.recording.journal import Journal, load
from orchestrator.recording.recorder import MOST_HELD, RecordingSettings, SessionRecorder
from orchestrator.recording.replay import replay
from orchestrator.recording.writer import Room
from orchestrator.scheduling.work import Transcribed
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from tests.recording.house import in_recorded_house
from tests.sessions.running import SILENCE, SPEECH, House, client, spoken

ROOM = Room(10**8, 10**9, None)
AGREES = {"type": "realtime", "chorale": {"record": True}}
DECLINES = {"type": "realtime", "chorale": {"record": False}}


def record(
    folder: Path, test: Callable[[House], Awaitable[None]], everyone: bool = False, **more: Any
) -> list[Journal]:
    """Runs `test` in a house that records; returns what it recorded."""
    in_recorded_house(test, SessionRecorder(RecordingSettings(folder, everyone, ROOM, **more)))
    return [load(path) for path in sorted(folder.glob("*.jsonl"))]


def test_a_session_that_agrees_is_recorded_whole_and_replays(tmp_path: Path) -> None:
    """A spoken turn through intake, detector, workers and back is in the journal with its sound, from the first event
    on, and replays equal."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "session.update", session=AGREES)
        await spoken(session)
        await asyncio.sleep(5)

    (journal,) = record(tmp_path, test)
    steps = list(journal.steps())
    assert isinstance(steps[0].event, on.LinkJoined)
    replayed = replay(journal)
    assert replayed.is_equal
    assert replayed.effects > 20
    assert journal.end == "closed"
    sound = np.concatenate([one.pcm for one in journal.deliveries()])
    assert np.array_equal(sound, np.concatenate([SPEECH, SILENCE]))
    at_us = [one.at_us for one in journal.deliveries()]
    assert at_us == sorted(at_us)
    assert len(at_us) == 100


def test_who_says_nothing_is_recorded_where_the_configuration_says_so(tmp_path: Path) -> None:
    """`enabled` records everyone but those who decline; without it only those who agree."""

    async def test(house: House) -> None:
        silent, _ = house.open()
        await client(silent, "session.update", session={"type": "realtime"})
        declining, _ = house.open()
        await client(declining, "session.update", session=DECLINES)
        await asyncio.sleep(1)

    assert len(record(tmp_path / "everyone", test, everyone=True)) == 1
    assert record(tmp_path / "asked", test) == []


def test_an_agreement_that_is_taken_back_removes_the_recording(tmp_path: Path) -> None:
    """Later `record: false` leaves nothing, and the session goes on."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "session.update", session=AGREES)
        await client(session, "session.update", session=DECLINES)
        await client(session, "session.update", session=AGREES)
        assert link.types().count("session.updated") == 3

    assert record(tmp_path, test) == []


def test_an_agreement_that_comes_too_late_records_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A recording has the whole session or nothing: once more has happened than is held, it is too late."""

    async def test(house: House) -> None:
        session, _ = house.open()
        for _ in range(MOST_HELD + 1):
            await client(session, "input_audio_buffer.clear")
        await client(session, "session.update", session=AGREES)
        await asyncio.sleep(1)

    with caplog.at_level(logging.WARNING, "chorale.recording"):
        assert record(tmp_path, test) == []
    assert "asked too late" in caplog.text


def test_a_caller_who_hangs_up_leaves_his_last_words_in_the_recording(tmp_path: Path) -> None:
    """F-T2: what was being recognised when the call ended is drained into the journal."""

    async def test(house: House) -> None:
        session, _ = house.open(LinkKind.CALL)
        await client(session, "session.update", session=AGREES)
        for start in range(0, 16_000, 320):
            session.intake.append_at(start, SPEECH[start : start + 320])
            await asyncio.sleep(0.02)
        session.detach("link")
        house.registry.end(session, "hang-up")
        await asyncio.sleep(3)
        assert len(house.registry) == 0

    (journal,) = record(tmp_path, test)
    steps = list(journal.steps())
    ended = next(n for n, step in enumerate(steps) if isinstance(step.event, on.EndAsked))
    late = [step.event.report for step in steps[ended:] if isinstance(step.event, on.ReportCame)]
    assert any(isinstance(report, Transcribed) and report.text == "hello" for report in late)
    assert replay(journal).is_equal
    assert journal.end == "closed"


def test_sound_inside_a_clients_item_is_recorded_by_its_name(tmp_path: Path) -> None:
    """Hearts know such sound by name only; the recording has its samples."""

    async def test(house: House) -> None:
        from base64 import b64encode

        session, _ = house.open()
        await client(session, "session.update", session=AGREES)
        sound = b64encode(np.full(24_000, 5_000, "<i2").tobytes()).decode()
        part = {"type": "input_audio", "audio": sound}
        item = {"type": "message", "role": "user", "content": [part]}
        await client(session, "conversation.item.create", item=item)
        await asyncio.sleep(2)

    (journal,) = record(tmp_path, test)
    (clip,) = journal.clips().values()
    assert abs(len(clip) - 16_000) < 16
    assert replay(journal).is_equal


def test_a_session_whose_recording_fails_does_not_notice(tmp_path: Path) -> None:
    """The recording stops at its bound; the turn is answered all the same."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "session.update", session=AGREES)
        await spoken(session)
        await asyncio.sleep(5)
        assert "response.done" in link.types()

    in_recorded_house(test, SessionRecorder(RecordingSettings(tmp_path, False, Room(2_000, 10**9, None))))
    (path,) = tmp_path.glob("*.jsonl")
    assert load(path).end == "it has reached 2000 bytes"


def test_a_heart_that_fails_is_recorded_with_the_event_it_failed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line of such a recording is what broke it: replaying it breaks again."""
    from orchestrator.sessions.listening import Listener

    def broken(self: Listener, position: int) -> None:
        raise AssertionError("our fault")

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "session.update", session=AGREES)
        await client(session, "input_audio_buffer.clear")
        await asyncio.sleep(1)

    monkeypatch.setattr(Listener, "clear", broken)
    (journal,) = record(tmp_path, test)
    *_, last = journal.steps()
    assert last.done is None
    assert isinstance(last.event, on.ClientSaid)
    assert replay(journal).is_equal
    monkeypatch.undo()
    (difference,) = replay(journal).differences
    assert (difference.expected, difference.got) == ("failed", "went on")


def test_text_that_is_to_be_blanked_is_not_on_the_disk(tmp_path: Path) -> None:
    """`redact: [text, sound]`: neither words nor samples are written, the times are."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "session.update", session=AGREES)
        await spoken(session)
        await asyncio.sleep(5)

    (journal,) = record(tmp_path, test, redact=("text", "sound"))
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"You said" not in written
    assert not any(one.pcm.any() for one in journal.deliveries())
    assert len(list(journal.steps())) > 10


PRIVATE = ("zanzibar", "quokka", "mulberry", "obelisk", "teapot", "gondola", "You said", "hello")
"""Typed, filled in, called for, answered by a tool, instructed, in a message that is refused, replied, heard."""


def traces(words: str) -> list[bytes]:
    """How words may stand in a file: as they are, in other letters, as hexadecimal digits, and within base64."""
    plain = words.encode()
    found = [plain, plain.upper(), plain.hex().encode(), words.encode("utf-16-le")]
    for shift in range(3):
        encoded = b64encode(bytes(shift) + plain)
        found.append(encoded[4 if shift else 0 : len(encoded) // 4 * 4 - 4])
    return [one for one in found if len(one) > 4]


def test_nobodys_words_are_found_in_a_blanked_recording(tmp_path: Path) -> None:
    """Who looks for a word in names, lines and sound finds it in the recording that has everything, and in no form in
    the one that is blanked; digests that could be tried with guesses are others."""

    async def test(house: House) -> None:
        session, _ = house.open()
        tool = {"type": "function", "name": "mulberry", "description": "mulberry", "parameters": {}}
        view = {**AGREES, "instructions": "teapot", "tools": [tool]}
        await client(session, "session.update", session=view)
        for text in ("zanzibar", "and zanzibar again, for 15"):
            part = {"type": "input_text", "text": text}
            item = {"type": "message", "role": "user", "content": [part]}
            await client(session, "conversation.item.create", item=item)
        await client(
            session, "chorale.token", intent="quokka", slots=[{"name": "quokka", "value": "quokka quokka"}]
        )
        call = {"type": "function_call", "call_id": "c1", "name": "mulberry", "arguments": '{"a":"mulberry"}'}
        await client(session, "conversation.item.create", item=call)
        result = {"type": "function_call_output", "call_id": "c1", "output": '{"obelisk": 1}'}
        await client(session, "conversation.item.create", item=result)
        session.refuse("link", WireError("invalid_value", "gondola is no item", "gondola of mine"), None)
        await spoken(session)
        await client(
            session, "response.create", response={"instructions": "teapot", "metadata": {"a": "teapot"}}
        )
        await asyncio.sleep(8)

    (whole,) = record(tmp_path / "whole", test)
    (blank,) = record(tmp_path / "blank", test, redact=("text", "sound"))
    everything = held(tmp_path / "whole")
    for words in PRIVATE:
        assert words.encode() in everything, words
        for trace in traces(words):
            assert trace.lower() not in held(tmp_path / "blank").lower(), (words, trace)
    digests = {step.standing.committed for step in whole.steps() if step.standing is not None}
    others = {step.standing.committed for step in blank.steps() if step.standing is not None}
    assert len(digests) > 1
    assert len(others) == len(digests)
    assert not digests & others
    done = {one.digest for step in whole.steps() for one in step.done or ()}
    assert not done & {one.digest for step in blank.steps() for one in step.done or ()}
    assert not any(path.stat().st_size for path in (tmp_path / "blank").glob("*.sound"))


def held(folder: Path) -> bytes:
    """Returns all that a folder says, names too."""
    return b"".join(path.name.encode() + path.read_bytes() for path in folder.iterdir())
