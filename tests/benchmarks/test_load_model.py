"""The simulated accelerator: what its model says, and that the engine keeps to it."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load.accelerator import SimulatedLanguageModel, make
from benchmarks.load.model import Decoding, Replies, jittered
from modalities.ports import ChatMessage, Prompt, ReplyDelta, TextDelta

STEADY = Replies(jitter=0.0)
TINY = Replies(memory_mb=200.0, weights_mb=100.0, mb_per_token=1.0, jitter=0.0)
"""Room for a hundred tokens."""


def test_step_takes_longer_by_less_than_it_gives() -> None:
    """More replies inside make a step longer, and tokens per second more."""
    steps = [STEADY.step_s(count) for count in (1, 8, 64)]
    rates = [count / step for count, step in zip((1, 8, 64), steps, strict=True)]
    assert steps == sorted(steps)
    assert rates == sorted(rates)


def test_strain_begins_where_it_says_and_is_whole_where_memory_is_full() -> None:
    """Nothing up to `strain_from`, `strain` at full memory and not more beyond."""
    assert STEADY.strain_at(0.5) == STEADY.strain_at(STEADY.strain_from) == 1.0
    assert STEADY.strain_at(1.0) == STEADY.strain_at(1.3) == pytest.approx(STEADY.strain)
    assert 1.0 < STEADY.strain_at(0.95) < STEADY.strain


def test_lengths_are_those_of_the_number() -> None:
    """The same turn is as long in every run; different turns differ."""
    assert STEADY.length_of(7) == STEADY.length_of(7)
    assert len({STEADY.length_of(number) for number in range(50)}) > 25


def test_jitter_has_mean_one() -> None:
    """A jittered second is a second on the average, and without jitter exactly."""
    chance = Random(1)
    drawn = [jittered(1.0, 0.3, chance) for _ in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(1.0, abs=0.01)
    assert jittered(1.0, 0.0, chance) == 1.0


def test_decoding_gives_every_reply_its_tokens() -> None:
    """Each reply is told as many tokens as it was asked for, and then it is gone with its memory."""
    decoding = Decoding(STEADY, Random(1))
    asked = {"a": 3, "b": 1, "c": 5}
    for key, output in asked.items():
        decoding.add(key, 10, output)
    told = dict.fromkeys(asked, 0)
    while len(decoding):
        for key in decoding.step().told:
            told[key] += 1
    assert told == asked
    assert decoding.memory_share == STEADY.memory_share(0)


def test_prefill_holds_everybody_up_once() -> None:
    """The step in which a prompt comes in takes its prefill longer than the next one."""
    decoding = Decoding(STEADY, Random(1))
    decoding.add("a", 1_000, 5)
    first, second = decoding.step(), decoding.step()
    assert first.took_s - second.took_s == pytest.approx(STEADY.prefill_s(1_000))


def test_who_has_no_memory_waits_in_order() -> None:
    """A prompt that does not fit waits until others have left, and nobody overtakes it."""
    decoding = Decoding(TINY, Random(1))
    for key, context in (
        (
            "a",
            80,
        ),
        ("b", 50),
        ("c", 10),
    ):
        decoding.add(key, context, 2)
    assert decoding.step().told == ("a",)
    assert decoding.memory_share > 1
    assert decoding.step().ended == ("a",)
    assert decoding.step().told == ("b", "c")


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 20)), max_size=20), st.data())
def test_decoding_forgets_nobody_and_no_memory(asked: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whoever is taken out meanwhile, the others end, and the memory is as empty as before."""
    decoding = Decoding(TINY, Random(1))
    for number, (context, output) in enumerate(asked):
        decoding.add(f"{number}", context, output)
    dropped = data.draw(st.sets(st.integers(0, max(0, len(asked) - 1))))
    ended: set[str] = set()
    if asked:
        ended |= set(decoding.step().ended)
    decoding.drop(f"{number}" for number in dropped)
    while len(decoding):
        ended |= set(decoding.step().ended)
    assert {f"{number}" for number in range(len(asked))} - {f"{number}" for number in dropped} <= ended
    assert decoding.memory_share == TINY.memory_share(0)


def test_engine_says_as_many_words_as_the_model_draws() -> None:
    """The engine emits what `length_of` says of the last words of the user, and tells both lengths."""
    model = Replies(step_ms=0.1, step_ms_per_reply=0.0, prefill_ms=0.1, output_tokens=6.0)
    engine = SimulatedLanguageModel(model, Random(1))
    said: list[ReplyDelta] = []
    prompt = Prompt((ChatMessage("user", "turn 3"),))

    def hear(delta: ReplyDelta) -> bool:
        said.append(delta)
        return True

    end = engine.generate(prompt, hear)
    assert end.output_tokens == len(said) > 0
    assert end.finish_reason == "stop"
    assert all(isinstance(delta, TextDelta) for delta in said)
    again = engine.generate(prompt, lambda delta: True)
    assert (again.input_tokens, again.output_tokens) == (end.input_tokens, end.output_tokens)
    bounded = engine.generate(Prompt((ChatMessage("user", "turn 3"),), max_tokens=1), lambda delta: True)
    assert bounded.output_tokens == 1


def test_engine_stops_where_nobody_listens() -> None:
    """Once `emit` says no, the reply ends as cancelled and holds no memory."""
    engine = SimulatedLanguageModel(Replies(step_ms=0.1, output_tokens=500.0), Random(1))
    end = engine.generate(Prompt((ChatMessage("user", "turn 1"),)), lambda delta: False)
    assert end.finish_reason == "cancelled"
    assert engine.memory_share() == pytest.approx(16_000 / 24_000)


def test_engine_raises_what_its_listener_raises() -> None:
    """A fault of whoever takes the tokens comes out of that call, and the next one works."""
    engine = SimulatedLanguageModel(Replies(step_ms=0.1), Random(1))

    def fail(delta: ReplyDelta) -> bool:
        raise RuntimeError("broken pipe")

    with pytest.raises(RuntimeError, match="broken pipe"):
        engine.generate(Prompt((ChatMessage("user", "turn 1"),)), fail)
    assert engine.generate(Prompt((ChatMessage("user", "turn 1"),)), lambda delta: True).output_tokens > 0


def test_make_knows_its_roles() -> None:
    """An unknown role or option is an error, not a default."""
    with pytest.raises(ValueError, match="roles"):
        make({"role": "speech"})
    with pytest.raises(TypeError):
        make({"role": "asr", "speed": 3})
