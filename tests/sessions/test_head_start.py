"""Replies that are begun before their turn has ended for certain."""

from collections.abc import Callable

import pytest

from orchestrator.scheduling.work import Replied, Reply, ReplyText, Speak, SpeechPiece, Spoke
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.head_start import MOST_REPORTS
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Talk


def foreseen(talk: Talk, text: str = "Hello.") -> str:
    """The user is silent, and what was said is known; returns the reply that was begun."""
    talk.hear(1_000, 0.95)
    talk.hear(200, 0.01)
    talk.transcribed(text)
    return talk.reply_job()


def notes(talk: Talk) -> list[do.NoteTurn]:
    return [effect for effect in talk.effects if isinstance(effect, do.NoteTurn)]


def test_head_start_shows_nothing_before_the_turn_has_ended_and_all_of_it_then() -> None:
    """What was written and spoken in the silence leaves in one step with the end of the turn, in the usual order."""
    talk = Talk()
    job = foreseen(talk)
    assert talk.jobs[job].speculative
    before = len(talk.log)
    talk.report(ReplyText(job, "Hello yourself. How "))
    (speak,) = talk.open_jobs(Speak)
    talk.report(SpeechPiece(speak, 0, 24_000, 4_800))
    talk.report(ReplyText(job, "are you?"))
    assert talk.heart.holds(speak)
    assert len(talk.log) == before
    assert not talk.sound
    talk.hear(400, 0.01)
    assert not talk.heart.holds(speak)
    assert talk.types(since=before) == [
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio_transcript.delta",
    ]
    assert [(piece.job_id, piece.index) for piece in talk.sound] == [(speak, 0)]
    assert talk.reply_job() == job
    talk.spoke(speak)
    talk.finishes()
    talk.sounds(100)
    talk.spoke()
    assert talk.last("response.done")["response"]["usage"]["total_tokens"] == 15
    figures = talk.heart.early
    assert (figures.replies_started, figures.replies_used, figures.replies_dropped) == (1, 1, 0)
    assert 250_000 < figures.replies_saved_us < 400_000


def test_head_start_that_was_quicker_than_the_silence_is_a_whole_response() -> None:
    """All was in before the turn had ended: created and done in one step."""
    talk = Talk()
    foreseen(talk)
    talk.answer("Fine.")
    assert not talk.all("response.created")
    talk.hear(400, 0.01)
    assert talk.last("response.done")["response"]["status"] == "completed"
    assert talk.history() == [("user", "Hello."), ("assistant", "Fine.")]


def _goes_on(talk: Talk) -> None:
    talk.hear(64, 0.95)


def _types(talk: Talk) -> None:
    talk.typed("And this.")


def _updates(talk: Talk) -> None:
    talk.update(instructions="Be brief.")


def _deletes(talk: Talk) -> None:
    talk.client("conversation.item.delete", item_id="old")


def _asks(talk: Talk) -> None:
    talk.client("response.create")


def _clears(talk: Talk) -> None:
    talk.client("input_audio_buffer.clear")


def _commits(talk: Talk) -> None:
    talk.client("input_audio_buffer.commit")


def _leaves(talk: Talk) -> None:
    talk.step(on.LinkLeft("link"))


def _drains(talk: Talk) -> None:
    talk.step(on.DrainAsked(int((talk.now_ms + 60_000) * 1_000)))


def _ends(talk: Talk) -> None:
    talk.step(on.EndAsked("hang-up"))


@pytest.mark.parametrize(
    "happens",
    [_goes_on, _types, _updates, _deletes, _asks, _clears, _commits, _leaves, _drains, _ends],
    ids=lambda case: case.__name__.strip("_"),
)
def test_head_start_is_dropped_unseen(happens: Callable[[Talk], None]) -> None:
    """Whatever makes the question another one takes both jobs back once, and nothing of them is seen or billed."""
    talk = Talk()
    talk.typed("Before.", id="old")
    job = foreseen(talk)
    talk.report(ReplyText(job, "Secret words. And "))
    (speak,) = talk.open_jobs(Speak)
    talk.report(SpeechPiece(speak, 0, 24_000, 4_800))
    happens(talk)
    cancelled = [effect.job_id for effect in talk.effects if isinstance(effect, do.Cancel)]
    assert sorted(j for j in cancelled if j in (job, speak)) == sorted([job, speak])
    assert not talk.heart.holds(speak)
    talk.report(ReplyText(job, "more."))
    talk.report(Replied(job, "stop", 100, 0, 100))
    talk.report(Spoke(speak, 1))
    assert not talk.sound
    assert "Secret" not in str(talk.log)
    assert talk.heart.early.replies_dropped == 1


