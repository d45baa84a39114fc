"""The form of ``POST /v1/audio/transcriptions``: a file, and what is to be made of it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, Literal, cast

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException

from orchestrator.errors import WireError
from orchestrator.transports.form_parts import FormParts
from orchestrator.transports.openai_chat import unsupported
from orchestrator.transports.refusals import Refusal
from orchestrator.transports.sound_process import no_room

MOST_FIELDS = 32
MAX_FIELD_BYTES = 16_384
LONGEST_PROMPT = 2_000
ENVELOPE_BYTES = MOST_FIELDS * MAX_FIELD_BYTES

Format = Literal["json", "text", "srt", "verbose_json", "vtt"]
_FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
_GRANULARITIES = "timestamp_granularities[]"

TAKEN = {
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
                        "temperature": {
                            "type": "number",
                            "minimum": 0,
                            "maximum": 1,
                            "description": "Has no effect.",
                        },
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


async def asked_of(request: Request, most_bytes: int) -> tuple[Wanted, BinaryIO]:
    """Returns what is asked for, and the file that it is asked of, at its beginning. Raises `WireError`, `Refusal`
    (413: the file is larger than `most_bytes`; 415), `Overloaded` (there is no room on the disk)."""
    form = await _read_form(request)
    with ExitStack() as unread:
        unread.callback(_close_files, form)
        asked = wanted_of(form), _file(form, most_bytes)
        unread.pop_all()
    return asked


async def _read_form(request: Request) -> FormData:
    """Reads the form, its file to the disk beyond 1 MiB (the border bounds the body). Its texts are UTF-8, whatever
    charset it claims. Raises `WireError`, `Refusal` (415), `Overloaded` (there is no room on the disk)."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        raise Refusal(415, "unsupported_media_type", "Send the file as multipart/form-data.")
    boundary = options.get(b"boundary", b"").decode("latin-1")
    parser = FormParts(
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
    except OSError as error:
        raise no_room(error) from None


async def _chunks(request: Request) -> AsyncGenerator[bytes, None]:
    async for chunk in request.stream():
        yield chunk


def _file(form: FormData, most_bytes: int) -> BinaryIO:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise WireError("missing_required_parameter", "Missing required parameter: 'file'.", "file")
    if (file.size or 0) > most_bytes:
        raise Refusal(413, "request_too_large", f"The file is larger than {most_bytes} bytes.", "file")
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
    if not _is_share(_field(form, "temperature") or "0"):
        raise WireError("invalid_value", "'temperature' is a number from 0 to 1.", "temperature")
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


def _is_share(written: str) -> bool:
    try:
        return 0 <= float(written) <= 1
    except ValueError:
        return False


def _flag(form: Mapping[str, object], name: str) -> bool:
    value = (_field(form, name) or "false").lower()
    if value not in ("true", "false", "1", "0"):
        raise WireError("invalid_value", f"'{name}' is true or false.", name)
    return value in ("true", "1")
