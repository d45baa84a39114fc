"""Responses outside of the conversation."""

from orchestrator.scheduling.work import Replied, Reply
from orchestrator.sessions.asking import MAX_ASIDES
from tests.sessions.talk import Talk

ASIDE = {"conversation": "none", "output_modalities": ["text"]}


def test_asides_are_bounded_and_one_more_fails_at_once() -> None:
    """The seventeenth is told as failed, with the reason; no job is made for it, and the conversation goes on."""
    talk = Talk()
    for number in range(MAX_ASIDES + 1):
        talk.client("response.create", response={**ASIDE, "metadata": {"number": str(number)}})
    assert len(talk.open_jobs(Reply)) == MAX_ASIDES
    (failed,) = [event["response"] for event in talk.all("response.done")]
    assert (failed["status"], failed["metadata"]) == ("failed", {"number": str(MAX_ASIDES)})
    assert failed["status_details"]["error"]["code"] == "rate_limit_exceeded"
    talk.client("response.create", response={"output_modalities": ["text"]})
    assert len(talk.open_jobs(Reply)) == MAX_ASIDES + 1
    assert talk.errors() == []


def test_an_aside_that_ends_makes_room_for_another() -> None:
    """However it ends."""
    talk = Talk()
    for _ in range(MAX_ASIDES):
        talk.client("response.create", response=ASIDE)
    first = talk.open_jobs(Reply)[0]
    del talk.jobs[first]
    talk.report(Replied(first, "stop", 10, 0, 5))
    talk.client("response.create", response=ASIDE)
    talk.client("response.cancel", response_id=talk.all("response.created")[1]["response"]["id"])
    talk.client("response.create", response=ASIDE)
    assert [event["response"]["status"] for event in talk.all("response.done")] == ["completed", "cancelled"]
    assert len(talk.open_jobs(Reply)) == MAX_ASIDES
