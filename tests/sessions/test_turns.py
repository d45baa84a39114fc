"""Which signs of a user belong to one turn."""

import json

import pytest

from orchestrator.clock import ms
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.turns import TurnWindow
from orchestrator.wire import codec
from tests.sessions.talk import Talk


@pytest.mark.parametrize(("gap_ms", "same"), [(0, True), (1_500, True), (1_501, False)])
def test_turn_window_stays_open_for_its_time_after_the_last_sign(gap_ms: int, same: bool) -> None:
    """A sign at the window's very end joins, one later opens the next turn."""
    window = TurnWindow(ms(1_500))
    first = window.sign(ms(1_000))
    assert (window.sign(ms(1_000 + gap_ms)).id == first.id) == same


def test_turn_window_is_kept_open_by_speech() -> None:
    """Four seconds of speech are one sign: what comes within the window after their end joins."""
    window = TurnWindow(ms(1_500))
    first = window.sign(ms(1_000))
    window.sign(ms(5_000), speaking=True)
    assert window.sign(ms(6_000)).id == first.id
    assert window.sign(ms(8_000)).id != first.id


def test_turn_window_is_not_shortened_by_a_sign_that_comes_late() -> None:
    """A message whose time is estimated before the last sign leaves the window open as long as it was."""
    window = TurnWindow(ms(1_500))
    first = window.sign(ms(5_000))
    window.sign(ms(4_000))
    assert window.sign(ms(6_400)).id == first.id


def test_turn_window_closes_at_the_clients_word() -> None:
    """After an explicit commit or response.create nothing joins."""
    window = TurnWindow(ms(1_500))
    first = window.sign(ms(1_000))
    window.close()
    assert window.sign(ms(1_001)).id != first.id


def test_turns_of_push_to_talk_are_one_for_each_commit() -> None:
    """The client's commit closes its turn: the next one joins nothing, however soon it comes."""
    talk = Talk()
    talk.update(audio={"input": {"turn_detection": None}})
    turns = []
    for _ in range(2):
        talk.hear(320, 0.95)
        talk.client("input_audio_buffer.commit")
        turns.append((talk.heart.turn.id, len(talk.heart.turn.items)))
    assert turns == [(1, 1), (2, 1)]


def test_turns_keep_the_messages_of_one_link_in_the_order_in_which_they_came() -> None:
    """The estimate of when a message was sent wavers with the network: it never puts one before its predecessor."""
    talk = Talk()
    talk.wait(1_000)
    for text, late_ms in (("first", 10), ("second", 400)):
        talk.wait(100)
        part = {"type": "input_text", "text": text}
        item = {"type": "message", "role": "user", "content": [part]}
        event = codec.decode_client(json.dumps({"type": "conversation.item.create", "item": item}))
        talk.step(on.ClientSaid("link", event, 0, ms(talk.now_ms - late_ms)))
    assert talk.history() == [("user", "first\nsecond")]


def test_turns_measure_a_link_that_came_back_anew() -> None:
    """What was known of when a link's messages were sent goes with the link."""
    talk = Talk()
    talk.wait(1_000)
    for text, sent_ms in (("second", 990), ("first", 900)):
        part = {"type": "input_text", "text": text}
        item = {"type": "message", "role": "user", "content": [part]}
        event = codec.decode_client(json.dumps({"type": "conversation.item.create", "item": item}))
        talk.step(on.ClientSaid("link", event, 0, ms(sent_ms)))
        talk.step(on.LinkLeft("link"))
        talk.step(on.LinkJoined("link", LinkKind.WEBSOCKET))
    assert talk.history() == [("user", "first\nsecond")]
