"""The door of the OpenAI HTTP API: who may come in, what work is done for requests, and how answers are marked."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, TypeVarTuple, Unpack

import msgspec
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, model_validator
from starlette.responses import Response

from orchestrator.clock import seconds
from orchestrator.ids import random_id
from orchestrator.scheduling.work import LimitLeft, WorkKind
from orchestrator.transports.auth import Principal
from orchestrator.transports.border import BODY_LIMIT, MARKS
from orchestrator.transports.description import ADMITTED, OF_A_BODY, Answers, errors
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.errand import Errand, Errands
from orchestrator.transports.refusals import Refusal, ShuttingDown
from orchestrator.wire.limits import check_values

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MEDIA_THREADS = 2
"""So many files of speech are written at one time; further ones wait."""

MEDIA_NICENESS = 10

JSON = "application/json"
FORM = "multipart/form-data"

MAX_TEXT_BYTES = 2**20
"""The body of a request without a file."""

REPLY_WITHIN_US = seconds(300)
HEAR_WITHIN_US = seconds(300)
SPEAK_WITHIN_US = seconds(120)
EMBED_WITHIN_US = seconds(60)
"""What waits longer for its turn, and is not done by then, fails with 504."""


def _stand_behind() -> None:
    """Lets a thread have what of the processor nobody else wants: who talks is not to hear that somebody else's file is
    being written. Linux alone sets this by thread."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(MEDIA_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a request may bring: a file of so many bytes, that lasts so long."""

    max_upload_bytes: int = 26_214_400
    max_audio_s: float = 3_600.0


@dataclass(frozen=True, slots=True)
class OpenAi:
    """What the routes of this API share. `models` names the model of each kind of work that there is; `images`: whether
    the language model looks at pictures."""

    errands: Errands
    models: Mapping[WorkKind, str]
    limits: HttpLimits = HttpLimits()
    images: bool = False
    created_s: int = field(default_factory=lambda: int(time.time()))
    media: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(MEDIA_THREADS, "media", initializer=_stand_behind)
    )

    def need(self, kind: WorkKind, what: str) -> None:
        """Raises `Refusal` (404) where nobody does such work here."""
        if kind not in self.models:
            raise Refusal(404, "model_not_found", f"This server has no {what}.", "model")

    def errand(self, request: Request) -> Errand:
        """Makes room for the work of a request; its answer says what is left of the key's quotas. Raises `Overloaded`,
        `ShuttingDown`."""
        principal = principal_of(request)
        request.state.quotas = partial(self.errands.left, principal)
        return self.errands.open(principal, request.headers.get("traceparent"))

    async def in_thread(self, do: Callable[[Unpack[Ts]], T], *given: *Ts) -> T:
        """Returns what `do` returns in one of the threads for media. Cancelling it leaves `do` to its end. Raises
        `ShuttingDown`, and what `do` raises."""
        try:
            doing = asyncio.get_running_loop().run_in_executor(self.media, do, *given)
        except RuntimeError:
            raise ShuttingDown from None
        return await doing

    def close(self) -> None:
        """Ends what is being done for requests, and takes no more; threads are left to the end of their piece."""
        self.errands.close()
        self.media.shutdown(wait=False)


class Body(BaseModel):
    """What a request's body is made of. JSON can write halves of characters and numbers of a thousand digits, which go
    nowhere from here."""

    @model_validator(mode="before")
    @classmethod
    def _is_text(cls, given: Any) -> Any:  # whatever JSON can say
        try:
            msgspec.json.encode(given)
        except (UnicodeEncodeError, RecursionError, OverflowError):
            raise ValueError("it holds what is no text, or no number") from None
        return given


ERRORS = errors(*OF_A_BODY, *ADMITTED, 404, 503, 504)


def router(
    entrance: Entrance, body_bytes: int = MAX_TEXT_BYTES, kind: str = JSON, answers: Answers = ERRORS
) -> APIRouter:
    """Returns a router whose routes take bodies of `body_bytes` and this `kind` from who may come in: nothing of a body
    is read before that is known. The principal stands in ``request.state.principal``. `answers` are described."""

    class Admitted(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            return partial(_admitted, super().get_route_handler(), entrance, body_bytes, kind)

    return APIRouter(route_class=Admitted, responses=answers, tags=["openai"])


async def _admitted(
    handle: Callable[[Request], Awaitable[Response]],
    entrance: Entrance,
    body_bytes: int,
    kind: str,
    request: Request,
) -> Response:
    request.scope[MARKS] = partial(_marks, request, random_id("req"), time.monotonic())
    request.state.principal = principal = entrance.admit(request.headers)
    if principal.temporary:
        raise Refusal(
            403, "insufficient_permissions", "A client secret opens sessions only; use an API key here."
        )
    with entrance.telling(principal.tenant, "request"):
        if entrance.is_closed:
            raise ShuttingDown
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != kind and request.method == "POST":
        raise Refusal(415, "unsupported_media_type", f"Send the body as {kind}.")
    request.scope[BODY_LIMIT] = body_bytes
    request.state.check_again = partial(entrance.check_again, principal)
    if sent == JSON:
        check_values(await request.body())
        check_again(request)
    return await handle(request)


def check_again(request: Request) -> None:
    """Raises `Unauthorized` where the key has been withdrawn since the request began: its body may have come slowly."""
    check: Callable[[], None] = request.state.check_again
    check()


def _marks(request: Request, name: str, began_s: float) -> dict[str, str]:
    """Returns what every answer carries, refusals too: its name, how long it took so far, what is left of quotas."""
    took_ms = round((time.monotonic() - began_s) * 1_000)
    marks = {"x-request-id": name, "openai-processing-ms": str(took_ms)}
    left: Callable[[], tuple[LimitLeft, ...]] | None = getattr(request.state, "quotas", None)
    for limit in left() if left is not None else ():
        marks[f"x-ratelimit-limit-{limit.name}"] = str(limit.limit)
        marks[f"x-ratelimit-remaining-{limit.name}"] = str(limit.remaining)
        marks[f"x-ratelimit-reset-{limit.name}"] = duration(limit.reset_s)
    return marks


def duration(of_s: float) -> str:
    """Returns a time as the protocol writes it: ``120ms``, ``1.5s``, ``6m0s``, ``1h0m0s``."""
    of_ms = round(of_s * 1_000)
    if of_ms < 1_000:
        return f"{of_ms}ms"
    minutes, ms = divmod(of_ms, 60_000)
    seconds_ = f"{ms / 1_000:g}s"
    if not minutes:
        return seconds_
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds_}" if hours else f"{minutes}m{seconds_}"


def principal_of(request: Request) -> Principal:
    """Returns who asks, on a route of `router`."""
    principal: Principal = request.state.principal
    return principal
