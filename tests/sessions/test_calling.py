"""Calls that are lost and come back: what is held for them, what goes on, and when nothing is held any more."""

import pytest

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.work import Reply, Speak
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.states import Life
from tests.sessions.talk import Talk

RULES = SessionRules(grace_us=10 * US_PER_S)


def sounding(rules: SessionRules = RULES, whole: bool = True) -> tuple[Talk, str]:
    """A call that plays a reply of two sentences, 2 s each, of which it has played 1.5 s."""
    talk = Talk(rules=rules, kind=LinkKind.CALL)
    talk.client("response.create")
    talk.writes("One is here. Two comes now.")
    if whole:
        talk.finishes()
        while talk.open_jobs(Speak):
            talk.sounds(2_000)
            talk.spoke()
    else:
        talk.sounds(2_000)
        talk.spoke()
    (response_id,) = talk.heart.sounding
    talk.step(on.PlayoutMoved(response_id, 36_000))
    return talk, response_id


def lose(talk: Talk, link: str = "link") -> None:
    talk.step(on.LinkLeft(link))


def return_(talk: Talk, kind: LinkKind = LinkKind.CALL, link: str = "back") -> None:
    talk.step(on.LinkJoined(link, kind))


def resumed(talk: Talk) -> list[do.ResumePlayout]:
    return [effect for effect in talk.effects if isinstance(effect, do.ResumePlayout)]


def ends(talk: Talk) -> list[str]:
    """How sounds were told to have ended."""
    return [
        kind
        for kind in talk.types()
        if kind in ("output_audio_buffer.cleared", "output_audio_buffer.stopped")
    ]


def test_call_that_comes_back_goes_on_where_its_track_stopped() -> None:
    """Nothing is told while it is away; then the rest is played, and the response ends as it would have."""
    talk, response_id = sounding()
    lose(talk)
    talk.wait(9_000)
    assert not ends(talk)
    return_(talk)
    assert resumed(talk) == [do.ResumePlayout(response_id, 36_000, 96_000)]
    assert isinstance(talk.effects[-1], do.FinishPlayout)
    talk.step(on.PlayoutMoved(response_id, 50_000))
    talk.step(on.PlayoutEnded(response_id))
    assert ends(talk) == ["output_audio_buffer.stopped"]
    assert talk.history()[-1] == ("assistant", "One is here. Two comes now.")
    talk.strict.end()


def test_call_hears_what_was_made_while_it_was_away() -> None:
    """The reply goes on without it, sound included, and what began meanwhile begins at its first sample."""
    talk, response_id = sounding(whole=False)
    lose(talk)
    talk.finishes()
    talk.sounds(2_000)
    talk.spoke()
    return_(talk)
    assert resumed(talk) == [do.ResumePlayout(response_id, 36_000, 96_000)]
    lose(talk, "back")
    talk.step(on.PlayoutEnded(response_id))
    talk.client("response.create", link="nobody")
    talk.writes("Three.")
    talk.finishes()
    talk.sounds(1_000)
    talk.spoke()
    second = talk.heart.sounding[-1]
    return_(talk)
    assert resumed(talk)[-1] == do.ResumePlayout(second, 0, 24_000)


def test_call_that_does_not_come_back_is_cut_where_it_was() -> None:
    """At the end of the grace time: told as cleared, the history ends where the sound did, and the session ends."""
    talk, _ = sounding()
    lose(talk)
    talk.wait(10_001)
    assert ends(talk) == ["output_audio_buffer.cleared"]
    assert talk.last("conversation.item.truncated")["audio_end_ms"] == 1_500
    assert talk.heart.life is Life.CLOSED
    return_(talk)
    assert not resumed(talk)


def test_call_that_does_not_come_back_is_given_up_though_a_sideband_watches() -> None:
    """The session lives on by its sideband; the sound is held for the grace time and no longer."""
    talk, _ = sounding()
    return_(talk, LinkKind.SIDEBAND, "side")
    lose(talk)
    talk.wait(9_999)
    assert not ends(talk)
    talk.wait(2)
    assert ends(talk) == ["output_audio_buffer.cleared"]
    assert talk.heart.life is Life.OPEN


@pytest.mark.parametrize("kind", [LinkKind.WEBSOCKET, LinkKind.RPC])
@pytest.mark.parametrize("first", [True, False])
def test_call_is_not_waited_for_where_the_user_hears_by_events(kind: LinkKind, first: bool) -> None:
    """A WebSocket that comes instead of the call, or was there all the time: nothing is held for a call any more."""
    talk, _ = sounding()
    if first:
        return_(talk, kind)
    lose(talk)
    if not first:
        assert not ends(talk)
        return_(talk, kind)
    assert ends(talk) == ["output_audio_buffer.cleared"]
    return_(talk, LinkKind.CALL, "call")
    assert not resumed(talk)


@pytest.mark.parametrize("kind", [LinkKind.SIDEBAND, LinkKind.EVENTS])
def test_call_is_waited_for_though_others_read(kind: LinkKind) -> None:
    """Who only reads is not the one who was to hear."""
    talk, _ = sounding()
    lose(talk)
    return_(talk, kind, "reader")
    assert not ends(talk)
    return_(talk)
    assert len(resumed(talk)) == 1


