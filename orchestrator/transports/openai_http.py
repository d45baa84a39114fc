"""The routes of the OpenAI HTTP API for text: chat completions and embeddings."""

import array
import base64
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from pydantic import Field
from starlette.responses import Response

from orchestrator.errors import WireError
from orchestrator.ids import random_id
from orchestrator.scheduling.work import Embed, Embedded
from orchestrator.transports import chat_answer
from orchestrator.transports.description import SENT_EVENT, gives, shape
from orchestrator.transports.errand import Errand
from orchestrator.transports.openai_chat import ChatRequest, reply_of, unsupported
from orchestrator.transports.openai_door import (
    EMBED_WITHIN_US,
    MAX_TEXT_BYTES,
    REPLY_WITHIN_US,
    Body,
    OpenAi,
    router,
)
from orchestrator.transports.refusals import NO_CACHE
from orchestrator.transports.routes import Doors
from orchestrator.transports.streamed import EventStream, attended, begun

MOST_INPUTS = 256
MOST_IMAGE_BYTES = 4 * 2**20
"""What the images of a request may add to its body, where the model looks at any: reading it keeps nobody waiting."""

INPUTS_OF_A_JOB = 8
"""Texts that are embedded in one go: who waits for the same worker waits for no more."""

_JSON = "application/json"


class EmbeddingRequest(Body):
    """The body of an embedding request."""

    input: str | Annotated[list[str | int | list[Any]], Field(max_length=MOST_INPUTS, fail_fast=True)]
    model: str = Field(default="chorale", max_length=256)
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1, le=1_000_000)


class TextRoutes:
    """Handlers, one per route."""

    def __init__(self, openai: OpenAi) -> None:
        self._openai = openai

    async def chat(self, request: Request, body: ChatRequest) -> Response:
        """Writes the next message of a conversation, whole or in chunks as it is written."""
        self._openai.need("llm", "language model")
        work = reply_of(body, self._openai.images)
        answer = chat_answer.Answer(
            random_id("chatcmpl"),
            int(time.time()),
            body.model,
            lambda: random_id("call"),
            body.parallel_tool_calls is not False,
        )
        with ExitStack() as held:
            errand = held.enter_context(self._openai.errand(request))
            reports = errand.run(work, REPLY_WITHIN_US, "messages")
            if body.stream:
                chunks = answer.chunks(reports, body.includes_usage)
                return EventStream(await attended(request, begun(chunks)), held.pop_all())
            whole = await attended(request, answer.whole(reports))
        return Response(whole, media_type=_JSON, headers=NO_CACHE)

    async def embeddings(self, request: Request, body: EmbeddingRequest) -> Response:
        """Turns texts into vectors: the model's own, whatever they come together with."""
        self._openai.need("understand", "embedding model")
        texts = _texts(body.input)
        with self._openai.errand(request) as errand:
            errand.book()
            vectors, tokens = await attended(request, _embedded(errand, texts))
        own = len(vectors[0]) // 4
        if body.dimensions not in (None, own):
            raise unsupported("dimensions", f"The vectors of this model have {own}.")
        encoded = tuple(
            chat_answer.Embedding(at, _vector(vector, body.encoding_format))
            for at, vector in enumerate(vectors)
        )
        answer = chat_answer.Embeddings(encoded, body.model, chat_answer.Read(tokens, tokens))
        return Response(chat_answer.encode(answer), media_type=_JSON, headers=NO_CACHE)


def register(app: FastAPI, doors: Doors) -> None:
    """Adds the routes of this file, where there is somebody to do the work."""
    if doors.openai is None:
        return
    handlers = TextRoutes(doors.openai)
    room = MOST_IMAGE_BYTES if doors.openai.images else 0
    chat, embeddings = router(doors.entrance, MAX_TEXT_BYTES + room), router(doors.entrance)
    chat.add_api_route(
        "/v1/chat/completions",
        handlers.chat,
        methods=["POST"],
        response_class=Response,
        responses=gives(
            "The reply; with `stream` events that hold chunks, then `[DONE]`.",
            {"application/json": shape(chat_answer.Completion), "text/event-stream": SENT_EVENT},
        ),
    )
    embeddings.add_api_route(
        "/v1/embeddings",
        handlers.embeddings,
        methods=["POST"],
        response_class=Response,
        responses=gives("The vectors.", {"application/json": shape(chat_answer.Embeddings)}),
    )
    app.include_router(chat)
    app.include_router(embeddings)


def _texts(given: str | list[str | int | list[Any]]) -> list[str]:
    """Raises `WireError` on what is no text."""
    several: Sequence[object] = [given] if isinstance(given, str) else given
    if not several:
        raise WireError("invalid_value", "'input' is empty.", "input")
    texts = []
    for at, one in enumerate(several):
        if not isinstance(one, str):
            raise WireError(
                "invalid_value", "Send texts: token numbers mean something else to every model.", "input"
            )
        if not one:
            raise WireError("invalid_value", "An empty text has no vector.", f"input.{at}")
        texts.append(one)
    return texts


async def _embedded(errand: Errand, texts: list[str]) -> tuple[list[bytes], int]:
    vectors: list[bytes] = []
    tokens = 0
    for start in range(0, len(texts), INPUTS_OF_A_JOB):
        work = Embed(tuple(texts[start : start + INPUTS_OF_A_JOB]))
        async for report in errand.run(work, EMBED_WITHIN_US, "input"):
            if isinstance(report, Embedded):
                vectors.extend(report.vectors)
                tokens += report.tokens
    return vectors, tokens


def _vector(vector: bytes, encoding: Literal["float", "base64"]) -> str | list[float]:
    """Returns a float32 vector (little-endian) as it is sent."""
    if encoding == "base64":
        return base64.b64encode(vector).decode("ascii")
    floats = array.array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tolist()
