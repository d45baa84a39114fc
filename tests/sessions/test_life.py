"""How a session begins, waits for its links and ends."""

from orchestrator.clock import US_PER_S
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
