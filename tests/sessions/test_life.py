"""How a session begins, waits for its links and ends."""

import pytest

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.work import Reply, Transcribe
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.states import Life
from tests.sessions.talk import Talk

TEXT = {"output_modalities": ["text"]}


def test_session_waits_for_a_link_to_come_back_and_then_ends() -> None:
    """F-C2: the session outlives its links for the grace time; three refreshes in a row work."""
    talk = Talk(rules=SessionRules(grace_us=10 * US_PER_S))
    talk.typed("remember me")
    for refresh in range(3):
        talk.step(on.LinkLeft("link" if refresh == 0 else f"again {refresh - 1}"))
        talk.wait(9_000)
        assert talk.heart.life is Life.WAITING
        talk.step(on.LinkJoined(f"again {refresh}", LinkKind.WEBSOCKET))
        talk.step(on.LinkJoined(f"again {refresh}", LinkKind.WEBSOCKET))
    assert talk.history() == [("user", "remember me")]
    talk.step(on.LinkLeft("again 2"))
    talk.wait(10_001)
    assert talk.heart.life is Life.CLOSED


def test_session_ends_at_its_age_with_the_protocols_words() -> None:
    """At the maximum duration: an error `session_expired`, then close 1001."""
    talk = Talk(rules=SessionRules(max_session_us=60 * US_PER_S))
    talk.wait(60_001)
    assert talk.errors()[0]["code"] == "session_expired"
    assert talk.closed == (1001, "Your session hit the maximum duration of 1 minutes.")


def test_session_drains_by_finishing_the_running_turn() -> None:
    """SIGTERM: the running reply is finished, a new one refused, then the links close."""
    talk = Talk()
    talk.update(**TEXT)
    talk.typed("Hello")
    talk.client("response.create")
    talk.step(on.DrainAsked(int((talk.now_ms + 5_000) * 1_000)))
    assert talk.closed is None
    talk.writes("Hi.")
    talk.finishes()
    assert talk.last("response.done")["response"]["status"] == "completed"
    assert talk.closed == (1001, "The server is shutting down.")


def test_session_drain_gives_up_at_its_time() -> None:
    """A turn that does not finish is not waited for beyond the drain time."""
    talk = Talk()
    talk.client("response.create")
    talk.step(on.DrainAsked(int((talk.now_ms + 5_000) * 1_000)))
    talk.wait(5_001)
    assert talk.heart.life is Life.CLOSED


def test_session_expires_without_a_first_link() -> None:
    """F-C4: a session whose call never connects is gone after the grace time."""
    talk = Talk(rules=SessionRules(grace_us=US_PER_S))
    talk.step(on.LinkLeft("link"))
    talk.wait(1_001)
    assert talk.heart.life is Life.CLOSED
    assert talk.step(on.LinkLeft("link")) == []


def test_session_answers_a_client_that_comes_back_what_it_had_asked() -> None:
    """The connection breaks right behind the question: the answer waits for the client, who gets all of it."""
    talk = Talk()
    talk.speak()
    talk.step(on.LinkLeft("link"))
    talk.transcribed("What time is it?")
    assert not talk.open_jobs(Reply), "nobody is there to hear it"
    talk.wait(2_000)
    talk.step(on.LinkJoined("again", LinkKind.WEBSOCKET))
    assert talk.prompt()[-1] == ("user", "What time is it?")


def test_session_hears_a_client_that_comes_back_in_the_middle_of_its_speech() -> None:
    """F-C2, F-T4: what is said after a refresh is an utterance of its own, from its first word on."""
    talk = Talk()
    talk.hear(600, 0.95)
    talk.step(on.LinkLeft("link"))
    talk.step(on.LinkJoined("again", LinkKind.WEBSOCKET))
    broke_off = talk.position
    talk.hear(2_000, 0.95)
    talk.hear(700, 0.02)
    first, second = (talk.jobs[job].work for job in talk.finals())
    assert isinstance(first, Transcribe)
    assert isinstance(second, Transcribe)
    assert first.stop == second.start == broke_off
    talk.transcribed("Book a")
    talk.transcribed("table")
    assert talk.prompt()[-1] == ("user", "Book a\ntable")


@pytest.mark.parametrize("watching", [LinkKind.SIDEBAND, LinkKind.EVENTS])
def test_session_ends_the_speech_of_a_call_that_is_gone_though_others_watch(watching: LinkKind) -> None:
    """Who only watches brings no sound: speech that its call broke off is written down all the same."""
    talk = Talk(kind=LinkKind.CALL)
    talk.step(on.LinkJoined("side", watching))
    talk.hear(600, 0.95)
    talk.step(on.LinkLeft("link"))
    talk.transcribed("Good bye")
    assert talk.history() == [("user", "Good bye")]


@pytest.mark.parametrize("conversation", ["auto", "none"])
def test_session_tells_a_response_refused_while_draining_as_failed(conversation: str) -> None:
    """The client did nothing wrong: its request is answered by a response that fails, not by an `error`."""
    talk = Talk(kind=LinkKind.CALL)
    talk.speak()
    talk.transcribed("Tell me")
    talk.answer("Once there was a king.")
    talk.step(on.DrainAsked(int((talk.now_ms + 5_000) * 1_000)))
    talk.client("response.create", response={"conversation": conversation, "metadata": {"k": "v"}})
    done = talk.last("response.done")["response"]
    assert (done["status"], done["metadata"]) == ("failed", {"k": "v"})
    assert talk.errors() == []
    assert not talk.open_jobs(Reply)
