"""``POST /v1/audio/transcriptions``: a file of sound in, what is said in it out."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from typing import BinaryIO, Literal, cast

import numpy as np
from fastapi import FastAPI, Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response

from orchestrator.clock import seconds
from orchestrator.errors import WireError
from orchestrator.scheduling.work import Transcribe, Transcribed
from orchestrator.transports import subtitles
from orchestrator.transports.chat_answer import encode
from orchestrator.transports.errand import Errand
from orchestrator.transports.media import Piece, SoundFile
from orchestrator.transports.openai_chat import unsupported
from orchestrator.transports.openai_door import HEAR_WITHIN_US, OpenAi, principal_of, router
from orchestrator.transports.refusals import NO_CACHE, Refusal
from orchestrator.transports.routes import Doors
from orchestrator.transports.seats import Seats
from orchestrator.transports.streamed import EventStream, attended, begun
from orchestrator.transports.subtitles import Segment, segments_of

MOST_FILES = 32
MOST_FILES_OF_A_TENANT = 16
"""Files that are on the disk at one time."""

MOST_FIELDS = 32
MAX_FIELD_BYTES = 16_384
LONGEST_PROMPT = 2_000
_ENVELOPE_BYTES = MOST_FIELDS * MAX_FIELD_BYTES

SILENT = 10
"""A piece whose loudest sample is no louder (of 32,767) is not given to a recogniser: it would invent words."""

PATIENCE_US = seconds(5)
"""Within a tier, who talks is heard before a file is."""

Format = Literal["json", "text", "srt", "verbose_json", "vtt"]
_FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
_GRANULARITIES = "timestamp_granularities[]"

FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "model": {"type": "string", "maxLength": 256},
                        "language": {"type": "string", "pattern": "^[A-Za-z]{2,3}$"},
                        "prompt": {"type": "string", "maxLength": LONGEST_PROMPT},
                        "response_format": {"type": "string", "enum": list(_FORMATS), "default": "json"},
                        "stream": {"type": "boolean", "default": False},
                        "temperature": {"type": "number", "description": "Has no effect."},
                        _GRANULARITIES: {
                            "type": "array",
                            "items": {"type": "string", "enum": ["word", "segment"]},
                        },
                    },
                }
            }
        },
    },
}
"""What the route takes, for its description: the form is read by hand, after the key is known."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made of a file."""

    language: str | None = None
    prompt: str | None = None
    format: Format = "json"
    stream: bool = False
    words: bool = False
    segments: bool = True


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
        self._files = Seats(MOST_FILES, MOST_FILES_OF_A_TENANT, "too many files are being heard")

    async def transcriptions(self, request: Request) -> Response:
        """Recognises the speech of a file: whole, or piece by piece as server-sent events."""
        self._openai.need("asr", "speech recognition")
        with ExitStack() as held:
            errand = held.enter_context(self._openai.errands.open(principal_of(request)))
            self._files.take(errand.tenant)
            held.callback(self._files.leave, errand.tenant)
            wanted, file = await self._asked(request, errand)
            sound = SoundFile(file, self._openai.limits.max_audio_s)
            # In a thread: it waits until nothing is being decoded any more.
            held.callback(self._later, sound)
            pieces = self._heard(errand, sound, wanted)
            if wanted.stream:
                return EventStream(await attended(request, begun(_events(pieces))), held.pop_all())
            heard = await attended(request, _all(pieces))
        kind, body = told(heard, wanted)
        return Response(body, media_type=kind, headers=NO_CACHE)

    async def _asked(self, request: Request, errand: Errand) -> tuple[Wanted, BinaryIO]:
        """Returns what is asked for, and the file that it is asked of."""
        form = await _read_form(request)
        with ExitStack() as unread:
            unread.callback(_close_files, form)
            asked = wanted_of(form), _file(form)
            errand.book()
            unread.pop_all()
        return asked

    def _later(self, sound: SoundFile) -> None:
        try:
            self._openai.media.submit(sound.close)
        except RuntimeError:  # the server stops and has no threads any more
            sound.close()

    async def _heard(self, errand: Errand, sound: SoundFile, wanted: Wanted) -> AsyncGenerator[Heard, None]:
        """Yields piece after piece. Raises what `SoundFile.next` and `Errand.run` raise."""
        while (piece := await self._openai.in_thread(sound.next)) is not None:
            start_s, stop_s = piece.start / 16_000, (piece.start + len(piece.pcm)) / 16_000
            yield Heard(start_s, stop_s, await _recognised(errand, piece, wanted))


