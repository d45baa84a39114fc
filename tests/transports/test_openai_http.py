"""Chat and embeddings over HTTP, by the stock client: told as it comes, taken back when it leaves, refused in time."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import (
    Failed,
    PromptMessage,
    Replied,
    Reply,
    ReplyCall,
    ReplyText,
    Report,
)
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.openai_door import MAX_TEXT_BYTES
from tests.fakes.workers import obliging
from tests.transports.asking import Asked, asking
from tests.transports.running import until

HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
TOOLS: Any = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}},
]
RING = KeyRing(
    [
        Key(digest_of("sk-acme"), Principal("acme", Tier.PLATINUM)),
        Key(digest_of("sk-lab"), Principal("lab", Tier.SILVER)),
    ]
)


def silent(job: Job) -> Sequence[Report]:
    return []


def first_word(job: Job) -> Sequence[Report]:
    return [ReplyText(job.id, "one")]


def test_chat_is_answered_whole_and_in_a_stream_alike() -> None:
    """The stock client gets the same text, reason and counts both ways."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            whole = await client.chat.completions.create(model="m", messages=HI)
            stream = await client.chat.completions.create(
                model="m", messages=HI, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == whole.choices[0].message.content == "You said: hi."
        assert whole.choices[0].finish_reason == chunks[-2].choices[0].finish_reason == "stop"
        assert chunks[-1].usage == whole.usage
        assert whole.usage is not None
        assert whole.usage.total_tokens == 2

    asking(test)


def test_chat_calls_a_tool_and_goes_on_with_its_output() -> None:
    """The loop that every agent runs: a call, its output, an answer."""

    def weather(job: Job) -> Sequence[Report]:
        assert isinstance(job.work, Reply)
        if job.work.messages[-1].role == "tool":
            return [ReplyText(job.id, f"It is {job.work.messages[-1].content}."), Replied(job.id, "stop")]
        call = ReplyCall(job.id, 0, '{"city":"Paris"}', "get_weather")
        return [call, Replied(job.id, "tool_calls")]

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            first = await client.chat.completions.create(model="m", messages=HI, tools=TOOLS)
            message = first.choices[0].message
            assert message.tool_calls is not None
            (call,) = message.tool_calls
            assert call.type == "function"
            assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Paris"}')
            output: Any = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
            said: Any = message.model_dump(exclude_none=True)
            then = await client.chat.completions.create(model="m", messages=[*HI, said, output], tools=TOOLS)
            assert then.choices[0].message.content == "It is sunny."
        prompt = asked.workers.jobs[1].work
        assert isinstance(prompt, Reply)
        assert prompt.messages[2] == PromptMessage("tool", "sunny", (), call.id)

    asking(test, weather)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_of_a_client_that_leaves_is_taken_back(stream: bool) -> None:
    """Before the first word, the work leaves the queue and the worker; nobody is answered."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            body = {"messages": HI, "stream": stream}
            posting = asyncio.create_task(client.post("/v1/chat/completions", json=body))
            await until(lambda: bool(asked.workers.jobs))
            assert asked.waiting == 1
            posting.cancel()
            await asyncio.gather(posting, return_exceptions=True)
        await until(lambda: asked.waiting == 0)
        await until(lambda: len(asked.openai.errands) == 0)

    asking(test, silent)


def test_chat_stream_that_is_left_in_the_middle_is_taken_back() -> None:
    """Between two words, too."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            stream = await client.chat.completions.create(model="m", messages=HI, stream=True)
            await anext(aiter(stream))
            assert asked.waiting == 1
            await stream.close()
        await until(lambda: asked.waiting == 0)

    asking(test, first_word)


def test_chat_that_is_refused_has_its_status_though_it_is_a_stream() -> None:
    """Nothing is begun before there is a first word: the client library sees the error, not a broken stream."""

    def too_long(job: Job) -> Sequence[Report]:
        return [Failed(job.id, "context_length_exceeded", "too long")]

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            for stream in (False, True):
                with pytest.raises(openai.BadRequestError) as caught:
                    await client.chat.completions.create(model="m", messages=HI, stream=stream)
                assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")
        assert len(asked.workers.jobs) == 2

    asking(test, too_long)


def test_chat_stream_that_fails_in_the_middle_says_so() -> None:
    """The words so far stay; then the client library raises what the server says."""

    def breaks_off(job: Job) -> Sequence[Report]:
        return [ReplyText(job.id, "one"), Failed(job.id, "worker_failed", "the language model failed")]

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            stream = await client.chat.completions.create(model="m", messages=HI, stream=True)
            said: list[str | None] = []

            async def read() -> None:
                async for chunk in stream:
                    said.append(chunk.choices[0].delta.content)  # noqa: PERF401 - what came before the error counts

            with pytest.raises(openai.APIError, match="the language model failed"):
                await read()
            assert said == ["", "one"]

    asking(test, breaks_off)


def test_chat_without_room_is_tried_again_when_the_server_says() -> None:
    """503 with a time: the stock client comes back by itself, and is answered."""

    def busy_once() -> Any:
        tries = 0

        def answer(job: Job) -> Sequence[Report]:
            nonlocal tries
            tries += 1
            if tries == 1:
                return [Failed(job.id, "rate_limit_exceeded", "no room", 0.1, "queue_full")]
            return obliging(job)

        return answer

    async def test(asked: Asked) -> None:
        async with asked.sdk(retries=2) as client:
            reply = await client.chat.completions.create(model="m", messages=HI)
        assert reply.choices[0].message.content == "You said: hi."
        async with asked.sdk() as client:
            await client.chat.completions.create(model="m", messages=HI)
        assert len(asked.workers.jobs) == 3

    asking(test, busy_once())


def test_chat_over_the_quota_is_429_with_a_time() -> None:
    """The second request in a minute where one is allowed."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            await client.chat.completions.create(model="m", messages=HI)
            with pytest.raises(openai.RateLimitError) as caught:
                await client.chat.completions.create(model="m", messages=HI)
            assert int(caught.value.response.headers["Retry-After"]) >= 1
            with pytest.raises(openai.RateLimitError):
                await client.embeddings.create(model="m", input="hi")

    asking(test, requests=1)


def test_chat_at_silver_waits_behind_platinum() -> None:
    """Requests stand in the same queue as sessions, by the tier of their key."""

    async def test(asked: Asked) -> None:
        async with asked.sdk("sk-lab") as lab, asked.sdk("sk-acme") as acme:
            await lab.chat.completions.create(model="m", messages=HI)
            await acme.chat.completions.create(model="m", messages=HI)
        assert [(job.tier, job.level) for job in asked.workers.jobs] == [(Tier.SILVER, 3), (Tier.PLATINUM, 1)]

    asking(test, ring=RING)


def test_requests_without_a_key_are_refused_before_their_body_is_read() -> None:
    """The answer comes though the body never does; a client secret is no key for these routes."""

    async def test(asked: Asked) -> None:
        async with asked.sdk("sk-wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.chat.completions.create(model="m", messages=HI)
        reader, writer = await asyncio.open_connection("127.0.0.1", asked.running.port)
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 1000000\r\n\r\n".encode())
        assert b"401" in await reader.readline()
        writer.close()
        async with asked.http(Authorization="Bearer sk-acme") as client_:
            made = (await client_.post("/v1/realtime/client_secrets", json={})).json()
        async with asked.sdk(made["value"]) as client:
            with pytest.raises(openai.PermissionDeniedError):
                await client.chat.completions.create(model="m", messages=HI)

    asking(test, ring=RING)


def test_body_of_a_chat_is_bounded() -> None:
    """More than 1 MiB is 413, and nothing is asked of a model."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            body = b'{"messages":[{"role":"user","content":"' + b"a" * MAX_TEXT_BYTES + b'"}]}'
            headers = {"Content-Type": "application/json"}
            try:
                answer = await client.post("/v1/chat/completions", content=body, headers=headers)
            except httpx.TransportError:
                pass  # closed while the rest was being sent
            else:
                assert answer.status_code == 413
        assert asked.workers.jobs == []

    asking(test)


def test_answers_carry_what_the_client_library_looks_for() -> None:
    """An id for support, how long it took, no cache; chunks pass through proxies as they come."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post("/v1/chat/completions", json={"messages": HI})
            assert answer.headers["x-request-id"].startswith("req_")
            assert int(answer.headers["openai-processing-ms"]) >= 0
            assert answer.headers["cache-control"] == "no-store"
            stream = await client.post("/v1/chat/completions", json={"messages": HI, "stream": True})
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["x-accel-buffering"] == "no"
            assert "no-transform" in stream.headers["cache-control"]
            assert stream.text.endswith("data: [DONE]\n\n")

    asking(test)


@pytest.mark.parametrize(
    ("fields", "param", "told"),
    [
        ({"messages": []}, "messages", "at least 1 item"),
        ({}, "messages", "required"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content", "valid"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages.0.content.0.type", "required"),
        ({"messages": [{"role": "robot"}]}, "messages.0.role", "'system'"),
        ({"messages": HI, "stop": [1]}, "stop.0", "string"),
        ({"messages": HI, "stop": ["a"] * 5}, "stop", "at most 4 items"),
        ({"messages": HI, "tool_choice": "perhaps"}, "tool_choice", "'none'"),
        ({"messages": HI, "stream": "perhaps"}, "stream", "boolean"),
    ],
)
def test_chat_that_is_no_request_names_the_field(fields: dict[str, object], param: str, told: str) -> None:
    """As the protocol names it, whatever the field may be; the words are those of what was nearest to being right."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post("/v1/chat/completions", json=fields)
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, param)
        assert told in error["message"]

    asking(test)


def test_requests_are_not_begun_while_the_server_stops() -> None:
    """503 with a time to come back: another server may be there by then."""

    async def test(asked: Asked) -> None:
        asked.running.house.entrance.close()
        async with asked.http() as client:
            answer = await client.post("/v1/chat/completions", json={"messages": HI})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "server_shutting_down")
        assert int(answer.headers["Retry-After"]) >= 1
        assert asked.workers.jobs == []

    asking(test)
