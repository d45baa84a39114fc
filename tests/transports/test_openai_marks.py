"""What requests bring and answers carry beside their bodies: traces, names, what is left of quotas; and images."""

import base64
import logging
from typing import Any

import openai
import pytest

from orchestrator.observability.instrument import JobRecord
from orchestrator.scheduling.work import Reply
from orchestrator.transports.openai_door import MAX_TEXT_BYTES
from orchestrator.transports.openai_http import INPUTS_OF_A_JOB
from tests.transports.asking import Asked, asking
from tests.transports.test_errand import Told
from tests.transports.test_openai_http import HI


def test_answers_say_what_is_left_of_the_quotas() -> None:
    """Of a whole answer as it is booked, of a stream as it is reserved, of a refusal too; nothing where there are no
    quotas. A browser may read them."""

    async def test(asked: Asked) -> None:
        async with asked.http(Origin="http://localhost:3000") as client:
            whole = await client.post("/v1/chat/completions", json={"messages": HI, "max_tokens": 10})
            stream = await client.post(
                "/v1/chat/completions", json={"messages": HI, "max_tokens": 50, "stream": True}
            )
            vectors = await client.post("/v1/embeddings", json={"input": "a"})
            refused = await client.post("/v1/chat/completions", json={"messages": HI})
        left = [
            (
                one.status_code,
                *(int(one.headers[f"x-ratelimit-remaining-{what}"]) for what in ("requests", "tokens")),
            )
            for one in (whole, stream, vectors, refused)
        ]
        assert left[0] == (200, 2, 998)
        assert left[1][:2] == (200, 1)
        assert left[2:] == [(200, 0, 995), (429, 0, 995)]
        assert whole.headers["x-ratelimit-limit-requests"] == "3"
        assert whole.headers["x-ratelimit-limit-tokens"] == "1000"
        assert whole.headers["x-ratelimit-reset-requests"].endswith("s")
        exposed = whole.headers["access-control-expose-headers"]
        assert {name for name in whole.headers if name.startswith("x-ratelimit")} <= set(exposed.split(", "))

    asking(test, requests=3, tokens=1_000)
    asking(_no_quotas)


async def _no_quotas(asked: Asked) -> None:
    async with asked.http() as client:
        answer = await client.post("/v1/chat/completions", json={"messages": HI})
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")]


def test_refusals_carry_their_name_too(caplog: pytest.LogCaptureFixture) -> None:
    """What a user reports is found in the log: the stock client shows the id of every error."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            for body in ({"n": 2}, {"temperature": 3.0}):
                with pytest.raises(openai.BadRequestError) as caught:
                    await client.chat.completions.create(model="m", messages=HI, **body)
                assert caught.value.request_id is not None
                assert caught.value.request_id.startswith("req_")
                (line,) = [
                    one for one in caplog.records if one.__dict__.get("request") == caught.value.request_id
                ]
                assert line.__dict__["status"] == 400

    with caplog.at_level(logging.INFO):
        asking(test)


def test_request_joins_the_trace_of_its_client() -> None:
    """Every job that is done for it, on every route that has work done."""
    told: list[JobRecord] = []
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def test(asked: Asked) -> None:
        async with asked.http(traceparent=trace) as client:
            for path, body in (
                ("/v1/chat/completions", {"messages": HI}),
                ("/v1/embeddings", {"input": ["a"] * (INPUTS_OF_A_JOB + 1)}),
                ("/v1/audio/speech", {"input": "One. Two.", "response_format": "pcm"}),
            ):
                assert (await client.post(path, json=body)).status_code == 200

    asking(test, instrument=Told(told))
    assert [one.kind for one in told] == ["llm", "understand", "understand", "speech", "speech"]
    assert {one.remote and one.remote.span_id for one in told} == {0x00F067AA0BA902B7}


def test_images_reach_a_model_that_looks_at_them() -> None:
    """As the stock client sends them; the body may be larger for them, and only there."""
    image = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(MAX_TEXT_BYTES)).decode()
    content: Any = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": image, "detail": "high"}},
    ]

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": content}])
        (job,) = asked.workers.jobs
        assert isinstance(job.work, Reply)
        assert [(one.url, one.detail) for one in job.work.messages[0].images] == [(image, "high")]

    asking(test, images=True)
