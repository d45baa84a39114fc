"""``POST /v1/audio/transcriptions``: a file of sound in, what is said in it out."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from math import ceil
from typing import BinaryIO

import numpy as np
from fastapi import FastAPI, Request
from msgspec import UNSET
from starlette.responses import Response

from orchestrator.clock import seconds
from orchestrator.scheduling.work import Transcribe, Transcribed
from orchestrator.transports import subtitles
from orchestrator.transports.chat_answer import encode
from orchestrator.transports.description import SENT_EVENT, TEXT, gives, shape
from orchestrator.transports.errand import Errand
from orchestrator.transports.media import Piece
from orchestrator.transports.openai_door import FORM, HEAR_WITHIN_US, OpenAi, check_again, router
from orchestrator.transports.refusals import NO_CACHE
from orchestrator.transports.routes import Doors
from orchestrator.transports.seats import Seats
from orchestrator.transports.sound_process import decoded
from orchestrator.transports.streamed import EventStream, attended, begun
from orchestrator.transports.subtitles import Segment, segments_of
from orchestrator.transports.transcript import (
    Lasted,
    TimedSegment,
    TimedWord,
    Transcript,
    VerboseTranscript,
)
from orchestrator.transports.transcription_form import ENVELOPE_BYTES, TAKEN, Wanted, asked_of
from orchestrator.transports.waiting_room import WaitingRoom

MOST_FILES = 32
MOST_FILES_OF_A_TENANT = 16
"""Files that are on the disk at one time."""

MOST_DECODERS = 8
"""Files that are being heard at one time, of one tenant half of them (`WaitingRoom`); others wait. One may sit for
minutes, where its key's quota is used up."""

SILENT = 10
"""A piece whose loudest sample is no louder (of 32,767) is not given to a recogniser: it would invent words."""

PATIENCE_US = seconds(5)
"""Within a tier, who talks is heard before a file is."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One piece of a file, and what was recognised in it; None: nothing is to be heard there."""

    start_s: float
    stop_s: float
    found: Transcribed | None

    @property
    def text(self) -> str:
        return self.found.text.strip() if self.found is not None else ""

    def segments(self) -> list[Segment]:
        return [] if self.found is None else segments_of(self.found, self.start_s, self.stop_s)


class AudioRoutes:
    """The handler of the route."""

    def __init__(self, openai: OpenAi) -> None:
        self._openai = openai
        self._decoders = WaitingRoom(MOST_DECODERS)
        self._files = Seats(MOST_FILES, MOST_FILES_OF_A_TENANT, "too many files are being heard")

    async def transcriptions(self, request: Request) -> Response:
        """Recognises the speech of a file: whole, or piece by piece as server-sent events."""
        self._openai.need("asr", "speech recognition")
        with ExitStack() as held:
            errand = held.enter_context(self._openai.errand(request))
            held.callback(errand.sit(self._files))
            errand.book()
            wanted, file = await asked_of(request, self._openai.limits.max_upload_bytes)
            held.callback(file.close)
            check_again(request)
            pieces = self._heard(errand, file, wanted)
            if wanted.stream:
                return EventStream(await attended(request, begun(_events(pieces))), held.pop_all())
            heard = await attended(request, _all(pieces))
        kind, body = told(heard, wanted)
        return Response(body, media_type=kind, headers=NO_CACHE)

    async def _heard(self, errand: Errand, file: BinaryIO, wanted: Wanted) -> AsyncGenerator[Heard, None]:
        """Yields piece after piece. Raises what `decoded` and `Errand.run` raise."""
        most_s = self._openai.limits.max_audio_s
        async with self._decoders.seat(errand.tenant), aclosing(decoded(file, most_s)) as pieces:
            async for piece in pieces:
                start_s, stop_s = piece.start / 16_000, (piece.start + len(piece.pcm)) / 16_000
                yield Heard(start_s, stop_s, await _recognised(errand, piece, wanted))


