"""Stages of a turn, from events that were thought up."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from benchmarks.voice_turn import STAGES, Turn, TurnWatch, quantile_ms

ITEM = "conversation.item.input_audio_transcription.completed"


def watch(*events: tuple[float, str | dict[str, Any]], ended_s: float = 10.0) -> TurnWatch:
    """Returns a watch that has seen events; a number alone of seconds is a packet with sound."""
    watch = TurnWatch()
    watch.speech_ended(ended_s)
    for at_s, event in events:
        if event == "sound":
            watch.heard(at_s, 0.02)
        else:
            watch.receive({"type": event} if isinstance(event, str) else event, at_s)
    return watch


def text(delta: str) -> dict[str, Any]:
    """Returns a piece of a reply."""
    return {"type": "response.output_audio_transcript.delta", "delta": delta}


ANSWERED = (
    (9.0, "input_audio_buffer.speech_started"),
    (10.2, "input_audio_buffer.speech_stopped"),
    (10.3, {"type": ITEM, "transcript": " Hello? "}),
    (10.3, "response.created"),
    (10.4, text("It is")),
    (10.5, text(" fine. And")),
    (10.6, text(" so on.")),
    (10.7, "output_audio_buffer.started"),
    (10.8, "sound"),
    (10.9, {"type": "response.done", "response": {"status": "completed"}}),
)


def test_turn_has_each_stage_from_the_one_before() -> None:
    """The stages add up to the time of the first sound; the first sentence is there when the second begins."""
    turn = watch(*ANSWERED).turn()
    assert turn.sound_ms == pytest.approx(800)
    stages = turn.stages_ms()
    assert [round(stages[stage]) for stage in STAGES] == [200, 100, 100, 100, 200, 100]
    assert (turn.transcript, turn.reply) == ("Hello?", "It is fine. And so on.")
    assert not turn.early_end


def test_turn_of_one_sentence_has_it_with_the_last_text_before_the_sound() -> None:
    """Nothing follows that would show its end."""
    one = [event for event in ANSWERED if event[1] != text(" so on.") and event[1] != text(" fine. And")]
    turn = watch(*one).turn()
    assert turn.moments_ms["first sentence"] == pytest.approx(400)


def test_turn_begins_anew_where_speech_goes_on_or_a_reply_is_taken_back() -> None:
    """What counts is the way of the sound that came."""
    again = watch(
        (9.5, "input_audio_buffer.speech_stopped"),
        (9.6, {"type": ITEM, "transcript": "Hel"}),
        (9.7, "response.created"),
        (9.8, text("What? I")),
        (9.9, {"type": "response.done", "response": {"status": "cancelled"}}),
        *ANSWERED,
    )
    turn = again.turn()
    assert turn.early_end
    assert [round(turn.moments_ms[stage]) for stage in STAGES] == [200, 300, 400, 500, 700, 800]
    assert not again.settled(10.9)
    assert again.settled(12.0)


def test_turn_without_sound_settles_when_patience_ends() -> None:
    """It is then unanswered; sound before the end of speech is no answer to it."""
    silent = watch()
    silent.heard(9.0, 1.0)
    assert not silent.settled(10.0 + silent.patience_s - 0.1)
    assert silent.settled(10.0 + silent.patience_s)
    assert silent.turn().sound_ms is None


def test_turn_is_not_over_while_its_reply_is_played_or_made() -> None:
    """A socket gets sound faster than it is heard."""
    playing = watch(*ANSWERED[:-2])
    playing.heard(10.8, 5.0)
    assert not playing.settled(13.0), "no end was told"
    playing.receive({"type": "response.done", "response": {"status": "completed"}}, 10.9)
    assert not playing.settled(15.0)
    assert playing.settled(17.0)


@pytest.mark.parametrize("kind", ["error", "conversation.item.input_audio_transcription.failed"])
def test_turn_that_failed_says_why(kind: str) -> None:
    """Nobody waits for it any longer."""
    failed = watch((10.1, {"type": kind, "error": {"code": "overloaded"}}))
    assert failed.settled(10.1)
    assert "overloaded" in failed.turn().failure


@given(some.lists(some.floats(0, 5000), min_size=len(STAGES), max_size=len(STAGES)))
def test_stages_are_never_negative_and_add_up(moments: list[float]) -> None:
    """Work that was made ahead takes no time; the sum is the latest moment."""
    turn = Turn(moments[-1], dict(zip(STAGES, moments, strict=True)), "", "", False)
    assert min(turn.stages_ms().values()) >= 0
    assert sum(turn.stages_ms().values()) == pytest.approx(max(moments))


def test_quantile_counts_the_unanswered_as_endless() -> None:
    """Half of the turns unanswered: there is a median, and no 95th percentile."""
    times = [100.0, 300.0, 200.0, None, None]
    assert quantile_ms(times, 0.5) == 300
    assert quantile_ms(times, 0.95) is None
    assert quantile_ms([], 0.5) is None
    assert quantile_ms([float(number) for number in range(1, 31)], 0.95) == 29
