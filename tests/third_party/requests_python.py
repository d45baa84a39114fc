"""The `openai` package without a session: the HTTP API."""

import json
from typing import Any

from openai import AsyncOpenAI, BadRequestError, NotFoundError

from tests.third_party.stage import STORY, TEXT, TOOL, WEATHER, Stage, must, peak

MODEL = "chorale"
TOOLS: Any = [{"type": "function", "function": {key: WEATHER[key] for key in WEATHER if key != "type"}}]
BEGINNINGS = {
    "mp3": (b"ID3", b"\xff\xfb", b"\xff\xf3"),
    "opus": (b"OggS",),
    "aac": (b"\xff\xf1",),
    "flac": (b"fLaC",),
    "wav": (b"RIFF",),
}


def asking(stage: Stage) -> AsyncOpenAI:
    return AsyncOpenAI(api_key="none", base_url=stage.url, max_retries=0)


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def words(client: AsyncOpenAI) -> str:
    """The same words whole and in a stream with its usage; a stream that is left early; a refusal by name."""
    create: Any = client.chat.completions.create
    whole = await create(model=MODEL, messages=user(TEXT))
    must(whole._request_id and whole.usage.total_tokens > 0, f"{whole}")
    options = {"include_usage": True}
    stream = await create(model=MODEL, messages=user(TEXT), stream=True, stream_options=options)
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    must(text == whole.choices[0].message.content, f"{text} is not {whole.choices[0].message.content}")
    must(chunks[-1].usage.completion_tokens == whole.usage.completion_tokens, f"{chunks[-1]}")
    must(chunks[-2].choices[0].finish_reason == "stop", f"{chunks[-2]}")
    async with await create(model=MODEL, messages=user(STORY), stream=True) as story:
        await anext(aiter(story))
    try:
        await create(model=MODEL, messages=user(TEXT), n=2)
    except BadRequestError as refused:
        must(refused.param == "n", f"{refused}")
    else:
        must(False, "two replies were promised")
    return text


async def calls(client: AsyncOpenAI) -> str:
    """A call whole and in a stream, and an answer with its output."""
    create: Any = client.chat.completions.create
    messages = user(TOOL)
    first = await create(model=MODEL, messages=messages, tools=TOOLS)
    message = first.choices[0].message
    must(first.choices[0].finish_reason == "tool_calls" and message.tool_calls, f"{first}")
    (call,) = message.tool_calls
    must(json.loads(call.function.arguments) == {"city": "Paris"}, f"{call}")
    output = {"role": "tool", "tool_call_id": call.id, "content": "sunny, 21 degrees"}
    then = await create(model=MODEL, messages=[*messages, message, output], tools=TOOLS)
    answer: str = then.choices[0].message.content or ""
    must("sunny" in answer, answer)
    async with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as stream:
        streamed: Any = await stream.get_final_completion()
    (call,) = streamed.choices[0].message.tool_calls
    must(json.loads(call.function.arguments) == {"city": "Paris"}, f"{streamed}")
    return answer


async def chat(stage: Stage) -> str:
    async with asking(stage) as client:
        return f"{await words(client)} / {await calls(client)}"


async def transcribe(stage: Stage) -> str:
    """What is said in a file, in every form it can be told in."""
    async with asking(stage) as client:
        spoken = await client.audio.speech.create(
            model=MODEL, voice="alloy", input=TEXT, response_format="wav"
        )

        async def told(**form: Any) -> Any:
            create: Any = client.audio.transcriptions.create
            return await create(model=MODEL, file=("question.wav", spoken.content), language="en", **form)

        heard = await told(response_format="json")
        must("capital of France" in heard.text, heard.text)
        text = await told(response_format="text")
        must(text.strip() == heard.text, text)
        whole = await told(response_format="verbose_json", timestamp_granularities=["word", "segment"])
        must(whole.text == heard.text and whole.segments and len(whole.words) >= 5, f"{whole}")
        starts = [word.start for word in whole.words]
        must(starts == sorted(starts) and whole.duration > 1, f"{whole.words}")
        srt = await told(response_format="srt")
        must(srt.startswith("1\n00:00:00,") and " --> " in srt and "capital of France" in srt, srt)
        vtt = await told(response_format="vtt")
        must(vtt.startswith("WEBVTT\n") and "capital of France" in vtt, vtt)
        events = [event async for event in await told(stream=True)]
        deltas = "".join(event.delta for event in events if event.type == "transcript.text.delta")
        must(events[-1].type == "transcript.text.done" and events[-1].text == deltas, f"{events}")
        must("capital of France" in deltas, deltas)
        try:
            await client.audio.transcriptions.create(model=MODEL, file=("question.wav", b"this is no sound"))
        except BadRequestError:
            pass
        else:
            must(False, "words were heard in no sound")
        return f"{heard.text} / {len(whole.words)} words / {srt!r}"


async def speech(stage: Stage) -> str:
    """A text is spoken in every format, as it is made, and in events."""
    sizes = []
    async with asking(stage) as client:
        create: Any = client.audio.speech.create
        for kind, beginnings in BEGINNINGS.items():
            spoken = (await create(model=MODEL, voice="alloy", input=TEXT, response_format=kind)).content
            must(spoken.startswith(beginnings), f"{kind} begins with {spoken[:8]!r}")
            sizes.append(f"{kind} {len(spoken)}")
        made = client.audio.speech.with_streaming_response.create
        async with made(model=MODEL, voice="alloy", input=TEXT, response_format="pcm", speed=1.5) as stream:
            must(peak(b"".join([piece async for piece in stream.iter_bytes()])) > 1_000, "silence")
        async with made(
            model=MODEL, voice="alloy", input=TEXT, response_format="pcm", stream_format="sse"
        ) as stream:
            told = [line[5:].strip() async for line in stream.iter_lines() if line.startswith("data:")]
        must(told.pop() == "[DONE]", "the stream has no end")
        events = [json.loads(one) for one in told]
        must(events[-1]["type"] == "speech.audio.done", f"{events[-1]}")
        must(any(event.get("audio") for event in events), "no sound in events")
        return ", ".join(sizes)


async def embed(stage: Stage) -> str:
    """Vectors in both encodings, and the models: all of them, one of them, one that is not there."""
    async with asking(stage) as client:
        texts = ["the weather in Paris", "how is the weather in Paris", "a king in a castle"]
        made = await client.embeddings.create(model=MODEL, input=texts)
        plain = await client.embeddings.create(model=MODEL, input=texts, encoding_format="float")
        must(made.data == plain.data, "the encodings differ")
        near, far = (
            sum(x * y for x, y in zip(made.data[0].embedding, other.embedding, strict=True))
            for other in made.data[1:]
        )
        must(near > far, f"{near} {far}")
        models = [model.id async for model in client.models.list()]
        must(MODEL in models and (await client.models.retrieve(MODEL)).id == MODEL, f"{models}")
        try:
            await client.models.retrieve("nobody")
        except NotFoundError:
            pass
        else:
            must(False, "there is a model that nobody has")
        return f"{near:.2f} > {far:.2f} / {models}"


SCENARIOS = {"chat": chat, "transcribe": transcribe, "speech": speech, "embed": embed}
