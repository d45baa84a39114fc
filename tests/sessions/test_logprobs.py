"""How sure the recogniser was, for clients that ask."""

from math import exp
from typing import Any

import pytest

from orchestrator.scheduling.work import Transcribed, WordFound
from orchestrator.sessions.logprobs import logprobs_of
from tests.sessions.talk import Talk, view

ASKED: dict[str, Any] = {"include": ["item.input_audio_transcription.logprobs"]}
WORDS = (WordFound("Guten", 0.0, 0.4, 0.9), WordFound(" Tag…", 0.4, 0.8, 0.0))
COMPLETED = "conversation.item.input_audio_transcription.completed"


def heard(words: tuple[WordFound, ...], text: str = "Guten Tag…", **session: Any) -> dict[str, Any]:
    """Returns what is told of a spoken turn in the end."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "whisper-1"}}}, **session)
    talk.speak()
    job_id = talk.finals()[0]
    del talk.jobs[job_id]
    talk.report(Transcribed(job_id, text, words))
    return talk.last(COMPLETED)


def test_words_are_told_with_their_probability_to_who_asks() -> None:
    """Token by token: the word, its bytes, and a logarithm that JSON can write."""
    first, second = heard(WORDS, **ASKED)["logprobs"]
    assert (first["token"], bytes(first["bytes"]).decode()) == ("Guten", "Guten")
    assert exp(first["logprob"]) == pytest.approx(0.9, abs=1e-3)
    assert bytes(second["bytes"]).decode() == " Tag…"
    assert -25 < second["logprob"] < -15


def test_a_recogniser_that_knows_no_words_says_so() -> None:
    """Null: it was asked for, and cannot be told."""
    assert heard((), **ASKED)["logprobs"] is None


def test_nobody_is_told_who_did_not_ask() -> None:
    """A plain client sees no such field."""
    assert "logprobs" not in heard(WORDS)


def test_words_that_stand_in_place_of_the_recognised_ones_have_no_probability() -> None:
    """What was settled otherwise was not recognised so."""
    report = Transcribed("j", " Guten Tag… ", WORDS)
    asked = view(include=tuple(ASKED["include"]))
    assert logprobs_of(asked, report, "Guten Tag…")
    assert logprobs_of(asked, report, "Guten Abend…") is None
    assert logprobs_of(asked, None, "Guten Tag…") is None
