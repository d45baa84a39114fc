"""Recognition in the silence that may end a turn."""

from typing import Any

import pytest

from modalities.audio.segmenter import TAIL_SAMPLES
from orchestrator.scheduling.work import Reply, Transcribe
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Talk

SHOWN: dict[str, Any] = {"audio": {"input": {"transcription": {"model": "x"}}}}
SEMANTIC: dict[str, Any] = {"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}}
DELTAS = "conversation.item.input_audio_transcription.delta"


def paused(talk: Talk, speech_ms: int = 1_000, silence_ms: int = 200) -> str:
    """The user has spoken and is silent for a moment; returns the early attempt."""
    talk.hear(speech_ms, 0.95)
    talk.hear(silence_ms, 0.01)
    (job,) = talk.finals()
    return job


def test_drafts_begin_the_final_transcript_behind_the_tail() -> None:
    """96 ms of silence: exactly the sound is recognised that the utterance will be, with all care, as a guess."""
    talk = Talk()
    talk.hear(1_000, 0.95)
    stop = talk.position
    talk.hear(64, 0.01)
    assert not talk.finals()
    talk.hear(32, 0.01)
    job = talk.jobs[talk.finals()[0]]
    assert job.speculative
    assert isinstance(job.work, Transcribe)
    assert (job.work.stop, job.work.draft) == (stop + TAIL_SAMPLES, False)
    talk.hear(700, 0.01)
    assert talk.last("input_audio_buffer.speech_stopped")["audio_end_ms"] == job.work.stop // 16
    assert talk.finals() == [job.id]
    talk.transcribed("Hello.")
    assert talk.prompt()[-1] == ("user", "Hello.")
    figures = talk.heart.early
    assert (figures.transcripts_started, figures.transcripts_used, figures.transcripts_dropped) == (1, 1, 0)
    assert figures.transcripts_saved_us == 416_000


def test_drafts_give_a_transcript_that_is_in_with_the_end_of_speech() -> None:
    """One step: speech stopped, the item, its transcript, and the question to the model."""
    talk = Talk()
    talk.update(**SHOWN)
    job = paused(talk)
    talk.transcribed("Hello.", job)
    before = len(talk.log)
    talk.hear(700, 0.01)
    assert talk.types(since=before) == [
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        DELTAS,
        "conversation.item.input_audio_transcription.completed",
        "response.created",
    ]
    assert talk.open_jobs(Reply)
    assert not talk.finals()


def test_drafts_use_what_was_recognised_of_a_pause_as_a_draft() -> None:
    """Speech goes on: the attempt agrees with the draft before it, and the turn ends with a transcript of its own."""
    talk = Talk()
    talk.update(**SHOWN, chorale={"events": []})
    talk.hear(500, 0.95)
    talk.transcribed("Book a table", talk.open_jobs(Transcribe)[0])
    talk.hear(96, 0.01)
    (job,) = talk.finals()
    talk.hear(64, 0.95)
    talk.transcribed("Book a table for", job)
    assert [event["delta"] for event in talk.all(DELTAS)] == ["Book a table"]
    assert not talk.all("input_audio_buffer.speech_stopped")
    talk.hear(700, 0.01)
    (job,) = talk.finals()
    talk.transcribed("Book a table for two.", job)
    assert talk.history() == [("user", "Book a table for two.")]
    assert (talk.heart.early.transcripts_used, talk.heart.early.transcripts_dropped) == (1, 1)


def test_drafts_are_not_begun_in_silence_and_give_way_to_the_transcript() -> None:
    """A recogniser that is about to be needed is not given less urgent work; a draft under way is taken back."""
    talk = Talk()
    talk.update(**SHOWN)
    talk.hear(500, 0.95)
    (draft,) = talk.open_jobs(Transcribe)
    talk.hear(96, 0.01)
    assert [job.id for job in talk.taken_back] == [draft]
    talk.hear(350, 0.01)
    works = [job.work for job in talk.jobs.values()]
    assert [work.draft for work in works if isinstance(work, Transcribe)] == [False]


@pytest.mark.parametrize("ended", [False, True])
def test_drafts_that_found_no_room_cost_nothing(ended: bool) -> None:
    """The recogniser is busy: refused before the end of the turn or in the moment of it, the transcript comes as it
    would without."""
    talk = Talk()
    talk.update(**SHOWN)
    job = paused(talk)
    if ended:
        talk.hear(500, 0.01)
    talk.failed(job, "rate_limit_exceeded")
    if not ended:
        talk.hear(200, 0.01)
        assert not talk.finals(), "one attempt in one silence"
        talk.hear(300, 0.01)
    (final,) = talk.finals()
    assert not talk.jobs[final].speculative
    talk.transcribed("Hello.")
    assert talk.prompt()[-1] == ("user", "Hello.")
    assert (talk.heart.early.transcripts_used, talk.heart.early.transcripts_dropped) == (0, 1)


def test_drafts_in_a_silence_come_back_where_the_attempt_was_refused_and_words_decide() -> None:
    """Semantic detection cannot do without words: an ordinary draft of all that was said brings them."""
    talk = Talk()
    talk.update(**SEMANTIC)
    job = paused(talk)
    talk.failed(job, "rate_limit_exceeded")
    talk.hear(32, 0.01)
    (draft,) = talk.open_jobs(Transcribe)
    talk.hear(600, 0.01)
    talk.transcribed("What time is it?", draft)
    assert talk.all("input_audio_buffer.speech_stopped")


def test_drafts_bring_the_words_that_end_a_semantic_turn() -> None:
    """The attempt's words show that the sentence is complete: the silence was its end, and they are its transcript."""
    talk = Talk()
    talk.update(**SEMANTIC)
    job = paused(talk, silence_ms=600)
    talk.transcribed("What time is it?", job)
    assert talk.all("input_audio_buffer.speech_stopped")
    assert talk.prompt()[-1] == ("user", "What time is it?")


def test_drafts_of_other_sound_or_other_hints_are_no_transcript() -> None:
    """A commit takes more sound in, an update changes the language: what was begun is taken back, once."""
    for change in ("commit", "language"):
        talk = Talk()
        job = paused(talk)
        if change == "commit":
            talk.client("input_audio_buffer.commit")
        else:
            talk.update(audio={"input": {"transcription": {"model": "x", "language": "de"}}})
            talk.hear(600, 0.01)
        assert [taken.id for taken in talk.taken_back] == [job]
        (final,) = talk.finals()
        assert not talk.jobs[final].speculative
        assert talk.heart.early.transcripts_dropped == 1


def test_drafts_make_no_attempts_at_long_speech_or_where_it_is_switched_off() -> None:
    """Half a minute costs too much to be recognised again at every breath."""
    for rules in (SessionRules(max_draft_us=900_000), SessionRules(early_replies=False)):
        talk = Talk(rules=rules)
        talk.hear(1_000, 0.95)
        talk.hear(400, 0.01)
        assert not talk.finals()
        talk.hear(300, 0.01)
        assert len(talk.finals()) == 1


def test_listener_says_where_silence_decides() -> None:
    """First the early attempt, then the end of the turn; nothing while nobody speaks."""
    talk = Talk()
    decides = [talk.heart.listen_at]
    talk.hear(1_000, 0.95)
    stop = talk.position
    for silence_ms in (64, 32, 700):
        decides.append(talk.heart.listen_at)
        talk.hear(silence_ms, 0.01)
    decides.append(talk.heart.listen_at)
    assert decides == [None, stop + TAIL_SAMPLES, stop + TAIL_SAMPLES, stop + 8_000, None]
