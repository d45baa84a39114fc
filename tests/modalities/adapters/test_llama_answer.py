"""Streamed chunks become deltas and a completion."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.llama_answer import Answer, CallAnswer, TextAnswer
from modalities.adapters.llama_server import TooLong
from modalities.adapters.reply_end import ReplyEnd
from modalities.adapters.schema_grammar import object_language
from modalities.ports import ChatMessage, Completion, Prompt, ReplyDelta, TextDelta, ToolCallDelta

PROMPT = Prompt((ChatMessage("user", "weather in Oslo"),))
CITY = object_language({"properties": {"city": {"type": "string"}}, "required": ["city"]})
DAYS = object_language({"properties": {"days": {"type": "integer"}}, "required": ["days"]})


class Deltas(list[ReplyDelta]):
    """Keeps what is emitted; wants no more after `limit`."""

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self.limit = limit
        self.asked = 0

    def emit(self, delta: ReplyDelta) -> bool:
        if delta == TextDelta(""):
            self.asked += 1
        else:
            self.append(delta)
        return len(self) < self.limit


def text_chunk(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": None}]}


def end_chunks(reason: str = "stop", tokens: int = 5) -> list[dict[str, Any]]:
    usage = {"prompt_tokens": 20, "completion_tokens": tokens, "prompt_tokens_details": {"cached_tokens": 12}}
    return [{"choices": [{"delta": {}, "finish_reason": reason}]}, {"choices": [], "usage": usage}]


def progress(total: int) -> dict[str, Any]:
    return {"choices": [], "prompt_progress": {"total": total, "cache": 3, "processed": 3}}


def feed(answer: Answer, chunks: list[dict[str, Any]]) -> None:
    answer.room = 100
    for chunk in chunks:
        if not answer.take(chunk):
            return


def test_text_answer_passes_tokens_and_counts_on() -> None:
    """Every chunk with text is one delta; usage is the engine's."""
    deltas = Deltas()
    answer = TextAnswer(deltas.emit, None, PROMPT)
    feed(
        answer, [progress(20), text_chunk("Hi"), text_chunk(""), text_chunk(" there"), *end_chunks("length")]
    )
    assert deltas == [TextDelta("Hi"), TextDelta(" there")]
    assert answer.completion() == Completion("length", 20, 12, 5)


def test_text_answer_cancelled_wants_no_more_and_still_counts() -> None:
    """After `emit` answered False the engine is stopped; tokens are those seen so far."""
    deltas = Deltas(limit=2)
    answer = TextAnswer(deltas.emit, None, PROMPT)
    feed(answer, [progress(20), *(text_chunk(str(n)) for n in range(9))])
    assert len(deltas) == 2
    assert answer.completion() == Completion("cancelled", 20, 3, 2)


def test_answer_asks_whether_it_is_wanted_while_the_prompt_is_computed() -> None:
    """Each step of a prompt asks; an answer of False ends it before there is any token."""
    deltas = Deltas(limit=0)
    answer = TextAnswer(deltas.emit, None, PROMPT)
    feed(answer, [progress(20), progress(20), text_chunk("Hi")])
    assert (deltas.asked, deltas) == (1, [])
    assert answer.completion() == Completion("cancelled", 20, 3, 0)


def test_answer_refuses_a_prompt_that_leaves_no_room_before_it_is_computed() -> None:
    """The count at the beginning decides."""
    answer = TextAnswer(Deltas().emit, None, PROMPT)
    with pytest.raises(TooLong) as caught:
        feed(answer, [progress(101)])
    assert (caught.value.tokens, caught.value.room) == (101, 100)


def test_text_answer_at_our_own_limit_ends_behind_its_sentence() -> None:
    """With our own limit the reply stops at a sentence, which is an end like any other."""
    deltas = Deltas()
    answer = TextAnswer(deltas.emit, ReplyEnd(2), PROMPT)
    feed(answer, [text_chunk(token) for token in ("A", " b", " c.", " D", " e")])
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "A b c."
    assert answer.completion().finish_reason == "stop"


