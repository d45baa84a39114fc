"""What `/openapi.json` says beyond what the routes' own types tell: what they answer, how a client is known, and what
they read by hand. One row for each operation, in the shape of OpenAPI 3.1."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
_ERROR = {"$ref": "#/components/schemas/Error"}


def _object(required: str = "", **properties: Schema) -> Schema:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_SHOWN = _object("id type object", id=_TEXT, type={"enum": ["realtime", "transcription"]}, object=_TEXT)
_OPENED = _object("id secret expires_at session", id=_TEXT, secret=_TEXT, expires_at=_COUNT, session=_SHOWN)
_SECRET = _object("value expires_at session", value=_TEXT, expires_at=_COUNT, session=_SHOWN)
_WORKER = _object("name state ready reason", name=_TEXT, state=_TEXT, ready=_FLAG, reason=_TEXT_OR_NULL)
_READY = _object(
    "ready draining service workers",
    ready=_FLAG,
    draining=_FLAG,
    service=_object("level degraded since_s", level=_COUNT, degraded=_FLAG),
    workers=_list_of(_WORKER),
)
_USAGE = _object("prompt_tokens total_tokens", prompt_tokens=_COUNT, total_tokens=_COUNT)
_MADE: Schema = {"id": _TEXT, "created": _COUNT, "model": _TEXT}
_CHOICE = _object("index message finish_reason", index=_COUNT, message=_object("role"), finish_reason=_TEXT)
_COMPLETION = _object(
    "id object created model choices usage",
    object={"const": "chat.completion"},
    choices=_list_of(_CHOICE),
    usage=_USAGE,
    **_MADE,
)
_VECTOR = _object("object index embedding", embedding={"type": ["array", "string"]}, index=_COUNT)
_VECTORS = _object("object data model usage", data=_list_of(_VECTOR), model=_TEXT, usage=_USAGE)
_TRANSCRIPT = _object("text usage", text=_TEXT, usage=_object("type seconds", seconds=_COUNT))
_EVENT = _object("type", type=_TEXT, event_id=_TEXT)
_ACCEPTED = _object("accepted last", accepted=_COUNT, last=_COUNT)


@dataclass(frozen=True, slots=True)
class Operation:
    """What there is to know of one. `answers`: by status, media types to schemas; all else is an error. `body`: what it
    reads by hand. `open`: it needs no key. `secret`: it needs that of a session, which may suffice."""

    answers: Mapping[int, Mapping[str, Schema]]
    body: Mapping[str, Schema] = field(default_factory=dict)
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    open: bool = False
    secret: bool = False
    secret_suffices: bool = False


OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("/v1/realtime", "get"): Operation({}, open=True),
    ("/v1/realtime/client_secrets", "post"): Operation({200: {JSON: _SECRET}}),
    ("/v1/realtime/calls", "post"): Operation(
        {201: {"application/sdp": _TEXT}},
        body={
            "application/sdp": _TEXT,
            "multipart/form-data": _object("sdp", sdp=_TEXT, session={"type": "string", "format": "json"}),
        },
        query=("model", "session_id", "after"),
        headers=("Chorale-Session-Secret",),
    ),
    ("/v1/realtime/calls/{call_id}/hangup", "post"): Operation({200: {}}),
    ("/healthz", "get"): Operation({200: {JSON: _object("status", status={"const": "ok"})}}, open=True),
    ("/readyz", "get"): Operation({200: {JSON: _READY}, 503: {JSON: _READY}}, open=True),
    ("/metrics", "get"): Operation({200: {"text/plain": _TEXT}}),
    ("/v1/sessions", "post"): Operation({201: {JSON: _OPENED}}),
    ("/v1/sessions/{session_id}", "get"): Operation(
        {200: {JSON: _object("id last session", id=_TEXT, last=_COUNT, session=_SHOWN)}}, secret=True
    ),
    ("/v1/sessions/{session_id}", "delete"): Operation({204: {}}, secret=True),
    ("/v1/sessions/{session_id}/events", "get"): Operation(
        {200: {EVENT_STREAM: {}}, 204: {}},
        query=("after", "sound"),
        headers=("Last-Event-ID",),
        secret=True,
        secret_suffices=True,
    ),
    ("/v1/sessions/{session_id}/events", "post"): Operation(
        {202: {JSON: _ACCEPTED}},
        body={JSON: {"anyOf": [_EVENT, {**_list_of(_EVENT), "minItems": 1, "maxItems": 64}]}},
        secret=True,
    ),
    ("/v1/chat/completions", "post"): Operation({200: {JSON: _COMPLETION, EVENT_STREAM: {}}}),
    ("/v1/embeddings", "post"): Operation({200: {JSON: _VECTORS}}),
    ("/v1/audio/transcriptions", "post"): Operation(
        {
            200: {
                JSON: _TRANSCRIPT,
                EVENT_STREAM: {},
                "text/plain": _TEXT,
                "application/x-subrip": _TEXT,
                "text/vtt": _TEXT,
            }
        }
    ),
    ("/v1/audio/speech", "post"): Operation({200: {"audio/*": {}, EVENT_STREAM: {}}}),
}

_SCHEMAS: Schema = {
    "Error": _object(
        "error",
        error=_object(
            "message type param code",
            message=_TEXT,
            type={"enum": ["invalid_request_error", "rate_limit_error", "server_error"]},
            param=_TEXT_OR_NULL,
            code=_TEXT_OR_NULL,
        ),
    )
}
_SECRET_HEADER = "Chorale-Session-Secret"
_SCHEMES: Schema = {
    "key": {"type": "http", "scheme": "bearer", "description": "Where the server has keys."},
    "secret": {"type": "apiKey", "in": "header", "name": _SECRET_HEADER},
}
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def completed(described: Schema) -> Schema:
    """Returns what the framework found out, with what it cannot know. `described` is changed."""
    components = described.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    schemas |= _SCHEMAS
    components["securitySchemes"] = _SCHEMES
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            known = OPERATIONS.get((path, method))
            operation["responses"].pop("422", None)  # answered as 400, like every request that is wrong
            operation["responses"]["default"] = {
                "description": "What is wrong.",
                "content": {JSON: {"schema": _ERROR}},
            }
            if known is not None:
                _complete(operation, known)
            if known is None or not known.open:
                operation["security"] = [{"key": []}]
            if known is not None and known.secret_suffices:
                operation["security"].append({"secret": []})
    return described


def _complete(operation: Schema, known: Operation) -> None:
    answers = operation["responses"]
    found = answers.pop("200", {})
    own = found.get("content", {}).get(JSON, {}).get("schema")
    for status, by_type in known.answers.items():
        answers[str(status)] = answer = {"description": found.get("description", "Done.")}
        if by_type:
            answer["content"] = {
                kind: {"schema": own if own and kind == JSON else schema} for kind, schema in by_type.items()
            }
    if known.body:
        content = {kind: {"schema": schema} for kind, schema in known.body.items()}
        operation["requestBody"] = {"required": True, "content": content}
    headers = (*known.headers, *((_SECRET_HEADER,) if known.secret else ()))
    for place, names in (("query", known.query), ("header", headers)):
        for name in names:
            needed = known.secret and name == _SECRET_HEADER
            parameter = {"name": name, "in": place, "required": needed, "schema": _TEXT}
            operation.setdefault("parameters", []).append(parameter)
