"""What of a long conversation is put to the model."""

from typing import Any

import pytest
from msgspec import Raw

from orchestrator.scheduling.work import Reply
from orchestrator.sessions.truncation import AUTO, Truncation, truncation_of
from tests.sessions.talk import Talk

WORDS = "w" * 984
"""A thousand characters, as a prompt counts them."""


def said(talk: Talk, messages: int) -> None:
    for number in range(messages):
        talk.typed(f"{number:03} {WORDS[4:]}")


def newest(talk: Talk) -> str:
    """The number of the oldest message in the last prompt."""
    work = [job.work for job in talk.jobs.values() if isinstance(job.work, Reply)][-1]
    return work.messages[-1].content[:3]


def retention(ratio: float, **limits: Any) -> dict[str, Any]:
    more = {"token_limits": limits} if limits else {}
    return {"type": "retention_ratio", "retention_ratio": ratio, **more}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("auto", AUTO),
        ("disabled", Truncation(share=None)),
        (Raw(b'{"type":"retention_ratio","retention_ratio":0.5}'), Truncation(share=0.5)),
        (
            Raw(b'{"type":"retention_ratio","retention_ratio":1,"token_limits":{"post_instructions":100}}'),
            Truncation(400, 1.0),
        ),
    ],
)
def test_truncation_of_what_a_session_says(written: Raw | str, found: Truncation) -> None:
    """Tokens count as four characters each."""
    assert truncation_of(written) == found


@pytest.mark.parametrize(
    ("truncation", "oldest"),
    [("auto", range(1, 8)), (retention(1.0), range(1, 3)), (retention(0.0), range(10, 25))],
)
def test_session_leaves_out_as_much_as_its_client_wants(truncation: Any, oldest: range) -> None:
    """25,000 characters are too long: with a ratio of 1 hardly more than has to leaves, with 0 nearly all."""
    talk = Talk()
    talk.update(truncation=truncation, output_modalities=["text"])
    said(talk, 25)
    talk.client("response.create")
    assert int(newest(talk)) in oldest


def test_session_heeds_a_limit_of_tokens() -> None:
    """1,000 tokens behind the instructions are some 4,000 characters."""
    talk = Talk()
    talk.update(truncation=retention(1.0, post_instructions=1_000), output_modalities=["text"])
    said(talk, 8)
    talk.client("response.create")
    assert int(newest(talk)) in (4, 5)


def test_session_fails_a_response_where_nothing_may_be_left_out() -> None:
    """Not an error, which ends some clients, but a failed response with the protocol's code; shorter, it goes on."""
    talk = Talk()
    talk.update(truncation="disabled", output_modalities=["text"])
    said(talk, 23)
    talk.client("response.create")
    talk.writes("Yes.")
    talk.finishes()
    assert talk.last("response.done")["response"]["status"] == "completed"
    said(talk, 1)
    talk.client("response.create")
    response = talk.last("response.done")["response"]
    assert response["status"] == "failed"
    assert response["status_details"]["error"]["code"] == "context_length_exceeded"
    assert talk.errors() == []
    first = talk.all("conversation.item.added")[0]["item"]["id"]
    talk.client("conversation.item.delete", item_id=first)
    talk.client("response.create", response={"instructions": "Be kind."})
    talk.writes("Yes.")
    talk.finishes()
    assert talk.last("response.done")["response"]["status"] == "completed"
    talk.strict.end()


def test_session_that_may_leave_nothing_out_still_answers_speech_with_a_failure() -> None:
    """A turn that the server answers by itself fails in the same way, once."""
    talk = Talk()
    talk.update(truncation="disabled", output_modalities=["text"])
    said(talk, 25)
    talk.speak()
    talk.transcribed("Hello.")
    talk.wait(5_000)
    assert [event["response"]["status"] for event in talk.all("response.done")] == ["failed"]


def test_a_model_is_told_that_nothing_may_be_left_out() -> None:
    """Its own context may be smaller than what a session counts with: it refuses then, and does not shorten."""
    for truncation, whole in (("auto", False), (retention(0.5), False), ("disabled", True)):
        talk = Talk()
        talk.update(truncation=truncation, output_modalities=["text"])
        talk.typed("Hello")
        talk.client("response.create")
        work = talk.jobs[talk.reply_job()].work
        assert isinstance(work, Reply)
        assert work.whole is whole
