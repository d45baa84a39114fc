"""Reports of a reply as a chat completion: whole, or in chunks as they come."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable

import msgspec
from msgspec import UNSET, Struct, UnsetType

from orchestrator.scheduling.work import Replied, ReplyCall, ReplyText, Report

encode: Callable[[object], bytes] = msgspec.json.Encoder().encode


class CachedTokens(Struct, frozen=True):
    """What of the prompt was not computed again."""

    cached_tokens: int


class Usage(Struct, frozen=True):
    """Tokens of one reply."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class CalledFunction(Struct, frozen=True, omit_defaults=True):
    """What is called; `arguments` is JSON text. In chunks `name` stands in the first one only."""

    arguments: str
    name: str | UnsetType = UNSET


class ToolCall(Struct, frozen=True, omit_defaults=True):
    """A call, or a piece of one."""

    function: CalledFunction
    index: int | UnsetType = UNSET
    id: str | UnsetType = UNSET
    type: str | UnsetType = UNSET


class Said(Struct, frozen=True):
    """The message of a whole completion."""

    role: str
    content: str | None
    refusal: None = None
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET


class Delta(Struct, frozen=True, omit_defaults=True):
    """What a chunk adds."""

    role: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET


class Choice(Struct, frozen=True):
    """The one choice of a completion."""

    message: Said
    finish_reason: str
    index: int = 0
    logprobs: None = None


class ChunkChoice(Struct, frozen=True):
    """The one choice of a chunk."""

    delta: Delta
    finish_reason: str | None = None
    index: int = 0
    logprobs: None = None


class Completion(Struct, frozen=True):
    """A whole reply."""

    id: str
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: Usage
    object: str = "chat.completion"


class Chunk(Struct, frozen=True):
    """A piece of a reply. `usage` is left out where the client did not ask for it."""

    id: str
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: Usage | UnsetType | None = UNSET
    object: str = "chat.completion.chunk"


class Embedding(Struct, frozen=True):
    """A vector: numbers, or float32 (little-endian) in base64."""

    index: int
    embedding: str | list[float]
    object: str = "embedding"


class Read(Struct, frozen=True):
    """Tokens of what was read."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(Struct, frozen=True):
    """The vectors of texts, in order."""

    data: tuple[Embedding, ...]
    model: str
    usage: Read
    object: str = "list"


class Answer:
    """Puts reports into the protocol's words. `call_id` makes ids of calls; without `several_calls` only the first call
    of a reply is told."""

    def __init__(
        self, id: str, created: int, model: str, call_id: Callable[[], str], several_calls: bool = True
    ) -> None:
        self._id = id
        self._created = created
        self._model = model
        self._call_id = call_id
        self._several = several_calls

    async def whole(self, reports: AsyncIterator[Report]) -> bytes:
        """Returns the completion once the reply is complete."""
        text: list[str] = []
        names: dict[int, str] = {}
        arguments: dict[int, list[str]] = {}
        end = None
        async for report in reports:
            match report:
                case ReplyText():
                    text.append(report.text)
                case ReplyCall() if self._tells(report):
                    names[report.index] = report.name or names.get(report.index, "")
                    arguments.setdefault(report.index, []).append(report.arguments)
                case Replied():
                    end = report
        calls = tuple(
            ToolCall(CalledFunction("".join(arguments[at]), names[at]), id=self._call_id(), type="function")
            for at in sorted(names)
        )
        said = Said("assistant", "".join(text) or (None if calls else ""), tool_calls=calls or UNSET)
        finish = "stop" if end is None else end.finish_reason
        choice = Choice(said, _finish(finish, bool(calls)))
        return encode(Completion(self._id, self._created, self._model, (choice,), usage_of(end)))

    async def chunks(self, reports: AsyncIterator[Report], with_usage: bool) -> AsyncGenerator[bytes, None]:
        """Yields chunks: the role, what is said, how it ended, and with `with_usage` what it took. Nothing is yielded
        before the first report has come."""
        no_usage: UnsetType | None = None if with_usage else UNSET
        begun: set[int] = set()
        is_first = True

        def chunk(delta: Delta, finish: str | None = None) -> bytes:
            choices = (ChunkChoice(delta, finish),)
            return encode(Chunk(self._id, self._created, self._model, choices, no_usage))

        async for report in reports:
            if is_first:
                is_first = False
                yield chunk(Delta(role="assistant", content=""))
            match report:
                case ReplyText():
                    yield chunk(Delta(content=report.text))
                case ReplyCall() if self._tells(report):
                    yield chunk(Delta(tool_calls=(self._piece(report, report.index not in begun),)))
                    begun.add(report.index)
                case Replied():
                    yield chunk(Delta(), _finish(report.finish_reason, bool(begun)))
                    if with_usage:
                        usage = usage_of(report)
                        yield encode(Chunk(self._id, self._created, self._model, (), usage))

    def _tells(self, call: ReplyCall) -> bool:
        return self._several or call.index == 0

    def _piece(self, call: ReplyCall, is_first: bool) -> ToolCall:
        if not is_first:
            return ToolCall(CalledFunction(call.arguments), call.index)
        function = CalledFunction(call.arguments, call.name or "")
        return ToolCall(function, call.index, self._call_id(), "function")


def usage_of(end: Replied | None) -> Usage:
    """Returns what a reply took."""
    if end is None:
        return Usage(0, 0, 0, CachedTokens(0))
    read, written = end.input_tokens, end.output_tokens
    return Usage(read, written, read + written, CachedTokens(end.cached_tokens))


def _finish(reason: str, calls: bool) -> str:
    """A reply that calls ends with its calls, unless it was cut."""
    return "tool_calls" if calls and reason == "stop" else reason
