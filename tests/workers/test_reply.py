"""Reply jobs become prompts, deltas become reports, cancels stop the engine."""

from collections.abc import Callable

import pytest

from modalities.ports import (
    ChatMessage,
    Completion,
    Image,
    Prompt,
    ReplyDelta,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
)
from orchestrator.scheduling.work import (
    CallSpec,
    Picture,
    PromptMessage,
    Replied,
    Reply,
    ReplyCall,
    ReplyText,
    Report,
    Speak,
    ToolSpec,
)
from orchestrator.workers.frames import Task
from orchestrator.workers.reply import Replier, prompt_of

HELLO = Reply((PromptMessage("user", "hello"),))


class _Model:
    """Emits what it was made with and counts the steps it took."""

    def __init__(self, *deltas: ReplyDelta) -> None:
        self.deltas = deltas
        self.steps = 0
        self.prompts: list[Prompt] = []

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        self.prompts.append(prompt)
        for delta in self.deltas:
            self.steps += 1
            if not emit(delta):
                return Completion("cancelled", 3, 2, self.steps)
        return Completion("stop", 3, 2, self.steps)


def test_replier_tells_text_calls_and_the_end_in_order() -> None:
    """Every delta becomes a report; the end carries the counts."""
    told: list[Report] = []
    model = _Model(TextDelta("Hi"), ToolCallDelta(0, "", "f", "c1"), ToolCallDelta(0, "{}"))
    Replier(model).do([Task("j", HELLO)], told.append, lambda _: True)
    assert told == [
        ReplyText("j", "Hi"),
        ReplyCall("j", 0, "", "f"),
        ReplyCall("j", 0, "{}"),
        Replied("j", "stop", 3, 2, 3),
    ]


def test_replier_tells_nothing_where_the_engine_only_asks() -> None:
    """A text delta without text asks whether the job is still wanted: answered, and not told."""
    told: list[Report] = []
    model = _Model(TextDelta(""), TextDelta("Hi"), TextDelta(""), TextDelta("late"))
    Replier(model).do([Task("j", HELLO)], told.append, lambda _: model.steps < 3)
    assert told == [ReplyText("j", "Hi"), Replied("j", "cancelled", 3, 2, 3)]


def test_replier_cancel_stops_the_engine_within_one_step() -> None:
    """After the cancel the engine learns it at its next delta, and that delta is not told."""
    told: list[Report] = []
    model = _Model(*(TextDelta(str(number)) for number in range(100)))
    Replier(model).do([Task("j", HELLO)], told.append, lambda _: len(told) < 4)
    assert model.steps == 5
    assert told == [*(ReplyText("j", str(number)) for number in range(4)), Replied("j", "cancelled", 3, 2, 5)]


def test_replier_other_work_is_a_fault() -> None:
    """A sentence to say is no prompt."""
    with pytest.raises(TypeError):
        Replier(_Model()).do([Task("j", Speak("x"))], lambda _: None, lambda _: True)


def test_replier_probe_asks_for_very_little() -> None:
    """A real generation, short enough for every start."""
    model = _Model(TextDelta("x"))
    assert Replier(model).probe() == "_Model"
    assert (model.steps, model.prompts[0].max_tokens) == (1, 2)


def test_prompt_says_everything_the_job_says() -> None:
    """Messages, calls, tools and limits arrive unchanged."""
    work = Reply(
        (
            PromptMessage("system", "Be kind."),
            PromptMessage("assistant", "", (CallSpec("c1", "f", "{}"),)),
            PromptMessage("tool", "42", tool_call_id="c1"),
        ),
        (ToolSpec("f", "does f", '{"type":"object"}'),),
        "=f",
        17,
        0.5,
        "key",
    )
    prompt = prompt_of(work, "j")
    assert prompt.messages == (
        ChatMessage("system", "Be kind."),
        ChatMessage("assistant", "", (ToolCall("c1", "f", "{}"),)),
        ChatMessage("tool", "42", tool_call_id="c1"),
    )
    assert prompt.tools == (Tool("f", "does f", '{"type":"object"}'),)
    assert (prompt.tool_choice, prompt.max_tokens, prompt.temperature, prompt.cache_key) == (
        "=f",
        17,
        0.5,
        "key",
    )


def test_prompt_seed_is_the_job_s_own() -> None:
    """A repeat of a job says the same again, another job something else; the seed fits every engine's integer."""
    seeds = [prompt_of(HELLO, f"job_{number}").seed for number in range(100)]
    assert prompt_of(HELLO, "job_7").seed == seeds[7]
    assert len(set(seeds)) == 100
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)


def test_prompt_has_the_images_of_the_job() -> None:
    """As data URIs, with the client's wish for detail; their names stay with the server."""
    images = (Picture("chorale:image:1", "low", "data:image/png;base64,AA"),)
    prompt = prompt_of(Reply((PromptMessage("user", "Look", images=images),)), "job")
    assert prompt.messages == (
        ChatMessage("user", "Look", images=(Image("data:image/png;base64,AA", "low"),)),
    )


def test_replier_ends_before_a_text_that_is_named() -> None:
    """The stop and what follows are not told, whatever pieces they come in; the engine stops, and its counts are told
    as of a reply that ended by itself."""
    told: list[Report] = []
    model = _Model(*(TextDelta(text) for text in ("one E", "N", "D two", "three")))
    Replier(model).do([Task("j", Reply(HELLO.messages, stop=("END",)))], told.append, lambda _: True)
    assert told == [ReplyText("j", "one "), Replied("j", "stop", 3, 2, 3)]


def test_replier_tells_what_it_held_back() -> None:
    """What only began like a stop is told with the end, or before a call."""
    work = Reply(HELLO.messages, stop=("END",))
    for more, finish in (((), "stop"), ((ToolCallDelta(0, "{}", "f", "c"),), "stop")):
        told: list[Report] = []
        Replier(_Model(TextDelta("one E"), *more)).do([Task("j", work)], told.append, lambda _: True)
        assert told[:2] == [ReplyText("j", "one "), ReplyText("j", "E")]
        assert isinstance(told[-1], Replied)
        assert told[-1].finish_reason == finish


def test_replier_that_is_cancelled_tells_no_rest() -> None:
    """Nobody wants what was held back either."""
    told: list[Report] = []
    model = _Model(TextDelta("one E"), TextDelta("x"))
    work = Reply(HELLO.messages, stop=("END",))
    Replier(model).do([Task("j", work)], told.append, lambda _: model.steps < 2)
    assert told == [ReplyText("j", "one "), Replied("j", "cancelled", 3, 2, 2)]


@pytest.mark.parametrize(("seed", "expected"), [(7, 7), (0, 0), (-1, 0x7FFF_FFFF), (2**40 + 3, 3)])
def test_prompt_seed_is_the_works_where_it_has_one(seed: int, expected: int) -> None:
    """Whatever the job; it fits every engine's integer."""
    assert {prompt_of(Reply(HELLO.messages, seed=seed), id).seed for id in "ab"} == {expected}


def test_prompt_is_whole_where_the_work_says_so() -> None:
    """A session's prompts may be shortened, as ever."""
    assert prompt_of(Reply(HELLO.messages, whole=True), "j").whole
    assert not prompt_of(HELLO, "j").whole