def register(app: FastAPI, doors: Doors) -> None:
    """Adds the route of this file, where there is somebody to do the work."""
    if doors.openai is None:
        return
    routes = router(doors.entrance, doors.openai.limits.max_upload_bytes + ENVELOPE_BYTES, FORM)
    handlers = AudioRoutes(doors.openai)
    routes.add_api_route(
        "/v1/audio/transcriptions",
        handlers.transcriptions,
        methods=["POST"],
        response_class=Response,
        responses=gives(
            "The transcript in the format that was asked for; with `stream` events that hold its pieces.",
            {
                "application/json": {"anyOf": [shape(Transcript), shape(VerboseTranscript)]},
                "text/plain": TEXT,
                "application/x-subrip": TEXT,
                "text/vtt": TEXT,
                "text/event-stream": SENT_EVENT,
            },
        ),
        openapi_extra=TAKEN,
    )
    app.include_router(routes)


async def _recognised(errand: Errand, piece: Piece, wanted: Wanted) -> Transcribed | None:
    if not len(piece.pcm) or int(np.abs(piece.pcm.astype(np.int32)).max()) <= SILENT:
        return None
    audio = piece.pcm.astype("<i2", copy=False).tobytes()
    work = Transcribe(0, len(piece.pcm), language=wanted.language, prompt=wanted.prompt, audio=audio)
    found = None
    async for report in errand.run(work, HEAR_WITHIN_US, "file", PATIENCE_US):
        if isinstance(report, Transcribed):
            found = report
    return found


async def _all(pieces: AsyncGenerator[Heard, None]) -> list[Heard]:
    return [one async for one in pieces]


async def _events(pieces: AsyncGenerator[Heard, None]) -> AsyncGenerator[bytes, None]:
    texts: list[str] = []
    async with aclosing(pieces):
        async for heard in pieces:
            if heard.text:
                delta = f" {heard.text}" if texts else heard.text
                texts.append(heard.text)
                yield encode({"type": "transcript.text.delta", "delta": delta})
    yield encode({"type": "transcript.text.done", "text": " ".join(texts)})


def told(heard: Iterable[Heard], wanted: Wanted) -> tuple[str, str | bytes]:
    """Returns the media type and body of a whole answer."""
    pieces = list(heard)
    text = " ".join(one.text for one in pieces if one.text)
    duration_s = pieces[-1].stop_s if pieces else 0.0
    match wanted.format:
        case "text":
            return "text/plain", text + "\n"
        case "srt":
            return "application/x-subrip", subtitles.srt(_segments(pieces))
        case "vtt":
            return "text/vtt", subtitles.vtt(_segments(pieces))
        case "json":
            return "application/json", encode(Transcript(text, Lasted(ceil(duration_s))))
        case "verbose_json":
            return "application/json", encode(_verbose(pieces, text, duration_s, wanted))


def _segments(pieces: Iterable[Heard]) -> list[Segment]:
    return [segment for one in pieces for segment in one.segments()]


def _verbose(pieces: list[Heard], text: str, duration_s: float, wanted: Wanted) -> VerboseTranscript:
    first = next((one.found for one in pieces if one.found is not None and one.text), None)
    segments = (
        TimedSegment(
            at,
            round(one.start_s, 3),
            round(one.stop_s, 3),
            one.text,
            one.found.average_logprob,
            one.found.compression_ratio,
            one.found.no_speech_probability,
        )
        for at, one in enumerate(_segments(pieces))
    )
    words = (
        TimedWord(
            word.text.strip(), round(one.start_s + word.start_s, 3), round(one.start_s + word.stop_s, 3)
        )
        for one in pieces
        if one.found is not None
        for word in one.found.words
    )
    return VerboseTranscript(
        wanted.language or (first.language if first is not None else "en"),
        round(duration_s, 3),
        text,
        Lasted(ceil(duration_s)),
        tuple(segments) if wanted.segments else UNSET,
        tuple(words) if wanted.words else UNSET,
    )
