"""A session under any order of events: a strict client finds no fault, late answers do nothing, everything ends."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from consistency.policy import EngineRules
from orchestrator.clock import US_PER_S
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    Reply,
    ReplyCall,
    ReplyText,
    Score,
    Scored,
    SlotFound,
    Speak,
    SpeechPiece,
    Spoke,
    TextFit,
    Transcribe,
    Transcribed,
    Understood,
)
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import ConsistencyRules, SessionRules
from orchestrator.sessions.states import Life
from orchestrator.wire.items import FunctionCall
from tests.fakes.judges import DrawnGraph, DrawnJudge
from tests.sessions.agreeing import EVENTS
from tests.sessions.talk import Talk, plain_meaning

WORDS = st.sampled_from(["", "Hello.", "Book a table. For two, please.", "no"])


class SessionMachine(RuleBasedStateMachine):
    """Plays users, clients and workers against one session."""

    def __init__(self) -> None:
        super().__init__()
        self.is_plain = True
        consistency = ConsistencyRules(
            engine=EngineRules(suspect=0.3, freeze=0.6), judge=DrawnJudge(), graph=DrawnGraph()
        )
        rules = SessionRules(grace_us=US_PER_S, max_utterance_s=5, consistency=consistency)
        self.talk = Talk(rules=rules, kind=LinkKind.CALL)
        self.talk.meaning = lambda text: None

    @initialize(is_plain=st.booleans(), asks=st.booleans())
    def begin(self, is_plain: bool, asks: bool) -> None:
        """Half of the clients know nothing of Chorale's own part; some let the user be asked."""
        self.is_plain = is_plain
        chorale = {"typed_turns": True, "ask": asks, "events": EVENTS}
        own = {} if is_plain else {"chorale": chorale}
        tools = [{"type": "function", "name": "f", "chorale": {"reversible": "g"}}] if asks else []
        self.talk.update(audio={"input": {"transcription": {"model": "x"}}}, tools=tools, **own)

    @rule(ms=st.integers(32, 1_500), probability=st.sampled_from([0.02, 0.95]))
    def hear(self, ms: int, probability: float) -> None:
        self.talk.hear(ms, probability)

    @rule(text=WORDS, id=st.sampled_from([None, "mine", "yours"]), behind=st.integers(-5, 40))
    def typed(self, text: str, id: str | None, behind: int) -> None:
        """Some with an id of the client's, some behind an item that is there, or was."""
        item: dict[str, Any] = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }
        known = list(self.talk.strict.items)
        place = {"previous_item_id": known[behind % len(known)]} if behind >= 0 and known else {}
        self.talk.client("conversation.item.create", item={**item, **({"id": id} if id else {})}, **place)

    @rule(value=st.sampled_from("78"))
    def fill_in(self, value: str) -> None:
        """A client's form."""
        if not self.is_plain:
            self.talk.client("chorale.token", intent="book", slots=[{"name": "time", "value": value}])

    @rule(text=WORDS, item=st.integers(0, 9))
    def caption(self, text: str, item: int) -> None:
        """What a client's own recogniser made of something that was said."""
        spoken = list(self.talk.strict.speech)[-10:]
        if not self.is_plain and spoken and text:
            self.talk.client("chorale.caption", item_id=spoken[item % len(spoken)], text=text)

    @precondition(lambda self: self.talk.thoughts)
    @rule(fails=st.booleans(), data=st.data())
    def understand(self, fails: bool, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(list(self.talk.thoughts)))
        text = self.talk.thoughts.pop(job_id).text
        slots = (SlotFound("time", "7", -1, -1, 1.0),) if "two" in text else ()
        found = Understood(job_id, normal=text.lower(), intent="book" if slots else None, slots=slots)
        self.talk.report(Failed(job_id, "worker_failed", "gone") if fails else found)

    @precondition(lambda self: self.talk.open_jobs(Score))
    @rule(ratio=st.sampled_from([-1.0, -6.0, -30.0, None]), data=st.data())
    def score(self, ratio: float | None, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(self.talk.open_jobs(Score)))
        work = self.talk.jobs[job_id].work
        assert isinstance(work, Score)
        if ratio is None:
            self.talk.failed(job_id)
            return
        del self.talk.jobs[job_id]
        heard = TextFit(work.recognised, work.recognised, -10.0, -1.0, -2.0)
        fits = tuple(TextFit(text, text, -10.0 + ratio, -1.0, -2.0) for text in work.texts)
        self.talk.report(Scored(job_id, heard, fits))

    @rule()
    def send_sound(self) -> None:
        """An item with sound of the client's own, as the runner marks it."""
        part = {"type": "input_audio", "audio": "clip:1"}
        self.talk.client(
            "conversation.item.create", item={"type": "message", "role": "user", "content": [part]}
        )

    @rule()
    def answer_calls(self) -> None:
        for entry in list(self.talk.heart.conversation):
            if isinstance(entry.item, FunctionCall):
                output = {"type": "function_call_output", "call_id": entry.item.call_id, "output": "42"}
                self.talk.client("conversation.item.create", item=output)

    @rule(modality=st.sampled_from(["audio", "text"]))
    def ask_aside(self, modality: str) -> None:
        """A response out of band."""
        params = {"conversation": "none", "output_modalities": [modality], "metadata": {"a": "b"}}
        self.talk.client("response.create", response=params)

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
        modality=st.sampled_from(["audio", "text"]),
        vad=st.sampled_from(["server_vad", "semantic_vad", None]),
        interrupts=st.booleans(),
        answers=st.booleans(),
        idle_ms=st.sampled_from([None, 5_000]),
        parallel=st.booleans(),
        truncation=st.sampled_from(
            [
                "auto",
                "disabled",
                {
                    "type": "retention_ratio",
                    "retention_ratio": 0.5,
                    "token_limits": {"post_instructions": 20},
                },
            ]
        ),
    )
    def update(
        self,
        modality: str,
        vad: str | None,
        interrupts: bool,
        answers: bool,
        idle_ms: int | None,
        parallel: bool,
        truncation: Any,
    ) -> None:
        switches: dict[str, Any] = {"interrupt_response": interrupts, "create_response": answers}
        if vad == "server_vad":
            switches["idle_timeout_ms"] = idle_ms
        detection = None if vad is None else {"type": vad, **switches}
        self.talk.update(
            output_modalities=[modality],
            audio={"input": {"turn_detection": detection}},
            parallel_tool_calls=parallel,
            truncation=truncation,
        )

    @rule(text=st.sampled_from(["", "Look."]))
    def show_image(self, text: str) -> None:
        """An image that has been read, with words or without."""
        self.talk.image(len(self.talk.log), text)

    @precondition(lambda self: self.talk.open_jobs(Transcribe))
    @rule(text=WORDS, lost=st.booleans(), data=st.data())
    def transcribe(self, text: str, lost: bool, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.talk.open_jobs(Transcribe)))
        if lost:
            self.talk.failed(job)
        else:
            self.talk.transcribed(text, job)

    @precondition(lambda self: self.talk.open_jobs(Reply))
    @rule(
        how=st.sampled_from(["Well. That is so. ", "👍", "{}", '{"a":', "stop", "length", "fail"]),
        data=st.data(),
    )
    def reply(self, how: str, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.talk.open_jobs(Reply)))
        match how:
            case "fail":
                self.talk.failed(job)
            case "stop" | "length":
                del self.talk.jobs[job]
                self.talk.report(Replied(job, how, 10, 0, 5))
            case _ if how.startswith("{"):
                self.talk.report(ReplyCall(job, data.draw(st.integers(0, 1)), how, "f"))
            case _:
                self.talk.report(ReplyText(job, how))

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

    @rule(comes_back=st.integers(0, 9), kind=st.sampled_from([*LinkKind, LinkKind.CALL]))
    def lose_link(self, comes_back: int, kind: LinkKind) -> None:
        self.talk.step(on.LinkLeft("link"))
        if comes_back and self.talk.heart.life is not Life.CLOSED:
            self.talk.step(on.LinkJoined("link", kind))

    @rule(kind=st.sampled_from([*LinkKind, LinkKind.CALL]), late=st.booleans())
    def come_back_before_leaving(self, kind: LinkKind, late: bool) -> None:
        """The client has noticed first (F-C2): another link is there, and the old one leaves then, or never does."""
        if self.talk.heart.life is not Life.CLOSED:
            self.talk.step(on.LinkJoined("other", kind))
            self.talk.step(on.LinkLeft("link" if late else "other"))
            self.talk.step(on.LinkJoined("link", kind))
            self.talk.step(on.LinkLeft("other"))

    @precondition(lambda self: self.talk.heart.sounding)
    @rule()
    def lose_sound(self) -> None:
        """The log has lost what a call that came back had yet to play."""
        self.talk.step(on.PlayoutLost(self.talk.heart.sounding[0]))

    @invariant()
    def calls_go_on_with_what_was_sent(self) -> None:
        """What a call that comes back is to play is a part of what there is."""
        resumed = [effect for effect in self.talk.effects if isinstance(effect, do.ResumePlayout)]
        assert all(0 <= effect.start <= effect.stop for effect in resumed)

    @invariant()
    def client_knows_the_conversation(self) -> None:
        """Who only follows `previous_item_id` has the items in the session's order."""
        assert self.talk.strict.order == [entry.id for entry in self.talk.heart.conversation]

    @invariant()
    def no_needless_errors(self) -> None:
        """Only what a client did wrong is answered by an error."""
        allowed = {
            "response_cancel_not_active",
            "conversation_already_has_active_response",
            "input_audio_buffer_commit_empty",
            "invalid_value",
            "item_create_duplicate_item_id",
            "item_truncate_invalid_item_id",
        }
        assert {error["code"] for error in self.talk.errors()} <= allowed

    @invariant()
    def nothing_is_answered_that_waits(self) -> None:
        """No answer is under way to words that are not settled, but one that had begun before they were said."""
        if any(entry.unsettled for entry in self.talk.heart.conversation):
            assert self.talk.heart.checker.waiting

    @invariant()
    def guesses_are_seen_by_nobody(self) -> None:
        """Sound is sent of jobs only that are not held, and what is held is under way or in."""
        assert not any(self.talk.heart.holds(piece.job_id) for piece in self.talk.sound)
        taken_back = {job.id for job in self.talk.taken_back}
        assert not any(self.talk.heart.holds(job_id) for job_id in taken_back)

    def teardown(self) -> None:
        """Whatever happened, what began ends; a session whose links are gone ends too; a later event does nothing."""
        self._finish_everything()
        if self.talk.heart.life is not Life.CLOSED:
            self.talk.strict.end()
        self.talk.step(on.LinkLeft("link"))
        self.talk.wait(20_000)
        assert self.talk.heart.life is Life.CLOSED
        assert self.talk.typed("anyone?") == []
        early = self.talk.heart.early
        assert early.replies_started == early.replies_used + early.replies_dropped
        assert early.transcripts_started == early.transcripts_used + early.transcripts_dropped

    def _finish_everything(self) -> None:
        """The user falls silent, and all workers answer."""
        self.talk.hear(1_500, 0.02)
        self.talk.hear(5_000, 0.02)
        self.talk.meaning = plain_meaning
        self.talk.think()
        while self.talk.jobs:
            job = next(iter(self.talk.jobs.values()))
            match job.work:
                case Score():
                    self.talk.failed(job.id)
                case Transcribe():
                    self.talk.transcribed("over", job.id)
                case Reply():
                    del self.talk.jobs[job.id]
                    self.talk.report(Replied(job.id, "stop", 1, 0, 1))
                case _:
                    self.talk.spoke(job.id)
        for response_id in self.talk.heart.sounding:
            self.talk.step(on.PlayoutEnded(response_id))


TestSession = SessionMachine.TestCase
TestSession.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
