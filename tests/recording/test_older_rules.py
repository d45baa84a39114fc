"""Recordings from before a rule was there replay as they were, whatever the server that replays them does today."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.clock import US_PER_S
from orchestrator.recording.journal import Journal, read
from orchestrator.recording.lines import contents, seal
from orchestrator.recording.replay import replay
from orchestrator.recording.written_rules import recorded_rules, write_rules
from orchestrator.scheduling.work import REFUSED, Failed, Speak
from orchestrator.sessions import events as on
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire.session import Session as SessionView
from tests.recording.memory import MemoryTap
from tests.sessions.talk import Listener, Talk

TODAY = replace(SessionRules(), abandoned_us=3 * US_PER_S)
BEFORE = replace(SessionRules(), gives_way=False, idles=False, returns=False, heeds=False)
KEPT = sorted(Path(__file__).with_name("older").glob("*.jsonl.gz"))
"""Written by the server that knew none of the rules from ``item_bytes`` on. Never to be made anew."""


def recorded(play: Callable[[Talk], None], rules: SessionRules = BEFORE) -> bytes:
    """What a session that goes like that leaves behind."""
    kept: list[MemoryTap] = []

    def listener(view: SessionView, rules: SessionRules) -> Listener:
        kept.append(MemoryTap(view, rules))
        return kept[-1].stepped

    before, Talk.listener = Talk.listener, listener
    try:
        play(Talk(rules=rules))
    finally:
        Talk.listener = before
    return bytes(kept[0].data)


def older(data: bytes) -> Journal:
    """The same recording by a server that did not know these rules."""
    first, *rest = contents(data)
    text = first.decode()
    for rule in ('"gives_way":false,', '"abandoned_us":0,'):
        assert rule in text
        text = text.replace(rule, "")
    return read(b"".join(seal(line) for line in (text.encode(), *rest)), name="older")


def without_sound(talk: Talk) -> None:
    """A sentence is refused, by a server that has the whole response fail then."""
    talk.update(chorale={"events": ["chorale.overload"]})
    talk.client("response.create")
    talk.writes("One is here. Two ")
    (job,) = talk.open_jobs(Speak)
    talk.jobs.pop(job)
    talk.report(Failed(job, REFUSED, "no room", 2.0))
    assert talk.last("response.done")["response"]["status"] == "failed"


def left_alone(talk: Talk) -> None:
    """The client goes away in the middle of an answer, which is made to its end."""
    talk.client("response.create")
    talk.writes("One is here. Two ")
    talk.step(on.LinkLeft("link"))
    talk.wait(10_000)
    talk.answer("is here.")
    assert talk.last("response.done")["response"]["status"] == "completed"


def test_older_recording_with_a_refused_sentence_replays_as_it_was() -> None:
    """Its response failed; today's would complete, and tell of the overload."""
    journal = older(recorded(without_sound))
    assert replay(journal).is_equal
    assert replay(journal, TODAY).is_equal


def test_older_recording_with_an_abandoned_answer_replays_as_it_was() -> None:
    """Its answer was made to the end; today's would be taken back after three seconds."""
    journal = older(recorded(left_alone))
    assert replay(journal).is_equal
    assert replay(journal, TODAY).is_equal


def test_recording_of_today_replays_with_its_own_rules() -> None:
    """What a recording says of a rule stands, also where today's server says otherwise."""

    def play(talk: Talk) -> None:
        talk.client("response.create")
        talk.writes("One is here. Two ")
        talk.step(on.LinkLeft("link"))
        talk.wait(10_000)
        assert talk.last("response.done")["response"]["status"] == "cancelled"

    assert replay(read(recorded(play, TODAY)), BEFORE).is_equal


def test_rules_of_a_recording_are_off_where_it_does_not_know_them() -> None:
    """Off, and not as they are today; what it says stands."""
    assert recorded_rules({}, TODAY) == BEFORE
    assert recorded_rules(write_rules(TODAY), BEFORE) == TODAY


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.partition(".")[0])
def test_recording_that_an_older_server_wrote_replays_as_it_was(path: Path) -> None:
    """To the last byte: of calls that were lost in the middle of an answer or came twice, of clients that went and came
    back, and of wishes that were shown then and are heeded now."""
    journal = read(gzip.decompress(path.read_bytes()), name=path.name)
    replayed = replay(journal)
    assert replayed.is_equal, replayed.differences
    assert replay(journal, TODAY).is_equal


def test_recordings_of_an_older_server_are_there() -> None:
    """Seventeen of them."""
    assert len(KEPT) == 17
