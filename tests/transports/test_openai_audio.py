"""Transcriptions over HTTP, by the stock client: any file, every format, piece by piece, and taken back."""

import asyncio
import io
import json
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Failed, Report, Transcribe, Transcribed, WordFound
from orchestrator.transports.openai_audio import MOST_FILES_OF_A_TENANT, PATIENCE_US, SILENT
from orchestrator.transports.openai_door import HttpLimits
from tests.transports.asking import Asked, asking
from tests.transports.running import until
from tests.transports.test_media import encoded, tone, wav

ROUTE = "/v1/audio/transcriptions"
SECOND = wav(tone(1.0, 16_000), 16_000)
LONG = wav(tone(55.0, 16_000), 16_000)


def counting() -> Any:
    """Hears "part 1.", "part 2." and so on, with the times of its words."""
    heard = 0

    def answer(job: Job) -> Sequence[Report]:
        nonlocal heard
        heard += 1
        words = (WordFound("part", 0.5, 1.0, 0.9), WordFound(f"{heard}.", 1.0, 1.5, 0.9))
        return [Transcribed(job.id, f" part {heard}. ", words, "en", -0.25, 0.1, 1.5)]

    return answer


def silent(job: Job) -> Sequence[Report]:
    return []


def works(asked: Asked) -> list[Transcribe]:
    return [job.work for job in asked.workers.jobs if isinstance(job.work, Transcribe)]


