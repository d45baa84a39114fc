"""Embeddings and the list of models, by the stock client."""

import base64
import struct
from collections.abc import Sequence
from typing import Any

import openai
import pytest

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Embed, Embedded, Report
from tests.transports.asking import Asked, asking


def test_embeddings_are_the_models_own_in_either_encoding() -> None:
    """Base64 is what the stock client asks for by itself; floats are the same numbers, in the order of the texts."""

    def vectors(job: Job) -> Sequence[Report]:
        assert isinstance(job.work, Embed)
        made = tuple(struct.pack("<2f", float(text), 0.25) for text in job.work.texts)
        return [Embedded(job.id, made, len(made))]

    async def test(asked: Asked) -> None:
        texts = [str(n) for n in range(20)]
        async with asked.sdk() as client:
            made = await client.embeddings.create(model="m", input=texts)
            plain = await client.embeddings.create(model="m", input=texts, encoding_format="float")
            one = await client.embeddings.create(model="m", input="7", dimensions=2)
        assert [one.embedding for one in made.data] == [[float(n), 0.25] for n in range(20)]
        assert [one.index for one in made.data] == list(range(20))
        assert made.data == plain.data
        assert one.data[0].embedding == [7.0, 0.25]
        assert made.usage.total_tokens == 20
        asked_at_once = [len(job.work.texts) for job in asked.workers.jobs if isinstance(job.work, Embed)]
        assert max(asked_at_once) <= 8
        async with asked.http() as http:
            raw = await http.post("/v1/embeddings", json={"input": "7", "encoding_format": "base64"})
        assert base64.b64decode(raw.json()["data"][0]["embedding"]) == struct.pack("<2f", 7.0, 0.25)

    asking(test, vectors)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input.0"),
        ({"input": ["a", ""]}, "input.1"),
        ({"input": [1, 2]}, "input"),
        ({"input": [[1], [2]]}, "input"),
        ({"input": ["a"] * 257}, "input"),
        ({"input": "a", "dimensions": 5}, "dimensions"),
    ],
)
def test_embeddings_of_what_is_no_text_are_refused(fields: dict[str, Any], param: str) -> None:
    """Numbers of somebody else's tokens among it; the field is named."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            answer = await client.post("/v1/embeddings", json=fields)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == param

    asking(test)


def test_server_without_a_model_says_so_once() -> None:
    """404: trying again is of no use, and the client library does not."""

    async def test(asked: Asked) -> None:
        async with asked.sdk(retries=2) as client:
            with pytest.raises(openai.NotFoundError) as caught:
                await client.embeddings.create(model="m", input="a")
            assert caught.value.code == "model_not_found"
            assert [one.id for one in (await client.models.list()).data] == ["chorale", "words"]

    asking(test, models={"llm": "words"})


def test_models_are_listed_and_found() -> None:
    """Each by the name in the list, one with a slash too; another name is 404."""

    async def test(asked: Asked) -> None:
        async with asked.sdk() as client:
            names = [one.id for one in (await client.models.list()).data]
            assert names == ["chorale", "ears", "org/words"]
            for name in names:
                assert (await client.models.retrieve(name)).id == name
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve("other")

    asking(test, models={"asr": "ears", "llm": "org/words"})