def test_head_start_is_one_in_each_silence() -> None:
    """A guess that was dropped is not made again before the user has said more."""
    talk = Talk()
    foreseen(talk)
    talk.update(instructions="Be brief.")
    assert not talk.open_jobs(Reply)
    talk.hear(200, 0.01)
    assert not talk.open_jobs(Reply)
    talk.hear(200, 0.01)
    assert not talk.jobs[talk.reply_job()].speculative


def test_head_start_sees_each_pause_anew() -> None:
    """The user pauses, goes on and pauses: the second guess answers all of it."""
    talk = Talk()
    first = foreseen(talk, "I would")
    talk.hear(500, 0.95)
    assert first in [job.id for job in talk.taken_back]
    talk.hear(200, 0.01)
    talk.transcribed("I would like tea.")
    assert talk.prompt()[-1] == ("user", "I would like tea.")
    talk.hear(400, 0.01)
    talk.answer("Tea it is.")
    assert talk.history() == [("user", "I would like tea."), ("assistant", "Tea it is.")]
    assert (talk.heart.early.replies_started, talk.heart.early.replies_used) == (2, 1)


@pytest.mark.parametrize(
    "session",
    [
        {"audio": {"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}},
        {"type": "transcription"},
    ],
)
def test_head_start_is_not_made_where_the_server_would_not_answer(session: dict[str, object]) -> None:
    """Who answers by itself, or not at all, is asked nothing."""
    talk = Talk()
    talk.update(**session)
    talk.hear(1_000, 0.95)
    talk.hear(200, 0.01)
    talk.transcribed("Hello.")
    assert not talk.open_jobs(Reply)


def test_head_start_is_not_made_of_nothing_of_half_a_sentence_or_where_it_is_off() -> None:
    """Silence has no answer; words that hang in the air will go on; the switch is obeyed."""
    talk = Talk()
    talk.hear(1_000, 0.95)
    talk.hear(200, 0.01)
    talk.transcribed("  ")
    assert not talk.open_jobs(Reply)
    talk = Talk()
    talk.update(audio={"input": {"turn_detection": {"type": "semantic_vad"}}})
    talk.hear(1_000, 0.95)
    talk.hear(200, 0.01)
    talk.transcribed("I would like to")
    assert not talk.open_jobs(Reply)
    talk = Talk(rules=SessionRules(early_replies=False))
    talk.hear(1_000, 0.95)
    talk.hear(300, 0.01)
    assert not talk.jobs


def test_head_start_that_found_no_room_or_failed_costs_nothing() -> None:
    """The reply is asked for when the turn has ended, as it would be without; so is the sound of its first sentence."""
    talk = Talk()
    job = foreseen(talk)
    talk.failed(job, "rate_limit_exceeded")
    talk.hear(400, 0.01)
    assert not talk.jobs[talk.reply_job()].speculative
    talk.answer("Fine.")
    talk = Talk()
    job = foreseen(talk)
    talk.report(ReplyText(job, "Fine. And you?"))
    talk.failed(talk.open_jobs(Speak)[0], "rate_limit_exceeded")
    talk.report(ReplyText(job, " Well. Then"))
    assert not talk.open_jobs(Speak)
    talk.hear(400, 0.01)
    works = [talk.jobs[job].work for job in talk.open_jobs(Speak)]
    assert [work.text for work in works if isinstance(work, Speak)] == ["Fine.", "And you?", "Well."]
    assert all(event["response"]["status"] != "failed" for event in talk.all("response.done"))


def test_head_start_lets_go_of_sound_whose_making_failed() -> None:
    """What was made before the failure is not held for a turn's end: the sentence is made anew then."""
    talk = Talk()
    job = foreseen(talk)
    talk.report(ReplyText(job, "Fine. And you?"))
    sound = talk.open_jobs(Speak)[0]
    talk.report(SpeechPiece(sound, 0, 24_000, 4_800))
    guess = talk.heart._head_start._guess
    assert guess is not None
    assert sound in {report.job_id for report in guess.held}
    talk.failed(sound, "worker_failed")
    assert {report.job_id for report in guess.held} == {job}


def test_head_start_holds_only_so_much() -> None:
    """A reply that runs far ahead of its turn is dropped; sound that does is made again when it is due."""
    talk = Talk()
    job = foreseen(talk)
    for _ in range(MOST_REPORTS):
        talk.report(ReplyText(job, "word "))
    assert job in talk.jobs
    talk.report(ReplyText(job, "word "))
    assert job not in talk.jobs
    talk.hear(400, 0.01)
    talk.answer("Fine.")
    talk = Talk()
    job = foreseen(talk)
    talk.report(ReplyText(job, "Fine. And "))
    (speak,) = talk.open_jobs(Speak)
    for index in range(7):
        talk.sounds(5_000, speak, index)
    assert speak not in talk.jobs
    talk.hear(400, 0.01)
    assert talk.reply_job() == job
    assert talk.open_jobs(Speak)
    assert not talk.sound


def test_head_start_of_a_text_reply_is_not_spoken() -> None:
    """The client wants text: no sound is made, and text counts as read from when it left."""
    talk = Talk(rules=SessionRules(text_grace_us=300_000))
    talk.update(output_modalities=["text"])
    job = foreseen(talk)
    talk.report(ReplyText(job, "Fine. And you? "))
    assert not talk.open_jobs(Speak)
    talk.hear(400, 0.01)
    talk.hear(96, 0.01)
    talk.hear(64, 0.95)
    assert talk.history() == [("user", "Hello.")], "160 ms is too short to have been read"


def test_head_start_plays_on_a_call_from_when_it_left() -> None:
    """Sound made in the silence is announced and played behind the end of the turn; the track says what was heard."""
    talk = Talk(kind=LinkKind.CALL)
    job = foreseen(talk)
    talk.report(ReplyText(job, "Fine and well. And you? "))
    talk.sounds(1_000)
    assert not talk.heart.sounding
    talk.hear(400, 0.01)
    (response_id,) = talk.heart.sounding
    talk.step(on.PlayoutMoved(response_id, 12_000))
    talk.hear(64, 0.95)
    assert talk.last("response.done")["response"]["status"] == "cancelled"
    assert talk.history()[-1][0] == "assistant"
    assert "Fine and well. And" not in talk.history()[-1][1]


def test_turn_is_noted_with_its_stages() -> None:
    """Milliseconds since the last sound of speech, and how much of the answer was begun early."""
    talk = Talk()
    foreseen(talk)
    talk.writes("Fine. And ")
    talk.sounds(100)
    talk.hear(400, 0.01)
    (note,) = notes(talk)
    stages = note.times.stages_ms()
    assert note.times.early == "reply"
    assert stages["end_point_ms"] == stages["first_sound_ms"] == 512.0
    assert stages["transcript_ms"] == stages["first_token_ms"] == stages["first_sentence_ms"] == 192.0
    talk.hear(1_000, 0.95)
    talk.hear(600, 0.01)
    talk.transcribed("Hello.")
    talk.answer("Fine.")
    assert [note.times.early for note in notes(talk)] == ["reply", "transcript"]


def test_turn_is_noted_once_and_only_where_something_was_said() -> None:
    """An answer in text is noted at its end, a typed question and an answer that never came not at all."""
    talk = Talk(rules=SessionRules(early_replies=False))
    talk.update(output_modalities=["text"], chorale={"typed_turns": True})
    talk.typed("Hello")
    talk.answer("Hello.")
    talk.speak()
    talk.transcribed("Hello?")
    talk.failed(talk.reply_job())
    assert not notes(talk)
    talk.speak()
    talk.transcribed("Hello?")
    talk.answer("Hello.")
    (note,) = notes(talk)
    assert (note.times.early, note.times.sound_us) == ("none", None)
