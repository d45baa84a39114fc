"""What ``/openapi.json`` says: what each route takes and gives, with every status that it answers with."""

import warnings
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from pydantic import BaseModel

from orchestrator.transports.chat_answer import Chunk, Completion, Embeddings
from orchestrator.transports.rejoining import SECRET_HEADER
from orchestrator.transports.transcript import Transcript, VerboseTranscript

Answers = dict[int | str, dict[str, Any]]
Schemas = Mapping[str, Mapping[str, Any]]

_SHAPES = (Completion, Chunk, Embeddings, Transcript, VerboseTranscript)
"""Bodies that are no pydantic models."""

_REFS = "#/components/schemas/{name}"
_NOBODY_SENDS = "HTTPValidationError"
"""What the framework would say of a body that is wrong; it is answered with 400 here."""


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """Every error's body."""

    error: ErrorDetail


_WHY = {
    400: "The request is wrong; `param` names the field.",
    401: "The key is missing or wrong.",
    403: "This key may not do that, or not on this page.",
    404: "There is nothing of this name here: no such session or call, or no such model.",
    413: "The body is too large.",
    415: "The body is of a type that is not taken here.",
    421: "The server is not known by this name.",
    426: "This is a WebSocket endpoint.",
    429: "The key's quota is used up, it has all that it may have at one time, or too many wrong keys came from there; "
    "`Retry-After` says when to come back.",
    500: "A fault of the server.",
    503: "There is no room now, or a model has failed; `Retry-After` says when to come back.",
    504: "The work was not done in time.",
}
_LATER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
ADMITTED = (401, 403, 421, 429, 500)
"""What any route with a key may answer."""

OF_A_BODY = (400, 413, 415)


def errors(*statuses: int) -> Answers:
    """Returns the errors of a route."""
    return {
        status: {
            "model": ErrorBody,
            "description": _WHY[status],
            **({"headers": _LATER} if status in (429, 503) else {}),
        }
        for status in statuses
    }


def gives(what: str, *told: int | Schemas) -> Answers:
    """Returns the answer of a route where nothing went wrong: its status (200 where none is given), and the schema of
    each media type."""
    status = next((one for one in told if isinstance(one, int)), 200)
    schemas: Schemas = next((one for one in told if not isinstance(one, int)), {})
    content = {kind: {"schema": schema} for kind, schema in schemas.items()}
    return {status: {"description": what, **({"content": content} if content else {})}}


def shape(of: type) -> dict[str, Any]:
    """Returns where the schema of one of the bodies stands that are no pydantic models."""
    return {"$ref": _REFS.format(name=of.__name__)}


def an_object(**properties: str | dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object that has all of these, each with its type or schema."""
    told = {name: {"type": one} if isinstance(one, str) else one for name, one in properties.items()}
    return {"type": "object", "required": list(told), "properties": told}


def takes(schemas: Schemas) -> dict[str, Any]:
    """Returns what a route says of a body that it reads by itself: the schema of each media type."""
    return {"requestBody": {"required": True, "content": gives("", schemas)[200]["content"]}}


def reads(query: tuple[str, ...] = (), headers: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns what a route says of the query and the headers that it reads by itself; none of them has to be there."""
    places = (*(("query", name) for name in query), *(("header", name) for name in headers))
    return {
        "parameters": [
            {"name": name, "in": place, "required": False, "schema": TEXT} for place, name in places
        ]
    }


TEXT: dict[str, Any] = {"type": "string"}
BYTES: dict[str, Any] = {"type": "string", "format": "binary"}
ANY_OBJECT: dict[str, Any] = {"type": "object"}
NEEDS_NO_KEY: dict[str, Any] = {"security": []}
SECRET_SUFFICES: dict[str, Any] = {"security": [{"key": []}, {"secret": []}]}
SENT_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {"event": TEXT, "id": TEXT, "data": {**TEXT, "contentMediaType": "application/json"}},
}
"""Of one event of a stream; its lines are its properties, as OpenAPI describes what streams."""


class Described(FastAPI):
    """Describes what can be asked for. That GET may be HEAD is not worth a line, and would give two the same name."""

    needs_key = False
    """Whether the server has keys: without them none is asked for."""

    def openapi(self) -> dict[str, Any]:
        """Returns the description; what is wrong with a request is 400 in it, as it is in fact."""
        if self.openapi_schema is None:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Duplicate Operation ID", UserWarning)
                described = super().openapi()
            _, shapes = msgspec.json.schema_components(_SHAPES, ref_template=_REFS)
            schemas = described["components"]["schemas"]
            schemas.update(shapes)
            for unused in (_NOBODY_SENDS, "ValidationError"):
                schemas.pop(unused, None)
            described["components"]["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer"},
                "secret": {"type": "apiKey", "in": "header", "name": SECRET_HEADER},
            }
            described["security"] = [{"key": []}] if self.needs_key else [{"key": []}, {}]
            for operations in described["paths"].values():
                _tidy(operations)
        return self.openapi_schema or {}


def _tidy(operations: dict[str, Any]) -> None:
    if "get" in operations and operations.pop("head", None) is not None:
        name = operations["get"]["operationId"]
        operations["get"]["operationId"] = f"{name.removesuffix('_head').removesuffix('_get')}_get"
    for operation in operations.values():
        operation["responses"].pop("422", None)
