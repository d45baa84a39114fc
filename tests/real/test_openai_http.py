"""The `openai` package without a session, against a server with its real models."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from modalities.adapters.registry import build
from orchestrator.sessions.rules import DEFAULT_INSTRUCTIONS

pytestmark = pytest.mark.real

QUESTION = "What is the capital of France?"
ASKED: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": DEFAULT_INSTRUCTIONS},
    {"role": "user", "content": QUESTION},
]


def asking(url: str, test: Callable[[AsyncOpenAI], Awaitable[None]]) -> None:
    async def main() -> None:
        client = AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0, timeout=120)
        async with client, asyncio.timeout(120):
            await test(client)

    asyncio.run(main())


def test_model_answers_whole_and_in_a_stream_alike(server_url: str) -> None:
    """The same words both ways, ended before a stop where one is named; counts are the engine's."""

    async def test(client: AsyncOpenAI) -> None:
        whole = await client.chat.completions.create(model="m", messages=ASKED)
        text = whole.choices[0].message.content or ""
        assert "Paris" in text
        assert whole.usage is not None
        assert whole.usage.prompt_tokens > 10
        assert whole.usage.completion_tokens > 4
        stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(pieces) == text
        assert len([piece for piece in pieces if piece]) > 4
        stopped = await client.chat.completions.create(model="m", messages=ASKED, stop=" Paris")
        assert stopped.choices[0].message.content == text.partition(" Paris")[0]
        assert stopped.choices[0].finish_reason == "stop"

    asking(server_url, test)


def test_model_calls_a_tool_that_it_must_call(server_url: str) -> None:
    """With arguments of its schema."""

    async def test(client: AsyncOpenAI) -> None:
        reply = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "How is the weather in Paris?"}],
            tools=[
                {
                    "type": "function",
                    "function": {
                        "name": "get_weather",
                        "parameters": {
                            "type": "object",
                            "properties": {"city": {"type": "string"}},
                            "required": ["city"],
                        },
                    },
                }
            ],
            tool_choice="required",
        )
        assert reply.choices[0].finish_reason == "tool_calls"
        assert reply.choices[0].message.tool_calls is not None
        (call,) = reply.choices[0].message.tool_calls
        assert call.type == "function"
        assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Paris"}')

    asking(server_url, test)


def test_prompt_beyond_the_context_is_refused_not_cut(server_url: str) -> None:
    """A session would lose its oldest turns; a request is told."""

    async def test(client: AsyncOpenAI) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "word " * 5_000}]
            )
        assert caught.value.code == "context_length_exceeded"

    asking(server_url, test)


def test_vectors_are_the_embedding_models_own(server_url: str) -> None:
    """To the bit, whatever they come together with; a text that is longer than the model reads is refused."""
    texts = ["the cat sat on the mat", "a much longer text about something else entirely, and more of it"]
    model = build("embed", "minilm_onnx", {})
    own = [model.embed([text])[0] for text in texts]

    async def test(client: AsyncOpenAI) -> None:
        made = await client.embeddings.create(model="m", input=texts)
        for one, vector in zip(made.data, own, strict=True):
            assert np.array_equal(np.array(one.embedding, np.float32), vector)
        assert made.usage.prompt_tokens == sum(model.count(texts))
        with pytest.raises(openai.BadRequestError) as caught:
            await client.embeddings.create(model="m", input="word " * 400)
        assert caught.value.code == "context_length_exceeded"

    asking(server_url, test)


@pytest.mark.parametrize("kind", ["mp3", "opus", "wav"])
def test_sentence_that_is_spoken_is_heard_again(server_url: str, kind: str) -> None:
    """Whatever it is packed in; its subtitles begin and end with it."""

    async def test(client: AsyncOpenAI) -> None:
        spoken = await client.audio.speech.create(
            model="m",
            voice="v",
            input=QUESTION,
            response_format=kind,  # type: ignore[arg-type]  # one of the formats
        )
        heard = await client.audio.transcriptions.create(
            model="m", file=("speech", spoken.content), response_format="verbose_json", language="en"
        )
        assert "capital of France" in heard.text
        assert heard.segments is not None
        assert 0 <= heard.segments[0].start < heard.segments[-1].end <= heard.duration
        assert 1.0 < heard.duration < 5.0

    asking(server_url, test)