def register(app: FastAPI, doors: Doors) -> None:
    """Adds the route of this file, where there is somebody to do the work."""
    if doors.openai is None:
        return
    routes = router(doors.entrance, doors.openai.limits.max_upload_bytes + _ENVELOPE_BYTES)
    handlers = AudioRoutes(doors.openai)
    routes.add_api_route(
        "/v1/audio/transcriptions",
        handlers.transcriptions,
        methods=["POST"],
        response_class=Response,
        openapi_extra=FORM,
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
            usage = {"type": "duration", "seconds": ceil(duration_s)}
            return "application/json", encode({"text": text, "usage": usage})
        case "verbose_json":
            return "application/json", encode(_verbose(pieces, text, duration_s, wanted))


def _segments(pieces: Iterable[Heard]) -> list[Segment]:
    return [segment for one in pieces for segment in one.segments()]


def _verbose(pieces: list[Heard], text: str, duration_s: float, wanted: Wanted) -> dict[str, object]:
    first = next((one.found for one in pieces if one.found is not None and one.text), None)
    verbose: dict[str, object] = {
        "task": "transcribe",
        "language": wanted.language or (first.language if first is not None else "en"),
        "duration": round(duration_s, 3),
        "text": text,
        "usage": {"type": "duration", "seconds": ceil(duration_s)},
    }
    if wanted.segments:
        verbose["segments"] = [
            {
                "id": at,
                "seek": 0,
                "start": round(one.start_s, 3),
                "end": round(one.stop_s, 3),
                "text": one.text,
                "tokens": [],
                "temperature": 0.0,
                "avg_logprob": one.found.average_logprob,
                "compression_ratio": one.found.compression_ratio,
                "no_speech_prob": one.found.no_speech_probability,
            }
            for at, one in enumerate(_segments(pieces))
        ]
    if wanted.words:
        verbose["words"] = [
            {
                "word": word.text.strip(),
                "start": round(one.start_s + word.start_s, 3),
                "end": round(one.start_s + word.stop_s, 3),
            }
            for one in pieces
            if one.found is not None
            for word in one.found.words
        ]
    return verbose


async def _read_form(request: Request) -> FormData:
    """Reads the form, its file to the disk beyond 1 MiB (the border bounds the body). Its texts are UTF-8, whatever
    charset it claims. Raises `WireError`, `Refusal` (415)."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        raise Refusal(415, "unsupported_media_type", "Send the file as multipart/form-data.")
    boundary = options.get(b"boundary", b"").decode("latin-1")
    parser = MultiPartParser(
        Headers({"content-type": f'multipart/form-data; boundary="{boundary}"' if boundary else "x/x"}),
        _chunks(request),
        max_files=1,
        max_fields=MOST_FIELDS,
        max_part_size=MAX_FIELD_BYTES,
    )
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise WireError("invalid_value", f"The form cannot be read: {error.message}") from None


async def _chunks(request: Request) -> AsyncGenerator[bytes, None]:
    async for chunk in request.stream():
        yield chunk


def _file(form: FormData) -> BinaryIO:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise WireError("missing_required_parameter", "Missing required parameter: 'file'.", "file")
    return file.file


def _close_files(form: FormData) -> None:
    """Closes a file that nobody is going to read."""
    for _, value in form.multi_items():
        if isinstance(value, UploadFile):
            value.file.close()


def wanted_of(form: Mapping[str, object]) -> Wanted:
    """Returns what the fields of a form ask for. Raises `WireError`."""
    format = _field(form, "response_format") or "json"
    stream = _flag(form, "stream")
    if format not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise unsupported("response_format", f"Formats are {known}.")
    if stream and format not in ("json", "text"):
        raise unsupported("stream", "A stream has the format json.")
    language = _field(form, "language")
    if language is not None and not (language.isascii() and language.isalpha() and 2 <= len(language) <= 3):
        raise WireError("invalid_value", "'language' is a code of ISO 639, like 'en'.", "language")
    prompt = _field(form, "prompt")
    if prompt is not None and len(prompt) > LONGEST_PROMPT:
        raise WireError("invalid_value", f"'prompt' has {LONGEST_PROMPT} characters at most.", "prompt")
    if _list(form, "include"):
        raise unsupported("include", "Transcripts come without log probabilities.")
    granularities = _list(form, "timestamp_granularities")
    if granularities and format != "verbose_json":
        raise unsupported("timestamp_granularities", "Times of words and segments come with verbose_json.")
    if set(granularities) - {"word", "segment"}:
        raise unsupported("timestamp_granularities", "There is 'word' and there is 'segment'.")
    return Wanted(
        language.lower() if language else None,
        prompt or None,
        cast(Format, format),
        stream,
        "word" in granularities,
        not granularities or "segment" in granularities,
    )


def _field(form: Mapping[str, object], name: str) -> str | None:
    value = form.get(name)
    return value if isinstance(value, str) and value else None


def _list(form: Mapping[str, object], name: str) -> list[str]:
    """Returns the values of a field that may come several times, with or without the brackets that say so."""
    values: list[object] = []
    for written in (name, f"{name}[]"):
        values += form.getlist(written) if isinstance(form, FormData) else [form.get(written)]
    return [value for value in values if isinstance(value, str)]


def _flag(form: Mapping[str, object], name: str) -> bool:
    value = (_field(form, name) or "false").lower()
    if value not in ("true", "false", "1", "0"):
        raise WireError("invalid_value", f"'{name}' is true or false.", name)
    return value in ("true", "1")
