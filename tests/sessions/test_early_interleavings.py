"""A session with early replies beside one without: whatever happens when, clients see the same."""

from collections import Counter
from typing import Any
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.scheduling.work import (
    Replied,
    Reply,
    ReplyCall,
    ReplyText,
    Report,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
    Work,
)
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Shown, Talk

DELTA = "conversation.item.input_audio_transcription.delta"
WRITTEN = (
    ("Fine. ", "And how ", "are you? ", "Tell me."),
    ("One word",),
    ("👍", " ", "Well, that is so. No", " more. Or is there? ", "Yes. ", "One. Two. Three. Four. Five. Six."),
    (),
)


def answers(job_id: str, work: Work) -> list[Report]:
    """What workers say to this work, whenever they are asked."""
    match work:
        case Transcribe():
            count = (work.stop - work.start) // 8_000
            return [Transcribed(job_id, " ".join(f"w{n}" for n in range(count)))]
        case Reply():
            chance = crc32(repr(work.messages).encode())
            pieces: list[Report] = [ReplyText(job_id, text) for text in WRITTEN[chance % len(WRITTEN)]]
            if chance % 5 == 0:
                pieces.append(ReplyCall(job_id, 0, '{"a": 1}', "f"))
            return [*pieces, Replied(job_id, "stop", 10, 0, 5)]
        case Speak():
            pieces = [SpeechPiece(job_id, index, 24_000, 2_400) for index in range(len(work.text) // 8)]
            return [*pieces, Spoke(job_id, len(pieces))]
        case _:
            raise AssertionError(work)


class World:
    """A session, and workers that answer at once what was asked for certain, and guesses as far as they are told to."""

    def __init__(self, early: bool, kind: LinkKind, shown: bool) -> None:
        self.talk = Talk(rules=SessionRules(early_replies=early, draft_every_us=300_000), kind=kind)
        transcription = {"model": "x"} if shown else None
        self.talk.update(audio={"input": {"transcription": transcription}}, chorale={"typed_turns": True})
        self._kind = kind
        self._given: Counter[str] = Counter()
        self.finish()

    def certain(self, job_id: str) -> bool:
        """Whether the user's turn cannot go on differently from what this job is about."""
        job = self.talk.jobs[job_id]
        if self.talk.heart.holds(job_id):
            return False
        return not (job.speculative and isinstance(job.work, Transcribe) and self._user_is_speaking())

    def _user_is_speaking(self) -> bool:
        marks = ("speech_started", "speech_stopped", "cleared")
        said = [event["type"].rpartition(".")[2] for event in self.talk.log]
        return next((type == "speech_started" for type in reversed(said) if type in marks), False)

    def answer(self, job_id: str) -> None:
        """Gives the next report of a job."""
        reports = answers(job_id, self.talk.jobs[job_id].work)
        report = reports[self._given[job_id]]
        self._given[job_id] += 1
        if self._given[job_id] == len(reports):
            del self.talk.jobs[job_id]
        self.talk.report(report)

    def finish(self) -> None:
        while job_id := next(filter(self.certain, self.talk.jobs), None):
            self.answer(job_id)
        for response_id in self.talk.heart.sounding:
            self.talk.step(on.PlayoutMoved(response_id, 10_000_000))
            self.talk.step(on.PlayoutEnded(response_id))

    def guess(self, which: int, reports: int) -> None:
        """Workers get on with what is not certain; without a report the work fails."""
        for turn in range(reports or 1):
            guesses = [job_id for job_id in self.talk.jobs if not self.certain(job_id)]
            if guesses and reports:
                self.answer(guesses[(which + turn) % len(guesses)])
            elif guesses:
                self.talk.failed(guesses[which % len(guesses)], "rate_limit_exceeded")
        self.finish()

    def do(self, step: str, number: int) -> None:
        match step:
            case "speak" | "be silent":
                for _ in range(number):
                    self.talk.hear(32, 0.95 if step == "speak" else 0.01)
                    self.finish()
            case "type":
                self.talk.typed(f"typed {number}")
            case "update":
                self.talk.update(instructions=f"Be {number}.")
            case "modality":
                self.talk.update(output_modalities=["text" if number % 2 else "audio"])
            case "delete":
                entries = list(self.talk.heart.conversation)
                if entries:
                    self.talk.client("conversation.item.delete", item_id=entries[number % len(entries)].id)
            case "come back":
                self.talk.step(on.LinkLeft("link"))
                self.finish()
                self.talk.step(on.LinkJoined("link", self._kind))
            case _:
                self.talk.client(step)
        self.finish()

    def seen(self) -> tuple[list[Shown], list[Shown], dict[str, str], dict[str, int]]:
        """The wire without what depends on time alone: when drafts were made, and how sound lies between words."""
        drafts, sound = [DELTA], ["output_audio_buffer.started"]
        shown = dict.fromkeys(self.talk.strict.transcripts, "")
        for event in self.talk.log:
            if event["type"] in drafts and event["item_id"] in shown:
                shown[event["item_id"]] += event["delta"]
        pieces = Counter(piece.item_id for piece in self.talk.sound)
        rest = [event for event in self.talk.log if event["type"] not in drafts + sound]
        return rest, [event for event in self.talk.log if event["type"] in sound], shown, dict(pieces)


STEPS = st.one_of(
    st.tuples(st.just("speak"), st.integers(1, 40)),
    st.tuples(st.just("be silent"), st.integers(1, 24)),
    st.tuples(st.just("guess"), st.integers(0, 3), st.integers(0, 12)),
    st.tuples(
        st.sampled_from(
            [
                "type",
                "update",
                "modality",
                "delete",
                "come back",
                "response.create",
                "response.cancel",
                "input_audio_buffer.commit",
                "input_audio_buffer.clear",
            ]
        ),
        st.integers(0, 3),
    ),
)


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(STEPS, max_size=24),
    turns=st.integers(1, 3),
    kind=st.sampled_from([LinkKind.WEBSOCKET, LinkKind.CALL]),
    shown=st.booleans(),
)
def test_early_replies_change_nothing_but_time(
    steps: list[tuple[Any, ...]], turns: int, kind: LinkKind, shown: bool
) -> None:
    """Design §5.5: guesses come true or are dropped, with any part of their answers in; event for event, id for id, the
    wire is that of a session which makes none. Every guess was taken over or taken back, and none twice."""
    with_guesses, without = World(True, kind, shown), World(False, kind, shown)
    for turn in range(turns):
        for name, number in (("speak", 20), ("be silent", 6)):
            with_guesses.do(name, number)
            without.do(name, number)
        for step, *numbers in steps[turn::turns]:
            if step == "guess":
                with_guesses.guess(*numbers)
            else:
                with_guesses.do(step, *numbers)
                without.do(step, *numbers)
    for world in (with_guesses, without):
        world.do("be silent", 40)
    assert with_guesses.seen() == without.seen()
    assert not without.talk.heart.early.replies_started
    _every_guess_ended_once(with_guesses.talk)


def _every_guess_ended_once(talk: Talk) -> None:
    started = [
        effect.job.id for effect in talk.effects if isinstance(effect, do.Start) and effect.job.speculative
    ]
    cancelled = Counter(effect.job_id for effect in talk.effects if isinstance(effect, do.Cancel))
    assert all(cancelled[job_id] <= 1 for job_id in started)
    assert not talk.jobs
    assert not any(talk.heart.holds(job_id) for job_id in started)
    early = talk.heart.early
    assert early.replies_started == early.replies_used + early.replies_dropped
    assert early.transcripts_started == early.transcripts_used + early.transcripts_dropped
