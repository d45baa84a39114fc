"""Sound becomes utterances: commits, buffers, and detection that is switched off."""

from itertools import pairwise
from typing import Any

import pytest

from orchestrator.scheduling.work import Reply, Transcribe
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Talk

MANUAL: dict[str, Any] = {"audio": {"input": {"turn_detection": None}}}


def extents(talk: Talk) -> list[tuple[int, int]]:
    works = [talk.jobs[job].work for job in talk.finals()]
    return [(work.start, work.stop) for work in works if isinstance(work, Transcribe)]


def test_listener_tells_the_end_of_speech_that_is_committed() -> None:
    """A commit in the middle of detected speech ends it: stopped, committed, added, done, all of one item."""
    talk = Talk()
    talk.hear(800, 0.95)
    talk.client("input_audio_buffer.commit")
    assert talk.types() == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert talk.last("input_audio_buffer.speech_stopped")["audio_end_ms"] == talk.position // 16


def test_listener_begins_an_empty_buffer_when_detection_is_switched_off() -> None:
    """Push-to-talk after minutes of detected silence: only what comes from now on is in the buffer."""
    talk = Talk()
    talk.hear(10_000, 0.02)
    talk.update(**MANUAL)
    pressed = talk.position
    assert talk.heart.keep_from == pressed
    talk.hear(1_000, 0.95)
    talk.client("input_audio_buffer.commit")
    assert extents(talk) == [(pressed, talk.position)]


def test_listener_keeps_open_speech_in_the_buffer_when_detection_is_switched_off() -> None:
    """The words before the switch are committed with those after it."""
    talk = Talk()
    talk.speak()
    talk.hear(5_000, 0.02)
    talk.hear(640, 0.95)
    start = talk.last("input_audio_buffer.speech_started")["audio_start_ms"] * 16
    talk.update(**MANUAL)
    talk.hear(640, 0.95)
    talk.client("input_audio_buffer.commit")
    assert extents(talk)[-1] == (start, talk.position)


def test_listener_commits_no_sound_that_is_about_to_be_overwritten() -> None:
    """A buffer longer than the ring: its oldest second is left out, since sound goes on meanwhile."""
    talk = Talk(rules=SessionRules(buffer_s=10))
    talk.update(**MANUAL)
    talk.hear(30_000, 0.02)
    talk.client("input_audio_buffer.commit")
    ((start, stop),) = extents(talk)
    assert stop == talk.position
    assert stop - start == 9 * 16_000


@pytest.mark.parametrize("order", ["failed first", "failed last"])
def test_listener_failure_of_one_part_spoils_no_turn(order: str) -> None:
    """Of two parts of one turn one cannot be transcribed: one response, and it answers the other."""
    talk = Talk(rules=SessionRules(max_utterance_s=3))
    talk.hear(4_000, 0.95)
    talk.hear(700, 0.01)
    first, second = talk.finals()
    if order == "failed first":
        talk.failed(first)
        talk.transcribed("the rest", second)
    else:
        talk.transcribed("the rest", first)
        talk.failed(second)
    assert talk.prompt()[-1] == ("user", "the rest")
    assert len(talk.all("response.created")) == 1


def test_listener_failure_of_all_parts_is_told_once() -> None:
    """A turn of which nothing is known fails as one response."""
    talk = Talk(rules=SessionRules(max_utterance_s=3))
    talk.hear(4_000, 0.95)
    talk.hear(700, 0.01)
    for job in talk.finals():
        talk.failed(job)
    assert [e["response"]["status"] for e in talk.all("response.done")] == ["failed"]
    assert not talk.open_jobs(Reply)


