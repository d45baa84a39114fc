"""When a conversation is settled, and what of it is news."""

from typing import Any

from orchestrator.clients.exchange import (
    SIGN_WITHIN_S,
    SOUND_WITHIN_S,
    Answered,
    Answering,
    Exchange,
    Hearing,
    News,
    Noticed,
    Understood,
)

TRANSCRIPTION = "conversation.item.input_audio_transcription"


class Teller:
    """Tells an exchange events at a time."""

    def __init__(self, plays: bool = True) -> None:
        self.exchange = Exchange(plays)
        self.now_s = 100.0

    def tell(self, kind: str, **fields: Any) -> list[News]:  # as free as JSON
        return self.exchange.receive({"type": kind, **fields}, self.now_s)

    def reply(self, response_id: str = "r", status: str = "completed", **details: Any) -> list[News]:
        return self.tell(
            "response.done", response={"id": response_id, "status": status, "status_details": details or None}
        )

    def settled(self) -> bool:
        return self.exchange.is_settled(self.now_s)


def test_a_spoken_turn_is_settled_when_its_reply_was_played() -> None:
    """Speech, commit, reply, sound: after each step but the last there is something to wait for."""
    teller = Teller()
    steps: list[tuple[str, dict[str, Any]]] = [
        ("input_audio_buffer.speech_started", {}),
        ("input_audio_buffer.speech_stopped", {}),
        ("input_audio_buffer.committed", {}),
        ("response.created", {"response": {"id": "r"}}),
        ("response.content_part.added", {"response_id": "r", "part": {"type": "audio"}}),
        ("output_audio_buffer.started", {"response_id": "r"}),
        ("response.done", {"response": {"id": "r", "status": "completed"}}),
    ]
    assert teller.settled()
    for kind, fields in steps:
        teller.tell(kind, **fields)
        assert not teller.settled() or kind == "input_audio_buffer.speech_stopped", kind
    teller.tell("output_audio_buffer.stopped", response_id="r")
    assert teller.settled()
    assert teller.exchange.replies == 1


def test_a_typed_turn_is_settled_when_its_reply_is_done() -> None:
    """There is no sound to wait for."""
    teller = Teller(plays=False)
    teller.exchange.expect_reply()
    assert not teller.settled()
    teller.tell("response.created", response={"id": "r"})
    teller.tell("response.content_part.added", response_id="r", part={"type": "text"})
    assert not teller.settled()
    assert teller.reply() == [Answered(None)]
    assert teller.settled()


def test_sound_that_never_begins_is_not_waited_for() -> None:
    """A server that gave up on the voice leaves the text."""
    teller = Teller()
    teller.tell("response.created", response={"id": "r"})
    teller.tell("response.content_part.added", response_id="r", part={"type": "audio"})
    teller.reply()
    assert not teller.settled()
    teller.now_s += SOUND_WITHIN_S
    assert teller.settled()


def test_a_reply_that_was_taken_back_is_owed_again() -> None:
    """A cancelled response is no reply; one that the client cancelled is not owed either."""
    teller = Teller()
    teller.tell("response.created", response={"id": "r"})
    assert teller.reply("r", "cancelled", reason="turn_detected") == [Answered("taken back")]
    assert not teller.settled()
    teller.tell("response.created", response={"id": "s"})
    teller.reply("s", "cancelled", reason="client_cancelled")
    assert teller.settled()
    assert teller.exchange.replies == 0


def test_failures_are_the_servers_words_and_the_first_counts() -> None:
    """An error event, a failed reply."""
    teller = Teller()
    teller.tell("response.created", response={"id": "r"})
    assert teller.reply("r", "failed", error={"message": "the model is gone"}) == [Answered("failed")]
    teller.tell("error", error={"message": "later"})
    assert teller.exchange.failure == "the reply failed: the model is gone"


def test_what_is_said_is_news_and_the_rest_is_not() -> None:
    """Partial and final transcripts, the reply's words, interruptions, cuts."""
    teller = Teller()
    item = {"item_id": "i", "content_index": 0}
    assert teller.tell(f"{TRANSCRIPTION}.delta", **item, delta="what ") == [Hearing("what")]
    assert teller.tell(f"{TRANSCRIPTION}.delta", **item, delta="time") == [Hearing("what time")]
    assert teller.tell(f"{TRANSCRIPTION}.completed", **item, transcript=" What time?") == [
        Understood("What time?")
    ]
    failed = teller.tell(f"{TRANSCRIPTION}.failed", **item, error={"message": "noise"})
    assert failed == [Noticed("not understood: noise")]
    spoken = "response.output_audio_transcript.delta"
    assert teller.tell(spoken, response_id="r", delta="It ") == [Answering("It ", first=True)]
    assert teller.tell(spoken, response_id="r", delta="is") == [Answering("is", first=False)]
    assert teller.tell("output_audio_buffer.cleared", response_id="r") == [Noticed("interrupted")]
    assert teller.reply("r", "incomplete", reason="max_output_tokens") == [
        Answered("cut short: max_output_tokens")
    ]
    assert teller.tell("session.updated", session={}) == []
    assert teller.tell("rate_limits.updated") == []


def test_a_server_that_gives_no_sign_is_deaf() -> None:
    """Only after a while, and never once it has noticed anything."""
    teller = Teller()
    assert not teller.exchange.is_deaf(100.0, 100.0 + SIGN_WITHIN_S)
    assert teller.exchange.is_deaf(100.0, 100.1 + SIGN_WITHIN_S)
    teller.tell("input_audio_buffer.speech_started")
    assert not teller.exchange.is_deaf(100.0, 1_000.0)
