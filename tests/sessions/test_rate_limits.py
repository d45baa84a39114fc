"""What a client is told of its tenant's quotas, and words that are too long for one delta."""

from orchestrator.scheduling.work import LimitLeft, Replied, ReplyCall
from orchestrator.wire.splitting import MAX_DELTA_CHARACTERS
from tests.sessions.talk import Talk

TEXT = {"output_modalities": ["text"]}


def test_session_tells_what_may_still_be_used_after_a_response() -> None:
    """Once, behind `response.done`, in the numbers that came with the reply; where there are no quotas, nothing."""
    talk = Talk()
    talk.update(**TEXT)
    talk.client("response.create")
    limits = (LimitLeft("requests", 60, 59, 1.0), LimitLeft("tokens", 1_000, 985, 0.9))
    talk.writes("Yes.")
    job_id = talk.reply_job()
    del talk.jobs[job_id]
    talk.report(Replied(job_id, "stop", 10, 0, 5, limits))
    assert [event["type"] for event in talk.log[-2:]] == ["response.done", "rate_limits.updated"]
    assert talk.log[-1]["rate_limits"] == [
        {"name": "requests", "limit": 60, "remaining": 59, "reset_seconds": 1.0},
        {"name": "tokens", "limit": 1_000, "remaining": 985, "reset_seconds": 0.9},
    ]
    talk.client("response.create")
    talk.finishes()
    assert len(talk.all("rate_limits.updated")) == 1


def test_session_splits_words_and_arguments_that_are_too_long_for_one_delta() -> None:
    """A model that writes a book at once: its deltas joined are the book."""
    talk = Talk()
    talk.update(**TEXT)
    talk.client("response.create")
    book = "word " * (MAX_DELTA_CHARACTERS // 2)
    talk.writes(book)
    arguments = '{"text": "' + book + '"}'
    talk.report(ReplyCall(talk.reply_job(), 0, arguments, "keep"))
    talk.finishes("tool_calls")
    for name, whole in (("output_text", book), ("function_call_arguments", arguments)):
        deltas = [event["delta"] for event in talk.all(f"response.{name}.delta")]
        assert len(deltas) == 3
        assert max(map(len, deltas)) == MAX_DELTA_CHARACTERS
        assert "".join(deltas) == whole
