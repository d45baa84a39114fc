from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.hearing import Hearing

Event = Mapping[str, Any]


def spoken(item: str) -> list[Event]:
    return [
        {"type": "input_audio_buffer.speech_started", "item_id": item},
        {"type": "input_audio_buffer.speech_stopped", "item_id": item},
        {"type": "input_audio_buffer.committed", "item_id": item},
    ]


def transcribed(item: str, text: str) -> Event:
    return {
        "type": "conversation.item.input_audio_transcription.completed",
        "item_id": item,
        "transcript": text,
    }


def created(response: str) -> Event:
    return {"type": "response.created", "response": {"id": response}}


def done(response: str, status: str, text: str) -> Event:
    output = [{"type": "message", "content": [{"type": "output_audio", "transcript": text}]}] if text else []
    return {"type": "response.done", "response": {"id": response, "status": status, "output": output}}


def follow(*events: tuple[float, Event], ended_s: float = 1.0) -> Hearing:
    hearing = Hearing()
    hearing.clip_ended(ended_s)
    for now_s, event in events:
        hearing.receive(event, now_s)
    return hearing


def test_a_clip_in_two_utterances_is_one_transcript() -> None:
    """Final transcripts are joined in the order of speech, whichever comes first; the answer that stood counts."""
    events = [(0.5, event) for event in spoken("a")] + [(1.0, created("r1"))]
    events += [(1.1, event) for event in spoken("b")]
    events += [
        (1.2, done("r1", "cancelled", "I")),
        (1.5, transcribed("b", "at seven")),
        (1.6, transcribed("a", "book it")),
    ]
    events += [
        (1.7, created("r2")),
        (2.0, {"type": "output_audio_buffer.started"}),
        (2.4, done("r2", "completed", "Done.")),
    ]
    heard = follow(*events).heard()
    assert (heard.transcript, heard.utterances, heard.reply, heard.outcome) == (
        "book it at seven",
        2,
        "Done.",
        "reply",
    )
    assert (heard.transcript_after_s, heard.reply_after_s) == (0.6, 1.0)


def test_a_hearing_waits_for_what_must_still_come() -> None:
    """It settles only once speech has ended, its transcript and the reply are in, and it has been quiet since."""
    hearing = follow()
    started, stopped, committed = spoken("a")
    steps = [
        (started, False),
        (stopped, False),
        (committed, False),
        (transcribed("a", "hello"), False),
        (created("r"), False),
        (done("r", "completed", "Hi."), True),
    ]
    for second, (event, settles) in enumerate(steps, 2):
        hearing.receive(event, second)
        assert hearing.settled(second + 1.4) is False
        assert hearing.settled(second + 1.6) is settles, event["type"]


def test_a_hearing_gives_up_after_its_patience() -> None:
    """A server that never answers is not waited for for ever, and what is missing is named."""
    hearing = follow(*((1.0, event) for event in spoken("a")))
    assert not hearing.settled(30.9)
    assert hearing.settled(31.0)
    assert hearing.heard().outcome == "transcript missing"


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([], "nothing"),
        ([*spoken("a"), transcribed("a", "")], "no words"),
        ([*spoken("a"), transcribed("a", "hello")], "words"),
        ([{"type": "error", "error": {"code": "invalid_value", "message": "no"}}], "error invalid_value"),
        ([*spoken("a"), transcribed("a", "hi"), created("r"), done("r", "failed", "")], "reply failed"),
        ([*spoken("a"), transcribed("a", "hi"), created("r"), done("r", "incomplete", "Well")], "reply"),
    ],
)
def test_an_outcome_says_what_the_client_was_told(events: list[Event], outcome: str) -> None:
    """Each end of a clip has its own word; nothing that failed passes for a reply."""
    assert follow(*((2.0, event) for event in events)).heard().outcome == outcome