def test_listener_shows_plain_clients_no_words_before_their_item() -> None:
    """What two drafts agreed on is sent behind the item, and with the rest it joins to the transcript."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "x"}}})
    for words in ("Book a table for", "Book a table for two", "Book a table for two people"):
        talk.hear(500, 0.95)
        talk.transcribed(words, talk.open_jobs(Transcribe)[0])
    deltas = "conversation.item.input_audio_transcription.delta"
    assert not talk.all(deltas)
    talk.hear(700, 0.01)
    assert [e["delta"] for e in talk.all(deltas)] == ["Book a table for two"]
    talk.transcribed("Book a table for two people.")
    assert "".join(e["delta"] for e in talk.all(deltas)) == "Book a table for two people."


def test_listener_drafts_one_at_a_time_and_not_without_end() -> None:
    """A draft is due every 400 ms of sound and only for the first 20 s: it hears all from the start again."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "x"}}})
    starts = []
    for _ in range(30 * 1_000 // 32):
        talk.hear(32, 0.95)
        for job in talk.open_jobs(Transcribe):
            starts.append(talk.position)
            talk.transcribed("one", job)
    assert all(later - earlier >= 6_400 for earlier, later in pairwise(starts))
    assert 40 <= len(starts) <= 50


def test_listener_places_speech_on_the_sessions_clock() -> None:
    """Design §4: a call's stream begins 10 s into the session; what was typed before stands before its first word."""
    talk = Talk(kind=LinkKind.CALL)
    talk.wait(5_000)
    talk.typed("typed first")
    talk.wait(5_000)
    talk.speak()
    talk.transcribed("said second")
    assert talk.history() == [("user", "typed first\nsaid second")]


def test_listener_hears_no_new_speech_while_draining() -> None:
    """Who begins to speak when the server goes down keeps it from nothing; what was being said is finished."""
    talk = Talk()
    talk.typed("Hello")
    talk.client("response.create")
    talk.step(on.DrainAsked(int((talk.now_ms + 60_000) * 1_000)))
    talk.hear(600, 0.95)
    assert not talk.all("input_audio_buffer.speech_started")
    assert talk.open_jobs(Reply)


def test_listener_keeps_one_turn_open_from_the_end_of_speech() -> None:
    """Design §4: what follows within the window after the end of long speech is of the same turn."""
    talk = Talk()
    talk.speak(5_000)
    talk.transcribed("Book a table")
    first = talk.heart.turn
    talk.hear(300, 0.95)
    assert talk.heart.turn is first
    talk.hear(3_000, 0.01)
    talk.transcribed("for two")
    talk.hear(300, 0.95)
    assert talk.heart.turn is not first


def test_listener_ends_a_semantic_turn_when_its_words_show_that_it_is_complete() -> None:
    """A draft of all that was said decides: a finished sentence ends at once, one that hangs waits on. A draft that
    missed the last words decides nothing, though it may look finished."""
    for words, ended in (("What time is it?", True), ("I would like to", False)):
        talk = Talk()
        talk.update(audio={"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "medium"}}})
        talk.hear(1_000, 0.95)
        talk.transcribed("What time is it?", talk.open_jobs(Transcribe)[0])
        talk.hear(600, 0.01)
        assert not talk.all("input_audio_buffer.speech_stopped")
        (draft,) = talk.open_jobs(Transcribe)
        talk.transcribed(words, draft)
        assert bool(talk.all("input_audio_buffer.speech_stopped")) == ended


@pytest.mark.parametrize("lost", [True, False])
def test_listener_ends_a_transcription_that_was_promised_though_it_is_switched_off(lost: bool) -> None:
    """Who turns transcription off while words are being recognised still learns how they ended: the item was shown as
    one whose transcript follows. What is said afterwards is not told."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "x"}}})
    talk.speak()
    item_id = talk.last("input_audio_buffer.committed")["item_id"]
    talk.update(audio={"input": {"transcription": None}})
    if lost:
        talk.failed(talk.finals()[0])
    else:
        talk.transcribed("Hello")
    ended = talk.last("conversation.item.input_audio_transcription." + ("failed" if lost else "completed"))
    assert ended["item_id"] == item_id
    before = len(talk.log)
    talk.speak()
    talk.transcribed("Goodbye")
    assert not [name for name in talk.types(since=before) if "transcription" in name]


def test_listener_ends_words_that_were_shown_while_they_were_spoken() -> None:
    """Chorale's own clients see words before there is an item; they see how they end, whatever is switched off."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "x"}}}, chorale={})
    talk.hear(900, 0.95)
    for _ in range(2):
        talk.transcribed("one two three", talk.open_jobs(Transcribe)[0])
        talk.hear(500, 0.95)
    shown = talk.last("conversation.item.input_audio_transcription.delta")["item_id"]
    talk.update(audio={"input": {"transcription": None}})
    talk.hear(700, 0.01)
    talk.transcribed("one two three four")
    assert talk.last("conversation.item.input_audio_transcription.completed")["item_id"] == shown
