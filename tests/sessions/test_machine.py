"""A session under any order of events: one done per response, no job without an owner, nothing after the end."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.work import (
    Replied,
    Reply,
    ReplyText,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
)
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.states import Life
from tests.sessions.talk import Talk

WORDS = st.sampled_from(["", "Hello.", "Book a table. For two, please.", "no"])


class SessionMachine(RuleBasedStateMachine):
    """Plays users, clients and workers against one session."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = Talk(rules=SessionRules(grace_us=US_PER_S, max_utterance_s=5), kind=LinkKind.CALL)
        self.talk.update(
            audio={"input": {"transcription": {"model": "x"}}}, chorale={"typed_turns": True, "events": []}
        )

    @rule(ms=st.integers(32, 1_500), probability=st.sampled_from([0.02, 0.95]))
    def hear(self, ms: int, probability: float) -> None:
        self.talk.hear(ms, probability)

    @rule(text=WORDS)
    def typed(self, text: str) -> None:
        self.talk.typed(text)

    @rule(ms=st.integers(0, 3_000))
    def wait(self, ms: int) -> None:
        self.talk.wait(ms)

    @rule(
        type=st.sampled_from(
            [
                "response.create",
                "response.cancel",
                "input_audio_buffer.commit",
                "input_audio_buffer.clear",
                "output_audio_buffer.clear",
            ]
        )
    )
    def client(self, type: str) -> None:
        self.talk.client(type)

    @rule(
        modality=st.sampled_from(["audio", "text"]), vad=st.sampled_from(["server_vad", "semantic_vad", None])
    )
    def update(self, modality: str, vad: str | None) -> None:
        detection = None if vad is None else {"type": vad}
        self.talk.update(output_modalities=[modality], audio={"input": {"turn_detection": detection}})

    @precondition(lambda self: self.talk.open_jobs(Transcribe))
    @rule(text=WORDS, lost=st.booleans(), data=st.data())
    def transcribe(self, text: str, lost: bool, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.talk.open_jobs(Transcribe)))
        if lost:
            self.talk.failed(job)
        else:
            self.talk.transcribed(text, job)

    @precondition(lambda self: len(self.talk.open_jobs(Reply)) == 1)
    @rule(how=st.sampled_from(["text", "call", "stop", "length", "fail"]))
    def reply(self, how: str) -> None:
        match how:
            case "text":
                self.talk.writes("Well. That is so. ")
            case "call":
                self.talk.calls("f", "{}")
            case "fail":
                self.talk.failed(self.talk.reply_job())
            case _:
                self.talk.finishes(how)

    @precondition(lambda self: self.talk.open_jobs(Speak))
    @rule(ms=st.integers(1, 2_000), ends=st.booleans())
    def voice(self, ms: int, ends: bool) -> None:
        self.talk.sounds(ms)
        if ends:
            self.talk.spoke()

    @precondition(lambda self: self.talk.taken_back)
    @rule(data=st.data())
    def late(self, data: st.DataObject) -> None:
        """A job that was taken back answers all the same: nothing may come of it."""
        job = data.draw(st.sampled_from(self.talk.taken_back))
        before = len(self.talk.log), len(self.talk.effects)
        match job.work:
            case Transcribe():
                self.talk.report(Transcribed(job.id, "late"))
            case Reply():
                self.talk.report(ReplyText(job.id, "late"))
                self.talk.report(Replied(job.id, "stop"))
            case Speak():
                self.talk.report(SpeechPiece(job.id, 0, 24_000, 480))
                self.talk.report(Spoke(job.id, 1))
            case _:
                raise AssertionError(job)
        assert (len(self.talk.log), len(self.talk.effects)) == before

    @precondition(lambda self: self.talk.heart.sounding)
    @rule(ms=st.integers(0, 5_000), ends=st.booleans())
    def play(self, ms: int, ends: bool) -> None:
        response_id = self.talk.heart.sounding[0]
        self.talk.step(on.PlayoutMoved(response_id, ms * 24))
        if ends:
            self.talk.step(on.PlayoutEnded(response_id))

    @rule(
        item=st.integers(0, 40),
        ms=st.integers(0, 4_000),
        type=st.sampled_from(["truncate", "delete", "retrieve"]),
    )
    def touch(self, item: int, ms: int, type: str) -> None:
        items = list(self.talk.heart.conversation)
        if not items:
            return
        fields: dict[str, Any] = {"audio_end_ms": ms, "content_index": 0} if type == "truncate" else {}
        self.talk.client(f"conversation.item.{type}", item_id=items[item % len(items)].id, **fields)

    @rule(comes_back=st.integers(0, 9))
    def lose_link(self, comes_back: int) -> None:
        self.talk.step(on.LinkLeft("link"))
        if comes_back and self.talk.heart.life is not Life.CLOSED:
            self.talk.step(on.LinkJoined("link", LinkKind.CALL))

    @invariant()
    def one_done_per_response(self) -> None:
        """Every response that was created is done at most once, and nothing of it follows."""
        done: set[str] = set()
        for event in self.talk.log:
            response = event.get("response_id") or event.get("response", {}).get("id")
            if response is None or event["type"].startswith("output_audio_buffer"):
                continue
            assert response not in done, f"{event['type']} after response.done"
            if event["type"] == "response.done":
                done.add(response)

    @invariant()
    def deltas_join_to_the_final_text(self) -> None:
        text: dict[str, str] = {}
        for event in self.talk.log:
            if event["type"] in ("response.output_text.delta", "response.output_audio_transcript.delta"):
                text[event["item_id"]] = text.get(event["item_id"], "") + event["delta"]
            if event["type"] == "response.output_text.done":
                assert event["text"] == text[event["item_id"]]
            if event["type"] == "response.output_audio_transcript.done":
                assert event["transcript"] == text[event["item_id"]]

    @invariant()
    def items_are_added_once_and_done_in_order(self) -> None:
        added = [e["item"]["id"] for e in self.talk.log if e["type"] == "conversation.item.added"]
        assert len(added) == len(set(added))

    @invariant()
    def one_final_for_each_transcription(self) -> None:
        ended = [
            e["item_id"]
            for e in self.talk.log
            if e["type"].startswith("conversation.item.input_audio_transcription")
            and not e["type"].endswith("delta")
        ]
        assert len(ended) == len(set(ended))

    @invariant()
    def no_needless_errors(self) -> None:
        """Only what a client did wrong is answered by an error."""
        allowed = {
            "response_cancel_not_active",
            "conversation_already_has_active_response",
            "input_audio_buffer_commit_empty",
            "invalid_value",
            "item_truncate_invalid_item_id",
            "server_error",
        }
        assert {error["code"] for error in self.talk.errors()} <= allowed

    def teardown(self) -> None:
        """Whatever happened, a session whose links are gone ends, and a later event does nothing."""
        self.talk.step(on.LinkLeft("link"))
        self.talk.wait(20_000)
        assert self.talk.heart.life is Life.CLOSED
        assert self.talk.typed("anyone?") == []


TestSession = SessionMachine.TestCase
TestSession.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
