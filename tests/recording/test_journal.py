"""A journal as a whole: what is written can be read, wherever it was cut off, and by whom it was made."""

import re
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.recording.journal import read
from orchestrator.recording.lines import JournalDamaged, contents, seal
from orchestrator.recording.replay import replay
from orchestrator.recording.sound import Mark
from orchestrator.sessions import events as on
from orchestrator.sessions.rules import SessionRules
from tests.recording.events import EVENTS
from tests.recording.hour import hour_of_talk, recorded
from tests.recording.memory import MemoryTap
from tests.sessions.talk import Talk, view


def spoken_turn() -> MemoryTap:
    """One short conversation, recorded, with its sound."""
    talk, tap = recorded(SessionRules())
    talk.update(output_modalities=["text"])
    talk.speak(400)
    tap.heard((Mark(0, 0, 400, False), Mark(9, 400, 100, False)), np.arange(500, dtype=np.int16))
    talk.transcribed("hello")
    talk.answer("Hi there.")
    talk.step(on.EndAsked("over"))
    return tap


def test_a_journal_cut_at_every_byte_replays_up_to_its_last_whole_line() -> None:
    """A killed server costs at most the line that was being written; the rest is read and replays equal."""
    tap = spoken_turn()
    data, steps = bytes(tap.data), len(list(tap.journal().steps()))
    begins = data.index(b"\n") + 1
    seen = set()
    for cut in range(begins, len(data) + 1):
        journal = read(data[:cut], bytes(tap.sound))
        whole = data[:cut].count(b"\n") - 1
        assert len(journal.contents) == whole
        if whole not in seen or cut == len(data):
            seen.add(whole)
            replayed = replay(journal)
            assert replayed.is_equal
            assert replayed.steps == len(list(journal.steps()))
    assert max(seen) == steps + 1  # and one line of sound
    for cut in range(begins):
        with pytest.raises(JournalDamaged, match="no header"):
            read(data[:cut])


@cache
def conversation() -> MemoryTap:
    """A minute of talk: hundreds of lines."""
    return hour_of_talk(4)


def check_cut(cut: int) -> None:
    """What is whole before a cut is there, and replays equal; nothing else is lost."""
    tap = conversation()
    data = bytes(tap.data)[:cut]
    journal = read(data, bytes(tap.sound))
    assert len(journal.contents) == data.count(b"\n") - 1
    assert journal.torn == (not data.endswith(b"\n"))
    replayed = replay(journal)
    assert replayed.is_equal
    assert replayed.steps == len(list(journal.steps()))


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1))
def test_a_long_journal_cut_anywhere_replays_up_to_its_last_whole_line(share: float) -> None:
    """As above, for a conversation of many lines, wherever the cut is."""
    data = conversation().data
    begins = data.index(b"\n") + 1
    check_cut(begins + int(share * (len(data) - begins)))


def test_every_cut_within_the_last_lines_costs_one_line_at_most() -> None:
    """Where a killed server was writing: each byte of the last three lines."""
    data = bytes(conversation().data)
    begins = len(data) - len(b"".join(data.splitlines(keepends=True)[-3:]))
    whole = data.count(b"\n")
    for cut in range(begins, len(data) + 1):
        journal = read(data[:cut])
        assert len(journal.contents) == data[:cut].count(b"\n") - 1 >= whole - 4
    check_cut(begins + 1)
    check_cut(len(data) - 1)


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=40))
def test_garbage_anywhere_is_refused_with_its_line(share: float, garbage: bytes) -> None:
    """Bytes that are others than those written, in any place: the line is named; the last one is left out."""
    data = bytes(spoken_turn_of_all().data)
    at = int(share * len(data))
    broken = data[:at] + garbage + data[at + len(garbage) :]
    if broken == data:
        return
    lines, at_line = data.count(b"\n"), data[:at].count(b"\n") + 1
    journal, told = None, ""
    try:
        journal = read(broken)
    except JournalDamaged as error:
        told = str(error)
    if journal is None:
        found = re.search(r"line (\d+) |no header", told)
        assert found is not None, told
        assert found[1] is None or int(found[1]) >= at_line
    else:
        assert journal.torn
        assert at_line >= lines
        assert len(journal.contents) >= at_line - 2


@cache
def spoken_turn_of_all() -> MemoryTap:
    return spoken_turn()


def test_sound_that_is_cut_off_costs_its_own_block_only() -> None:
    """The sound of a block that is not whole is silence; the journal is read all the same."""
    tap = spoken_turn()
    (block, pcm), *_ = read(bytes(tap.data), bytes(tap.sound)).blocks
    assert pcm.tolist() == list(range(500))
    first, second = read(bytes(tap.data), bytes(tap.sound)).deliveries()
    assert (first.position, second.position, second.pcm.tolist()) == (0, 400, list(range(400, 500)))
    cut = read(bytes(tap.data), bytes(tap.sound)[: block.bytes - 1])
    assert not any(one.pcm.any() for one in cut.deliveries())


def test_a_journal_of_a_newer_version_is_refused_in_words() -> None:
    """What cannot be understood is not guessed at."""
    header = msgspec.json.decode(next(contents(bytes(spoken_turn().data))))
    newer = seal(msgspec.json.encode({**header, "journal": 99}))
    with pytest.raises(JournalDamaged, match="newer"):
        read(newer)
    with pytest.raises(JournalDamaged, match="no journal"):
        read(seal(b'{"n":0,"other":1}'))


def test_unknown_members_are_passed_over() -> None:
    """A later server may write more than this one knows of."""
    tap = spoken_turn()
    lines = [msgspec.json.decode(content) for content in contents(bytes(tap.data))]
    more = b"".join(seal(msgspec.json.encode({**line, "later": [1]})) for line in lines)
    assert replay(read(more)).is_equal


@settings(max_examples=40)
@given(st.lists(EVENTS, max_size=12), st.integers(0, 2**40))
def test_any_list_of_events_round_trips(happened: list[on.Event], now: int) -> None:
    """Whatever happened, in whatever order, is read as it was: events, times, and that the heart failed."""
    tap = MemoryTap(view(), SessionRules())
    heart = Talk().heart
    for number, event in enumerate(happened):
        tap.stepped(event, now + number, None if number % 3 == 2 else (), heart)
    steps = list(tap.journal().steps())
    assert [step.event for step in steps] == happened
    assert [step.now for step in steps] == [now + number for number in range(len(happened))]
    assert [step.done is None for step in steps] == [number % 3 == 2 for number in range(len(happened))]


def test_a_line_that_is_no_event_is_told() -> None:
    """A journal that is whole but not ours, or by another version, names the line."""
    tap = spoken_turn()
    lines = [msgspec.json.decode(content) for content in contents(bytes(tap.data))]
    lines[2]["on"] = "NoSuchThing"
    with pytest.raises(JournalDamaged, match="line 3 "):
        list(read(b"".join(seal(msgspec.json.encode(line)) for line in lines)).steps())
