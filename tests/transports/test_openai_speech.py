"""Speech over HTTP, by the stock client: sentence by sentence, in every format, sent while it is spoken."""

import asyncio
import base64
import json
from collections.abc import Sequence

import httpx
import numpy as np
import openai
import pytest

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Failed, Report, Speak, SpeechPiece, Spoke, WorkKind
from orchestrator.transports.media import MEDIA_TYPES, SpeechFormat
from orchestrator.transports.openai_speech import LONGEST_INPUT, RATE_HZ, sentences_of
from tests.transports.asking import MODELS, Asked, asking
from tests.transports.running import until
from tests.transports.test_media import pieces_of, pitch_hz, tone

ROUTE = "/v1/audio/speech"
TEXT = "Hello there. How are **you**?"
STEP = RATE_HZ // 5


def singing(job: Job) -> Sequence[Report]:
    """One second of a tone for every sentence, 200 ms at a time."""
    sound = tone(1.0, RATE_HZ).astype("<i2")
    pieces = [sound[at : at + STEP].tobytes() for at in range(0, len(sound), STEP)]
    told = [SpeechPiece(job.id, n, RATE_HZ, STEP, piece) for n, piece in enumerate(pieces)]
    return [*told, Spoke(job.id, len(told))]


def begins(job: Job) -> Sequence[Report]:
    """The first tenth of a second, and then nothing."""
    return [SpeechPiece(job.id, 0, RATE_HZ, STEP, tone(0.2, RATE_HZ).astype("<i2").tobytes())]


def said(asked: Asked) -> list[tuple[str, float]]:
    return [(job.work.text, job.work.speed) for job in asked.workers.jobs if isinstance(job.work, Speak)]


@pytest.mark.parametrize("kind", list(MEDIA_TYPES))
def test_speech_comes_in_the_format_that_is_asked_for(kind: SpeechFormat) -> None:
    """Two sentences of a second each, whatever they are packed in."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            spoken = await client.audio.speech.create(
                model="m", voice="alloy", input=TEXT, response_format=kind, speed=1.5
            )
        assert spoken.response.headers["content-type"] == MEDIA_TYPES[kind]
        if kind == "pcm":
            pcm = np.frombuffer(spoken.content, "<i2")
            assert len(pcm) == 2 * RATE_HZ
            assert abs(pitch_hz(pcm, RATE_HZ) - 440.0) < 2.0
        else:
            (piece,) = pieces_of(spoken.content)
            assert abs(len(piece.pcm) / 16_000 - 2.0) < 0.15
            assert abs(pitch_hz(piece.pcm) - 440.0) < 2.0
        assert said(asked) == [("Hello there.", 1.5), ("How are you?", 1.5)]

    asking(test, singing)


def test_speech_is_sent_while_it_is_spoken() -> None:
    """The first bytes are there though the sentence has not ended; leaving then takes it back."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            speaking = client.audio.speech.with_streaming_response
            async with speaking.create(model="m", voice="v", input=TEXT, response_format="pcm") as spoken:
                first = await anext(aiter(spoken.iter_bytes(100)))
                assert len(first) == 100
                assert asked.waiting == 1
        await until(lambda: asked.waiting == len(asked.openai.errands) == 0)
        assert len(said(asked)) == 1

    asking(test, begins)


def test_speech_as_events_is_the_same_file() -> None:
    """Base64 in deltas, an end with counts."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            body = {"input": TEXT, "response_format": "pcm", "voice": {"id": "v"}, "stream_format": "sse"}
            answer = await client.post(ROUTE, json=body)
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        assert lines[-1] == "[DONE]"
        events = [json.loads(line) for line in lines[:-1]]
        sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
        assert len(sound) == 2 * 2 * RATE_HZ
        assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
        assert events[-1]["type"] == "speech.audio.done"
        assert events[-1]["usage"]["total_tokens"] == 0

    asking(test, singing)


def test_speech_that_fails_before_it_begins_has_its_status() -> None:
    """A voice that is left out under pressure is 503 with a time, in either form."""

    def left_out(job: Job) -> Sequence[Report]:
        return [Failed(job.id, "rate_limit_exceeded", "short of time", 3.0, "shed")]

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            for form in ("audio", "sse"):
                answer = await client.post(ROUTE, json={"input": TEXT, "stream_format": form})
                assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3")

    asking(test, left_out)


def test_speech_that_fails_later_is_seen_to_be_cut(caplog: pytest.LogCaptureFixture) -> None:
    """The body never comes to its end: no client takes half a text for all of it. The log says why, in a line and not
    as a fault of the server."""

    def fails_later(job: Job) -> Sequence[Report]:
        if job.id.endswith("_1"):
            return singing(job)
        return [Failed(job.id, "worker_failed", "the voice failed")]

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.post(ROUTE, json={"input": TEXT, "response_format": "pcm"})
            events = await client.post(ROUTE, json={"input": TEXT, "stream_format": "sse"})
        assert json.loads(events.text.strip().splitlines()[-1][6:])["error"]["code"] == "worker_failed"

    asking(test, fails_later)
    assert "an answer broke off: the voice failed" in caplog.messages
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": " ... !! "}, "input"),
        ({"input": "a" * (LONGEST_INPUT + 1)}, "input"),
        ({"input": "a", "speed": 0.2}, "speed"),
        ({"input": "a", "speed": 5}, "speed"),
        ({"input": "a", "response_format": "ogg"}, "response_format"),
        ({"input": "a", "stream_format": "x"}, "stream_format"),
        ({}, "input"),
    ],
)
def test_speech_out_of_bounds_names_the_field(fields: dict[str, object], param: str) -> None:
    """Nothing to say among it."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post(ROUTE, json=fields)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == param
        assert asked.workers.jobs == []

    asking(test, singing)


def test_speech_without_a_voice_is_404() -> None:
    """A server that answers in text only says so, and the client library does not try again."""

    async def test(asked: Asked) -> None:
        async with asked.sdk(retries=2) as client:
            with pytest.raises(openai.NotFoundError, match="no voice"):
                await client.audio.speech.create(model="m", voice="v", input="hi")

    models: dict[WorkKind, str] = {kind: name for kind, name in MODELS.items() if kind != "speech"}
    asking(test, singing, models=models)


def test_speech_of_several_clients_is_kept_apart() -> None:
    """Everybody gets the sound of their own sentences."""

    def by_length(job: Job) -> Sequence[Report]:
        assert isinstance(job.work, Speak)
        sound = bytes(2 * len(job.work.text))
        return [SpeechPiece(job.id, 0, RATE_HZ, len(job.work.text), sound), Spoke(job.id, 1)]

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            texts = ["a" * n + "." for n in range(1, 30)]
            bodies = [{"input": text, "response_format": "pcm"} for text in texts]
            answers = await asyncio.gather(*(client.post(ROUTE, json=body) for body in bodies))
        assert [len(answer.content) for answer in answers] == [2 * len(text) for text in texts]

    asking(test, by_length)


def test_sentences_are_what_can_be_said() -> None:
    """Mark-up is no speech; what holds no letter is no sentence."""
    assert sentences_of("# Title\n\n- one *two*\n***\nThree!") == ["Title", "one two", "Three!"]