def test_text_answer_cut_inside_a_sentence_says_so() -> None:
    """A sentence that our limit cuts ends behind a clause, as ``length``."""
    deltas = Deltas()
    answer = TextAnswer(deltas.emit, ReplyEnd(1), PROMPT)
    feed(answer, [*(text_chunk(token) for token in ("A", " b,", " c", " d")), *end_chunks("length")])
    assert answer.completion().finish_reason == "length"
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "A b"


def test_text_answer_takes_calls_that_a_model_makes_by_itself() -> None:
    """Calls in the engine's own form are passed on in pieces; one that was cut is ended to JSON."""

    def call_chunk(index: int, arguments: str, **rest: str) -> dict[str, Any]:
        piece = {"index": index, "function": {"arguments": arguments, **rest}}
        return {"choices": [{"delta": {"content": None, "tool_calls": [piece]}, "finish_reason": None}]}

    deltas = Deltas()
    answer = TextAnswer(deltas.emit, None, PROMPT)
    chunks = [
        call_chunk(0, "", name="get_time"),
        call_chunk(0, "{}"),
        call_chunk(1, '{"ci', name="get_weather"),
    ]
    feed(answer, [*chunks, call_chunk(1, 'ty":"Os'), *end_chunks("length")])
    end = answer.completion()
    assert end.finish_reason == "tool_calls"
    assert [(call.name, json.loads(call.arguments)) for call in end.tool_calls] == [
        ("get_time", {}),
        ("get_weather", {"city": "Os"}),
    ]
    assert len({call.call_id for call in end.tool_calls}) == 2
    written = ["", ""]
    for delta in deltas:
        assert isinstance(delta, ToolCallDelta)
        written[delta.index] += delta.arguments
    assert written == [call.arguments for call in end.tool_calls]


@given(st.data(), st.sampled_from(["stop", "length"]))
def test_call_answer_gives_whole_arguments_however_they_come(data: st.DataObject, reason: str) -> None:
    """In any pieces, cut or not: the name comes first and once, the pieces join to arguments of the schema."""
    wrapped = data.draw(st.booleans())
    languages = {"get_weather": CITY, "get_weather_days": DAYS} if wrapped else {"get_weather": CITY}
    text = '{"name":"get_weather","arguments":{"city":"Oslo"}}' if wrapped else '{"city":"Oslo"}'
    if reason == "length":
        text = text[: data.draw(st.integers(0, len(text)))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    deltas = Deltas()
    answer = CallAnswer(deltas.emit, languages, PROMPT)
    feed(answer, [*map(text_chunk, pieces), *end_chunks(reason)])
    end = answer.completion()
    calls = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert len(calls) == len(deltas)
    assert [delta.name for delta in calls if delta.name] == [end.tool_calls[0].name]
    assert calls[0].call_id == end.tool_calls[0].call_id
    assert "".join(delta.arguments for delta in calls) == end.tool_calls[0].arguments
    assert set(json.loads(end.tool_calls[0].arguments)) <= {"city", "days"}
    assert end.finish_reason == "tool_calls"


def test_call_answer_cancelled_is_not_ended() -> None:
    """Nobody waits for a call that was cancelled."""
    deltas = Deltas(limit=1)
    answer = CallAnswer(deltas.emit, {"get_weather": CITY}, PROMPT)
    feed(answer, [progress(9), text_chunk('{"city"'), text_chunk(":")])
    assert answer.completion().finish_reason == "cancelled"
    assert len(deltas) == 1


def test_call_answer_without_the_engine_writes_the_least_that_the_schema_allows() -> None:
    """Where llama.cpp cannot take a grammar there still is a call."""
    deltas = Deltas()
    end = CallAnswer(deltas.emit, {"get_weather": CITY}, PROMPT).least()
    assert json.loads(end.tool_calls[0].arguments) == {"city": ""}
    assert len(deltas) == 1