def test_transcription_has_every_format() -> None:
    """The same words as JSON, text, SubRip, WebVTT and in full."""

    async def test(asked: Asked) -> None:
        file = ("talk.wav", LONG)
        async with asked.sdk() as client:
            plain = await client.audio.transcriptions.create(model="m", file=file)
            assert plain.text == "part 1. part 2. part 3."
            text = await client.audio.transcriptions.create(model="m", file=file, response_format="text")
            assert text == "part 4. part 5. part 6.\n"
            srt = await client.audio.transcriptions.create(model="m", file=file, response_format="srt")
            vtt = await client.audio.transcriptions.create(model="m", file=file, response_format="vtt")
            full = await client.audio.transcriptions.create(
                model="m",
                file=file,
                response_format="verbose_json",
                timestamp_granularities=["word", "segment"],
            )
        starts_s = np.cumsum([0, *(len(work.audio) // 2 for work in works(asked)[:2])]) / 16_000
        assert srt.startswith("1\n00:00:00,500 --> 00:00:01,500\npart 7.\n\n2\n")
        assert srt.count(" --> ") == vtt.count(" --> ") == 3
        assert vtt.startswith("WEBVTT\n\n00:00:00.500 --> 00:00:01.500\npart 10.\n\n")
        assert full.text == "part 13. part 14. part 15."
        assert full.duration == 55.0
        assert full.segments is not None
        assert full.words is not None
        assert [one.start for one in full.segments] == [round(float(at) + 0.5, 3) for at in starts_s]
        assert [one.text for one in full.segments] == ["part 13.", "part 14.", "part 15."]
        assert (full.segments[0].avg_logprob, full.segments[0].no_speech_prob) == (-0.25, 0.1)
        assert [one.word for one in full.words][:2] == ["part", "13."]
        assert full.words[2].start == round(float(starts_s[1]) + 0.5, 3)

    asking(test, counting())


def test_transcription_gives_hints_and_one_piece_at_a_time() -> None:
    """Language and prompt reach the recogniser; the next piece is asked for when the one before is heard, and all of
    them behind what is said in talks."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            await client.audio.transcriptions.create(
                model="m", file=("a.wav", LONG), language="DE", prompt="Kayak", temperature=0.2
            )
        assert {(work.language, work.prompt, work.draft) for work in works(asked)} == {("de", "Kayak", False)}
        assert len(works(asked)) == 3
        assert {job.due_us - job.created_us for job in asked.workers.jobs} == {PATIENCE_US}
        assert sum(len(work.audio) for work in works(asked)) == 2 * 55 * 16_000

    asking(test, counting())


def test_transcription_streams_piece_by_piece() -> None:
    """Deltas together are the text; the first comes before the last piece is heard."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            stream = await client.audio.transcriptions.create(model="m", file=("a.wav", LONG), stream=True)
            first = await anext(aiter(stream))
            events = [first, *[event async for event in stream]]
        deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
        assert deltas == ["part 1.", " part 2.", " part 3."]
        assert events[-1].type == "transcript.text.done"
        assert events[-1].text == "".join(deltas)

    asking(test, counting())


@pytest.mark.parametrize("name", ["talk.mp3", "talk.exe", "", "../../etc/passwd", "a\r\nb.wav"])
def test_transcription_goes_by_what_is_in_the_file(name: str) -> None:
    """Its name means nothing."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post(ROUTE, files={"file": (name or "x", SECOND, "video/whatever")})
        assert answer.json() == {"text": "part 1.", "usage": {"type": "duration", "seconds": 1}}

    asking(test, counting())


def test_transcription_of_silence_is_empty_and_costs_nothing() -> None:
    """A recogniser invents words for what is no sound: it is not asked."""

    async def test(asked: Asked) -> None:
        still = wav(np.full(40 * 16_000, SILENT, np.int16), 16_000)
        async with asked.sdk() as client:
            heard = await client.audio.transcriptions.create(model="m", file=("a.wav", still))
            assert heard.text == ""
            srt = await client.audio.transcriptions.create(
                model="m", file=("a.wav", still), response_format="srt"
            )
            assert srt == ""
        assert asked.workers.jobs == []

    asking(test, counting())


@pytest.mark.parametrize(
    ("fields", "data", "param"),
    [
        ({}, b"no sound", "file"),
        ({}, b"", "file"),
        ({}, encoded("flac", "flac", np.zeros(100 * 8_000, np.int16), 8_000), "file"),
        ({"response_format": "diarized_json"}, SECOND, "response_format"),
        ({"response_format": "srt", "stream": "true"}, SECOND, "stream"),
        ({"stream": "perhaps"}, SECOND, "stream"),
        ({"language": "english"}, SECOND, "language"),
        ({"language": "d1"}, SECOND, "language"),
        ({"prompt": "a" * 2_001}, SECOND, "prompt"),
        ({"include[]": "logprobs"}, SECOND, "include"),
        ({"include": "logprobs"}, SECOND, "include"),
        ({"timestamp_granularities[]": "word"}, SECOND, "timestamp_granularities"),
        (
            {"timestamp_granularities[]": "syllable", "response_format": "verbose_json"},
            SECOND,
            "timestamp_granularities",
        ),
    ],
)
def test_transcription_that_cannot_be_names_the_field(
    fields: dict[str, str], data: bytes, param: str
) -> None:
    """No sound, sound that is too long (90 s may be heard here), what this server does not do; with a stream too the
    status tells."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            for stream in ({}, {"stream": "true"}) if not fields else ({},):
                answer = await client.post(ROUTE, files={"file": ("a", data)}, data={**fields, **stream})
                assert answer.status_code == 400
                assert answer.json()["error"]["param"] == param
        assert asked.workers.jobs == []

    asking(test, counting(), limits=HttpLimits(max_audio_s=90.0))


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"Content-Type": "application/json"}, b"{}", 415),
        ({}, b"", 415),
        ({"Content-Type": "multipart/form-data"}, b"x", 400),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x\r\n\r\nabc\r\n--x--\r\n", 400),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x--\r\n", 400),
        (
            {"Content-Type": "multipart/form-data; boundary=x; charset=utf-7"},
            b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n+2AA-\r\n--x--\r\n',
            400,
        ),
        (
            {"Content-Type": "multipart/form-data; boundary=x"},
            b'--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n'
            + b"a" * 20_000
            + b"\r\n--x--\r\n",
            400,
        ),
        (
            {"Content-Type": "multipart/form-data; boundary=x"},
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n' * 40 + b"--x--\r\n",
            400,
        ),
        (
            {"Content-Type": "multipart/form-data; boundary=x"},
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nb\r\n' * 2
            + b"--x--\r\n",
            400,
        ),
    ],
)
def test_transcription_without_a_proper_form_is_refused(
    headers: dict[str, str], content: bytes, status: int
) -> None:
    """In the one shape of errors, whatever is wrong with it: too many parts, too long ones, none."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post(ROUTE, content=content, headers=headers)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}

    asking(test, counting())


def test_file_beyond_the_limit_is_refused_while_it_comes() -> None:
    """413 once so much has come; nothing of it is decoded."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            try:
                answer = await client.post(ROUTE, files={"file": ("a.wav", io.BytesIO(LONG))})
            except httpx.TransportError:
                return  # closed while the rest was being sent
        assert answer.status_code == 413
        assert asked.workers.jobs == []

    asking(test, counting(), limits=HttpLimits(max_upload_bytes=200_000))


