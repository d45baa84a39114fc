"""The OpenAI HTTP API of a whole server, with engines that are scripts."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam
from websockets.asyncio.client import connect

from orchestrator.app import Application
from orchestrator.settings import load
from tests.test_app import SCRIPTED, free_port, readiness, running

HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "one two three four"}]
ENDLESS = {"CHORALE_WORKERS__LLM__OPTIONS": json.dumps({"pause_ms": 100, "default": "word " * 10_000})}
TEXT = {"output_modalities": ["text"]}
SLOW = {"CHORALE_WORKERS__LLM__OPTIONS": json.dumps({"pause_ms": 20, "default": "word " * 100})}


def stopping(
    test: Callable[[Application, AsyncOpenAI], Awaitable[None]], environment: dict[str, str]
) -> None:
    """Runs a test that stops the server itself; the server then ends in good order."""

    async def main() -> None:
        port = free_port()
        application = Application(load(None, {**SCRIPTED, **environment}, {"server.port": port}))
        async with asyncio.timeout(120):
            serving = asyncio.create_task(application.run())
            async with await client(port) as asking:
                await test(application, asking)
            await serving
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


async def client(port: int) -> AsyncOpenAI:
    await readiness(port, lambda answer: answer.status_code == 200)
    return AsyncOpenAI(api_key="none", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)


def test_requests_are_answered_by_the_workers_of_the_server() -> None:
    """Chat up to a stop with its counts, vectors of unit length, and a text that is spoken and heard."""

    async def test(_: Application, port: int) -> None:
        async with await client(port) as asking:
            reply = await asking.chat.completions.create(model="m", messages=HI, stop="two", seed=1)
            assert reply.choices[0].message.content == "You said: one "
            assert reply.choices[0].finish_reason == "stop"
            assert reply.usage is not None
            assert (reply.usage.prompt_tokens, reply.usage.completion_tokens > 0) == (4, True)
            made = await asking.embeddings.create(model="m", input=["a b", "c"])
            assert [round(sum(x * x for x in one.embedding), 4) for one in made.data] == [1.0, 1.0]
            spoken = await asking.audio.speech.create(model="m", voice="v", input="Hello there.")
            heard = await asking.audio.transcriptions.create(model="m", file=("a.mp3", spoken.content))
            assert heard.text == "hello"
            assert {one.id for one in (await asking.models.list()).data} == {"chorale", "scripted"}

    running(test)


def test_talk_is_answered_while_requests_never_end() -> None:
    """Eight requests that write for ever, of more than the four places that there are: a session that is opened then
    gets its first word, and its place is not one that somebody had to give up."""

    async def test(_: Application, port: int) -> None:
        async with await client(port) as asking:
            streams = [
                asyncio.ensure_future(asking.chat.completions.create(model="m", messages=HI, stream=True))
                for _ in range(8)
            ]
            await asyncio.wait(streams, return_when=asyncio.FIRST_COMPLETED)
            async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
                item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
                await link.send(json.dumps({"type": "conversation.item.create", "item": item}))
                await link.send(json.dumps({"type": "response.create", "response": TEXT}))
                while json.loads(await link.recv())["type"] != "response.output_text.delta":
                    pass
            writing = [one for one in streams if one.done()]
            assert 1 <= len(writing) <= 3
            for one in streams:
                one.cancel()
            for one in writing:
                await (await one).close()

    running(test, ENDLESS)


def test_reply_that_is_being_streamed_is_finished_before_the_server_stops() -> None:
    """Who stops the server waits for it; nothing new is begun meanwhile."""

    async def test(application: Application, asking: AsyncOpenAI) -> None:
        stream = await asking.chat.completions.create(model="m", messages=HI, stream=True)
        chunks = [await anext(aiter(stream))]
        application.stop()
        chunks += [chunk async for chunk in stream]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert text.split() == ["word"] * 100

    stopping(test, SLOW)


def test_reply_that_takes_too_long_is_cut_with_a_reason_when_the_server_stops() -> None:
    """A server that may not wait ends the stream with an error, so that nobody takes it for the whole reply."""

    async def test(application: Application, asking: AsyncOpenAI) -> None:
        stream = await asking.chat.completions.create(model="m", messages=HI, stream=True)
        await anext(aiter(stream))
        application.stop()

        async def read() -> None:
            async for _ in stream:
                pass

        with pytest.raises(openai.APIError, match="shutting down"):
            await read()

    stopping(test, {**ENDLESS, "CHORALE_SERVER__DRAIN_S": "0"})
