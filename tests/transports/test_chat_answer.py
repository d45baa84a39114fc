"""Reports of a reply as chat completions: the same whole and in chunks."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from orchestrator.scheduling.work import Replied, ReplyCall, ReplyText, Report
from orchestrator.transports.chat_answer import Answer

TEXT = (ReplyText("j", "Hel"), ReplyText("j", "lo"), Replied("j", "stop", 7, 5, 2))
CALLS = (
    ReplyText("j", "Well."),
    ReplyCall("j", 0, "", "one"),
    ReplyCall("j", 0, '{"a":'),
    ReplyCall("j", 1, "{}", "two"),
    ReplyCall("j", 0, "1}"),
    Replied("j", "tool_calls", 1, 0, 9),
)


def answer(several_calls: bool = True) -> Answer:
    numbers = itertools.count(1)
    return Answer("chatcmpl_1", 5, "m", lambda: f"call_{next(numbers)}", several_calls)


async def told(reports: Sequence[Report]) -> AsyncIterator[Report]:
    for report in reports:
        yield report


def whole(reports: Sequence[Report], several_calls: bool = True) -> dict[str, Any]:
    completion: dict[str, Any] = json.loads(asyncio.run(answer(several_calls).whole(told(reports))))
    return completion


def chunks(reports: Sequence[Report], with_usage: bool = False) -> list[dict[str, Any]]:
    async def main() -> list[bytes]:
        return [chunk async for chunk in answer().chunks(told(reports), with_usage)]

    return [json.loads(chunk) for chunk in asyncio.run(main())]


def test_answer_as_a_whole_has_text_reason_and_counts() -> None:
    """Every field of the protocol, and what the tokens were."""
    assert whole(TEXT) == {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 2,
            "total_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 5},
        },
    }


def test_answer_as_a_whole_has_its_calls() -> None:
    """Pieces of calls that come in turns are put together, in the order of the calls."""
    message = whole(CALLS)["choices"][0]["message"]
    assert message["content"] == "Well."
    assert message["tool_calls"] == [
        {"function": {"arguments": '{"a":1}', "name": "one"}, "id": "call_1", "type": "function"},
        {"function": {"arguments": "{}", "name": "two"}, "id": "call_2", "type": "function"},
    ]
    assert whole(CALLS)["choices"][0]["finish_reason"] == "tool_calls"
    assert whole(CALLS[1:])["choices"][0]["message"]["content"] is None


def test_answer_without_parallel_calls_has_the_first_one() -> None:
    """Whoever can do one thing at a time is asked for one."""
    (call,) = whole(CALLS, several_calls=False)["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"arguments": '{"a":1}', "name": "one"}


def test_answer_in_chunks_begins_with_the_role_and_ends_with_the_reason() -> None:
    """Same id throughout; no usage where nobody asked for it."""
    got = chunks(TEXT)
    assert [chunk["choices"][0]["delta"] for chunk in got] == [
        {"role": "assistant", "content": ""},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in got] == [None, None, None, "stop"]
    assert {(chunk["id"], chunk["object"], chunk["created"], chunk["model"]) for chunk in got} == {
        ("chatcmpl_1", "chat.completion.chunk", 5, "m")
    }
    assert not any("usage" in chunk for chunk in got)


def test_answer_in_chunks_ends_with_its_usage_where_asked() -> None:
    """Every chunk has the field; only the last, which has no choice, has numbers."""
    got = chunks(TEXT, with_usage=True)
    assert [chunk["usage"] for chunk in got[:-1]] == [None] * 4
    assert got[-1]["choices"] == []
    assert got[-1]["usage"]["total_tokens"] == 9


def test_answer_in_chunks_names_a_call_once() -> None:
    """Id, type and name come with a call's first piece; all pieces together are the whole."""
    pieces = [call for chunk in chunks(CALLS) for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert pieces == [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "one", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a":'}},
        {"index": 1, "id": "call_2", "type": "function", "function": {"name": "two", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": "1}"}},
    ]


def test_answer_that_was_cut_says_so_though_it_calls() -> None:
    """A call without its end is not to be made."""
    cut = (ReplyCall("j", 0, "{", "one"), Replied("j", "length", 1, 0, 1))
    assert whole(cut)["choices"][0]["finish_reason"] == "length"
    assert chunks(cut)[-1]["choices"][0]["finish_reason"] == "length"