def test_call_that_is_hung_up_while_it_is_away_is_over() -> None:
    """`EndAsked`: cut at once, and closed."""
    talk, _ = sounding()
    lose(talk)
    talk.step(on.EndAsked("hung up"))
    assert ends(talk) == ["output_audio_buffer.cleared"]
    assert talk.heart.life is Life.CLOSED


@pytest.mark.parametrize("before", [True, False])
def test_server_that_goes_down_waits_for_no_call(before: bool) -> None:
    """A call that is away when the server drains, or is lost then, does not hold it up."""
    talk, _ = sounding()
    if before:
        lose(talk)
    talk.step(on.DrainAsked(int((talk.now_ms + 20_000) * 1_000)))
    if not before:
        assert not ends(talk)
        lose(talk)
    assert ends(talk) == ["output_audio_buffer.cleared"]
    assert talk.heart.life is Life.CLOSED


def test_newest_call_takes_over_from_one_that_still_is() -> None:
    """The client noticed before the server did (F-C2): the old link is closed, its late end does nothing."""
    talk, response_id = sounding()
    return_(talk)
    (closed,) = (effect for effect in talk.effects if isinstance(effect, do.CloseLink))
    assert (closed.link_id, closed.code) == ("link", 1000)
    assert resumed(talk) == [do.ResumePlayout(response_id, 36_000, 96_000)]
    before = len(talk.effects)
    lose(talk)
    talk.wait(20_000)
    assert talk.effects[before:] == []
    assert talk.heart.life is Life.OPEN


def test_speech_after_the_return_cuts_where_the_sound_was() -> None:
    """Barge-in: what was played before the cut and after it was heard, what was made meanwhile was not."""
    talk, response_id = sounding()
    lose(talk)
    talk.wait(5_000)
    return_(talk)
    talk.step(on.PlayoutMoved(response_id, 48_000))
    talk.hear(300, 0.95)
    assert ends(talk) == ["output_audio_buffer.cleared"]
    assert talk.last("conversation.item.truncated")["audio_end_ms"] == 2_000
    assert talk.history()[-1] == ("assistant", "One is here.")


def test_sound_that_the_log_has_lost_ends_where_it_was_heard() -> None:
    """`PlayoutLost`: cleared and cut as by an interruption; told of a response that is over, nothing happens."""
    talk, response_id = sounding()
    lose(talk)
    return_(talk)
    talk.step(on.PlayoutLost(response_id))
    assert ends(talk) == ["output_audio_buffer.cleared"]
    assert talk.last("conversation.item.truncated")["audio_end_ms"] == 1_500
    before = len(talk.effects)
    talk.step(on.PlayoutLost(response_id))
    assert talk.effects[before:] == []


def test_abandoned_reply_of_a_call_keeps_what_was_made_for_its_return() -> None:
    """After three seconds nothing more is made of it; what there is can still be heard by a call that comes back."""
    talk, response_id = sounding(SessionRules(grace_us=10 * US_PER_S, abandoned_us=3 * US_PER_S), whole=False)
    lose(talk)
    talk.wait(4_000)
    assert not talk.open_jobs(Reply)
    assert talk.last("response.done")["response"]["status"] == "cancelled"
    assert not ends(talk)
    return_(talk)
    assert resumed(talk) == [do.ResumePlayout(response_id, 36_000, 48_000)]
    assert talk.history()[-1] == ("assistant", "One is here.")
    talk.step(on.PlayoutEnded(response_id))
    assert ends(talk) == ["output_audio_buffer.stopped"]


def test_text_that_came_while_nobody_was_there_was_not_read() -> None:
    """F-C1: an interruption right after the return keeps what was delivered before the cut; a moment later, all."""
    for wait_ms, kept in ((0, "Before. "), (400, "Before. After.")):
        talk = Talk(rules=RULES)
        talk.update(output_modalities=["text"], chorale={"typed_turns": True})
        talk.typed("Tell me")
        talk.writes("Before. ")
        talk.wait(500)
        lose(talk)
        talk.writes("After.")
        talk.wait(5_000)
        return_(talk, LinkKind.WEBSOCKET)
        talk.wait(wait_ms)
        talk.typed("Stop")
        assert ("assistant", kept) in talk.history()


def test_sound_that_came_while_nobody_was_there_was_not_heard() -> None:
    """On a WebSocket, where time tells what was heard: it stands still while the client is away."""
    talk = Talk(rules=RULES)
    talk.client("response.create")
    talk.writes("One is here. Two comes now.")
    talk.finishes()
    while talk.open_jobs(Speak):
        talk.sounds(2_000)
        talk.spoke()
    talk.wait(2_000)
    lose(talk)
    talk.wait(5_000)
    return_(talk, LinkKind.WEBSOCKET)
    talk.hear(300, 0.95)
    assert talk.history()[-1] == ("assistant", "One is here.")