def test_transcription_of_a_client_that_leaves_is_taken_back() -> None:
    """The recogniser is free again, and so is the file."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            posting = asyncio.create_task(client.post(ROUTE, files={"file": ("a.wav", LONG)}))
            await until(lambda: bool(asked.workers.jobs))
            posting.cancel()
            await asyncio.gather(posting, return_exceptions=True)
        await until(lambda: asked.waiting == len(asked.openai.errands) == 0)
        assert len(asked.workers.jobs) == 1

    asking(test, silent)


def test_transcription_that_fails_later_ends_its_stream_with_the_reason() -> None:
    """What was heard before stays; a whole answer is 503."""

    def fails_later(job: Job) -> Sequence[Report]:
        assert isinstance(job.work, Transcribe)
        if job.id.endswith("_1"):
            return [Transcribed(job.id, "hello")]
        return [Failed(job.id, "worker_failed", "broken")]

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post(ROUTE, files={"file": ("a", LONG)})
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "worker_failed")
            streamed = await client.post(ROUTE, files={"file": ("a", LONG)}, data={"stream": "true"})
        events = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: ")]
        assert events[0] == {"type": "transcript.text.delta", "delta": "hello"}
        assert events[1]["error"]["code"] == "worker_failed"
        assert len(events) == 2

    asking(test, fails_later)


def test_transcription_that_is_refused_in_the_middle_goes_on_later() -> None:
    """A file that was let in is heard to its end: what was heard of it is not thrown away for a quota or a full
    queue."""
    refused: list[str] = []

    def refuses_once(job: Job) -> Sequence[Report]:
        if not job.id.endswith("_1") and not refused:
            refused.append(job.id)
            return [Failed(job.id, "rate_limit_exceeded", "no room", 0.1, "tenant_limit")]
        return [Transcribed(job.id, "hello")]

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            whole = await client.audio.transcriptions.create(model="m", file=("a", LONG))
        assert refused
        assert set(whole.text.split()) == {"hello"}
        assert len(whole.text.split()) == len(asked.workers.jobs) - 1

    asking(test, refuses_once)


def test_transcription_over_the_quota_is_429() -> None:
    """A request is booked before anything is decoded."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            await client.audio.transcriptions.create(model="m", file=("a.wav", SECOND))
            with pytest.raises(openai.RateLimitError):
                await client.audio.transcriptions.create(model="m", file=("a.wav", SECOND))
        assert len(asked.workers.jobs) == 1

    asking(test, counting(), requests=1)


def test_files_of_a_tenant_are_few() -> None:
    """The next one is 429 before it is read; when one is done there is room again."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            posting = [
                asyncio.create_task(client.post(ROUTE, files={"file": ("a.wav", SECOND)}))
                for _ in range(MOST_FILES_OF_A_TENANT)
            ]
            await until(lambda: len(asked.openai.errands) == MOST_FILES_OF_A_TENANT)
            refused = await client.post(ROUTE, files={"file": ("a.wav", SECOND)})
            assert refused.status_code == 429
            assert int(refused.headers["Retry-After"]) >= 1
            chatting = await client.post("/v1/audio/speech", json={"input": "..."})
            assert chatting.status_code == 400
            posting[0].cancel()
            await until(lambda: len(asked.openai.errands) == MOST_FILES_OF_A_TENANT - 1)
            posting.append(asyncio.create_task(client.post(ROUTE, files={"file": ("a.wav", SECOND)})))
            await until(lambda: len(asked.openai.errands) == MOST_FILES_OF_A_TENANT)
            for one in posting:
                one.cancel()
            await asyncio.gather(*posting, return_exceptions=True)

    asking(test, silent)


def test_file_that_is_too_large_is_413_and_names_the_field() -> None:
    """Its own bytes count; a form that is within the bound of the body is read."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            taken = await client.post(ROUTE, files={"file": ("a.wav", SECOND)})
            refused = await client.post(ROUTE, files={"file": ("a.wav", SECOND + b"\0")})
        assert taken.status_code == 200
        assert (refused.status_code, refused.json()["error"]["param"]) == (413, "file")

    asking(test, counting(), limits=HttpLimits(max_upload_bytes=len(SECOND)))


def test_transcription_is_told_that_the_server_stops() -> None:
    """503 instead of waiting for what will not come; nothing of it is a fault of the server."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            posting = asyncio.create_task(client.post(ROUTE, files={"file": ("a.wav", LONG)}))
            await until(lambda: bool(asked.workers.jobs))
            asked.openai.close()
            answer = await posting
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "server_shutting_down"

    asking(test, silent)


@pytest.mark.parametrize(
    "head",
    [
        'Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\nContent-Disposition: form-data; name="file"; '
        'filename="a"\r\n\r\nabc',
        'Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\nContent-Disposition: form-data; name="prompt"',
    ],
)
def test_upload_that_breaks_off_is_forgotten(head: str, caplog: pytest.LogCaptureFixture) -> None:
    """The place is free again, the file closed, and the log shows no fault of the server."""

    async def test(asked: Asked) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", asked.running.port)
        writer.write(f"POST {ROUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n{head}".encode())
        await until(lambda: len(asked.openai.errands) == 1)
        writer.close()
        await until(lambda: len(asked.openai.errands) == 0)

    asking(test, silent)
    assert not any(record.exc_info for record in caplog.records)
