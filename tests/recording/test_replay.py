"""Exact replay: equal where nothing changed, and every change is found and shown."""

import time
from collections.abc import Callable

import msgspec
import pytest

from orchestrator.clock import US_PER_S
from orchestrator.recording.journal import Journal, read
from orchestrator.recording.lines import contents, seal
from orchestrator.recording.replay import MOST_DIFFERENCES, NotReplayable, replay
from orchestrator.recording.scribe import Opening, Scribe
from orchestrator.recording.written_rules import read_rules, write_rules
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.rules import SessionRules
from tests.recording.hour import hour_of_talk
from tests.recording.test_journal import spoken_turn
from tests.sessions.talk import view


def edited(change: dict[str, str]) -> Journal:
    """A recorded turn with texts of its lines replaced."""
    lines = []
    for content in contents(bytes(spoken_turn().data)):
        text = content.decode()
        for old, new in change.items():
            text = text.replace(old, new)
        lines.append(seal(text.encode()))
    return read(b"".join(lines), name="edited")


def test_replay_of_an_untouched_recording_is_equal() -> None:
    """Every effect and every standing is the recorded one; something was compared."""
    replayed = replay(spoken_turn().journal())
    assert replayed.is_equal
    assert replayed.steps > 10
    assert replayed.effects > 10


def test_replay_finds_another_transcript() -> None:
    """Where an input was changed, the first difference names the line, the time and both texts."""
    journal = edited({'"job_id":"job_T000001","text":"hello"': '"job_id":"job_T000001","text":"yellow"'})
    replayed = replay(journal)
    assert not replayed.is_equal
    first = replayed.differences[0]
    assert "ReportCame" in first.about
    assert "hello" in first.expected
    assert "yellow" in first.got
    assert first.line > 2
    assert first.at_us > 0


def test_replay_finds_a_changed_rule() -> None:
    """A heart with other numbers does other things: its deadlines differ from the first step on."""
    replayed = replay(
        edited(
            {
                f'"grace_us":{30 * US_PER_S}': '"grace_us":7',
                '"max_session_us":3600000000': '"max_session_us":9000000',
            }
        )
    )
    assert not replayed.is_equal
    assert "stands" in replayed.differences[0].about


def test_replay_stops_listing_after_the_first_differences() -> None:
    """Hearts that have parted differ in everything: a list of thousands helps nobody."""
    replayed = replay(edited({'"detail"': '"d"', '["Emit","': '["Emit","0'}))
    assert len(replayed.differences) <= MOST_DIFFERENCES


def test_replay_finds_an_effect_that_is_missing_or_new() -> None:
    """An effect more or less on either side is shown as nothing against something."""
    lines = [msgspec.json.decode(content) for content in contents(bytes(spoken_turn().data))]
    number = next(n for n, line in enumerate(lines) if line.get("do"))
    gone = lines[number]["do"].pop()
    replayed = replay(read(b"".join(seal(msgspec.json.encode(line)) for line in lines)))
    (difference,) = replayed.differences
    assert difference.line == number + 1
    assert difference.expected == ""
    assert difference.got.startswith(gone[0])


def test_replay_of_a_heart_that_failed_expects_it_to_fail() -> None:
    """A recorded fault of ours is reproduced, or the replay says that it is gone."""
    lines = [msgspec.json.decode(content) for content in contents(bytes(spoken_turn().data))]
    number = next(n for n, line in enumerate(lines) if line.get("do"))
    lines[number]["do"] = None
    replayed = replay(read(b"".join(seal(msgspec.json.encode(line)) for line in lines[: number + 1])))
    (difference,) = replayed.differences
    assert (difference.expected, difference.got) == ("failed", "went on")


def test_a_recording_without_its_text_is_refused_in_words() -> None:
    """With blanked text a heart does other things: no list of false differences is shown."""
    scribe = Scribe(Opening(view(), SessionRules(), "T", "", 0, ("text",), bytes(16)))
    with pytest.raises(NotReplayable, match="blanked"):
        replay(read(scribe.header()))


def test_rules_come_back_as_they_were() -> None:
    """All numbers of a session are in its recording; what is not written is as today."""
    rules = SessionRules(tier=Tier.SILVER, window_us=7, instructions="Be brief.", early_replies=False)
    written = msgspec.json.decode(msgspec.json.encode(write_rules(rules)))
    assert read_rules(written) == rules
    assert read_rules({"window_us": 9, "long_gone": 1}, rules).window_us == 9
    assert read_rules({}, rules) == rules


def test_an_hour_of_conversation_replays_in_seconds(record_property: Callable[[str, object], None]) -> None:
    """An hour with a turn every fifteen seconds is one journal, and replays equal, faster than it was said."""
    tap = hour_of_talk()
    began_s = time.perf_counter()
    replayed = replay(tap.journal())
    took_s = time.perf_counter() - began_s
    record_property("replay_of_an_hour_s", took_s)
    assert replayed.is_equal
    assert replayed.lasted_us > 3_500 * US_PER_S
    assert replayed.steps > 20_000
