"""``POST /v1/audio/speech``: a text in, a file of speech out, while it is being spoken."""

import base64
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from typing import Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from modalities.text.sentences import SentenceStream, speakable
from orchestrator.errors import WireError
from orchestrator.scheduling.work import Speak, SpeechPiece
from orchestrator.transports.chat_answer import encode
from orchestrator.transports.description import BYTES, SENT_EVENT, gives
from orchestrator.transports.errand import Errand
from orchestrator.transports.media import MEDIA_TYPES, SoundWriter, SpeechFormat
from orchestrator.transports.openai_door import SPEAK_WITHIN_US, Body, OpenAi, router
from orchestrator.transports.routes import Doors
from orchestrator.transports.streamed import EventStream, Streamed, attended, begun

RATE_HZ = 24_000
LONGEST_INPUT = 4_096


class NamedVoice(BaseModel):
    """A voice by its id."""

    id: str = Field(max_length=256)


class SpeechRequest(Body):
    """The body of a speech request. There is one voice: `voice` and `instructions` have no effect."""

    input: str = Field(min_length=1, max_length=LONGEST_INPUT)
    model: str = Field(default="chorale", max_length=256)
    voice: str | NamedVoice | None = None
    instructions: str | None = None
    response_format: SpeechFormat = "mp3"
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    stream_format: Literal["audio", "sse"] = "audio"


class SpeechRoutes:
    """The handler of the route."""

    def __init__(self, openai: OpenAi) -> None:
        self._openai = openai

    async def speech(self, request: Request, body: SpeechRequest) -> Response:
        """Speaks a text; what is spoken so far is sent."""
        self._openai.need("speech", "voice")
        sentences = sentences_of(body.input)
        if not sentences:
            raise WireError("invalid_value", "There is nothing to say in 'input'.", "input")
        with ExitStack() as held:
            errand = held.enter_context(self._openai.errand(request))
            errand.book()
            pieces = self._spoken(errand, sentences, body)
            if body.stream_format == "sse":
                return EventStream(await attended(request, begun(_events(pieces))), held.pop_all())
            begun_pieces = await attended(request, begun(pieces))
            return Streamed(begun_pieces, held.pop_all(), MEDIA_TYPES[body.response_format])

    async def _spoken(
        self, errand: Errand, sentences: list[str], body: SpeechRequest
    ) -> AsyncGenerator[bytes, None]:
        """Yields the file as it becomes. Raises what `Errand.run` raises."""
        in_thread = self._openai.in_thread
        writer = SoundWriter(body.response_format, RATE_HZ)
        for sentence in sentences:
            async for report in errand.run(Speak(sentence, body.speed), SPEAK_WITHIN_US, "input"):
                if isinstance(report, SpeechPiece) and (
                    written := await in_thread(writer.feed, report.audio)
                ):
                    yield written
        if rest := await in_thread(writer.close):
            yield rest


def register(app: FastAPI, doors: Doors) -> None:
    """Adds the route of this file, where there is somebody to do the work."""
    if doors.openai is None:
        return
    routes = router(doors.entrance)
    handlers = SpeechRoutes(doors.openai)
    routes.add_api_route(
        "/v1/audio/speech",
        handlers.speech,
        methods=["POST"],
        response_class=Response,
        responses=gives(
            "The file, while it is being spoken; with `stream_format` `sse` events that hold it in base64.",
            {**dict.fromkeys(MEDIA_TYPES.values(), BYTES), "text/event-stream": SENT_EVENT},
        ),
    )
    app.include_router(routes)


def sentences_of(text: str) -> list[str]:
    """Returns what a voice is to say of a text, sentence by sentence."""
    stream = SentenceStream()
    found = (*stream.feed(text), *stream.close())
    return [said for sentence in found if (said := speakable(sentence.text))]


async def _events(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async for piece in pieces:
        yield encode({"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode("ascii")})
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    yield encode({"type": "speech.audio.done", "usage": usage})
