"""``POST /v1/chat/completions``: what a client may ask of the language model, as a reply job."""

from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, Field

from orchestrator.errors import WireError
from orchestrator.scheduling.work import CallSpec, Picture, PromptMessage, Reply, ToolSpec
from orchestrator.sessions.pictures import MOST_PICTURES, check
from orchestrator.transports.openai_door import Body

MOST_MESSAGES = 4_096
MOST_PARTS = 256
MOST_TOOLS = 128
MOST_STOPS = 4
LONGEST_STOP = 256

NO_PARAMETERS = '{"type":"object","properties":{}}'


class ImageUrl(BaseModel):
    """A picture as a data URI of a PNG or JPEG; other addresses are not fetched."""

    url: str
    detail: Literal["auto", "low", "high"] | None = None


class Part(BaseModel):
    """A part of a message: `text`, `refusal`, or `image_url` of a user where the model looks at pictures."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None


class FunctionCall(BaseModel):
    """What an assistant called; `arguments` is JSON text."""

    name: str
    arguments: str = ""


class Call(BaseModel):
    """A call in an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(BaseModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[Part], Field(max_length=MOST_PARTS, fail_fast=True)] | None = None
    tool_calls: Annotated[list[Call], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_call_id: str | None = None


class Function(BaseModel):
    """A function that may be called; `parameters` is a JSON Schema of an object."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[\w.\-]+$")
    description: str | None = None
    parameters: Any = None  # any JSON: checked to be an object in `_tool`


class Tool(BaseModel):
    """A tool. Functions are the only kind."""

    type: str = "function"
    function: Function | None = None


class NamedFunction(BaseModel):
    """Which function must be called."""

    name: str


class NamedChoice(BaseModel):
    """A tool that must be called."""

    type: str = "function"
    function: NamedFunction | None = None


class StreamOptions(BaseModel):
    """How a stream is told."""

    include_usage: bool | None = None


class ResponseFormat(BaseModel):
    """What the reply is to look like. Text is the only kind."""

    type: str


class ChatRequest(Body):
    """The body of a chat request. What is not named here has no effect. Lists are left at their first fault: a body of
    nothing but faults is not to be told of one by one."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)]
    model: str = Field(default="chorale", max_length=256)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: str | Annotated[list[str], Field(max_length=MOST_STOPS)] | None = None
    top_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    logit_bias: Any = None  # refused, unless it is empty
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: ResponseFormat | None = None
    modalities: list[str] | None = Field(default=None, max_length=8)
    audio: Any = None  # refused, whatever it is
    functions: Any = None  # refused: the old name of tools
    function_call: Any = None  # refused, too

    @property
    def includes_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)


def reply_of(asked: ChatRequest, images: bool = False) -> Reply:
    """Returns the reply job. `images`: the model looks at pictures. Raises `WireError` on what this server does not do,
    and on what makes no sense."""
    _check(asked)
    tools = tuple(_tool(at, tool) for at, tool in enumerate(asked.tools or ()))
    limit = asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens
    return Reply(
        messages=_messages(asked.messages, images),
        tools=tools,
        tool_choice=_choice(asked, tools),
        max_tokens=limit,
        temperature=asked.temperature,
        seed=asked.seed,
        stop=_stops(asked.stop),
        whole=True,
    )


def _check(asked: ChatRequest) -> None:
    """Raises `WireError` on what would be left undone."""
    refused = {
        "n": asked.n not in (None, 1),
        "logit_bias": bool(asked.logit_bias),
        "logprobs": bool(asked.logprobs),
        "top_logprobs": bool(asked.top_logprobs),
        "response_format": asked.response_format is not None and asked.response_format.type != "text",
        "modalities": asked.modalities not in (None, [], ["text"]),
        "audio": asked.audio is not None,
        "functions": asked.functions is not None,
        "function_call": asked.function_call is not None,
    }
    for name, is_refused in refused.items():
        if is_refused:
            hint = {
                "functions": "Use 'tools'.",
                "function_call": "Use 'tool_choice'.",
                "n": "Ask once for each reply.",
                "logit_bias": "Token numbers mean something else to every model.",
            }
            raise unsupported(name, hint.get(name, "Replies are text, one for each request."))
    if asked.stream_options is not None and not asked.stream:
        raise WireError("invalid_value", "'stream_options' is for streams: set 'stream'.", "stream_options")


def unsupported(param: str, hint: str) -> WireError:
    """Returns the refusal of something that the API has and this server has not."""
    return WireError("unsupported_parameter", f"'{param}' is not supported here. {hint}", param)


def _messages(messages: list[Message], images: bool) -> tuple[PromptMessage, ...]:
    """Returns the prompt. A tool's output must belong to a call before it."""
    called: set[str] = set()
    seen = 0
    prompt = []
    for at, message in enumerate(messages):
        where = f"messages.{at}"
        if message.role == "tool":
            if message.tool_call_id not in called:
                raise WireError(
                    "invalid_value",
                    "A message with role 'tool' must name a call of an assistant's message before it.",
                    f"{where}.tool_call_id",
                )
        elif message.tool_call_id is not None:
            raise WireError("invalid_value", "Only tools answer to calls.", f"{where}.tool_call_id")
        calls = tuple(
            CallSpec(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
        )
        if calls and message.role != "assistant":
            raise WireError("invalid_value", "Only an assistant calls tools.", f"{where}.tool_calls")
        called.update(call.call_id for call in calls)
        text, pictures = _content(message, f"{where}.content", images)
        seen += len(pictures)
        if seen > MOST_PICTURES:
            raise WireError("invalid_value", f"At most {MOST_PICTURES} images.", f"{where}.content")
        if text is None and not calls:
            raise WireError(
                "missing_required_parameter",
                f"Missing required parameter: '{where}.content'.",
                f"{where}.content",
            )
        role = "system" if message.role == "developer" else message.role
        prompt.append(PromptMessage(role, text or "", calls, message.tool_call_id, pictures))
    return tuple(prompt)


def _content(message: Message, where: str, images: bool) -> tuple[str | None, tuple[Picture, ...]]:
    """Returns the text of a message, its parts put together, and its pictures."""
    if message.content is None or isinstance(message.content, str):
        return message.content, ()
    texts, pictures = [], []
    for at, part in enumerate(message.content):
        place = f"{where}.{at}"
        if part.type == "image_url":
            pictures.append(_picture(part, place, message.role, images))
            continue
        if part.type not in ("text", "refusal"):
            what = "The language model of this server takes " + (
                "text and images." if images else "text only."
            )
            raise WireError("unsupported_content", f"'{part.type[:64]}' is not supported here. {what}", place)
        text = part.refusal if part.type == "refusal" else part.text
        if text is None:
            raise WireError("missing_required_parameter", f"A part of type '{part.type}' has no text.", place)
        texts.append(text)
    return "\n".join(texts), tuple(pictures)


def _picture(part: Part, where: str, role: str, images: bool) -> Picture:
    if not images:
        raise WireError(
            "unsupported_content",
            "'image_url' is not supported here. The language model of this server takes text only.",
            where,
        )
    if role != "user":
        raise WireError("invalid_value", "Only a user shows images.", where)
    if part.image_url is None:
        raise WireError(
            "missing_required_parameter",
            f"Missing required parameter: '{where}.image_url'.",
            f"{where}.image_url",
        )
    for _ in check(part.image_url.url, f"{where}.image_url.url"):
        pass
    return Picture(where, part.image_url.detail or "", part.image_url.url)


def _tool(at: int, tool: Tool) -> ToolSpec:
    where = f"tools.{at}"
    if tool.type != "function":
        raise unsupported(f"{where}.type", "Only functions can be called.")
    function = tool.function
    if function is None:
        raise WireError(
            "missing_required_parameter",
            f"Missing required parameter: '{where}.function'.",
            f"{where}.function",
        )
    parameters = function.parameters
    if parameters is None:
        return ToolSpec(function.name, function.description or "", NO_PARAMETERS)
    where += ".function.parameters"
    if not isinstance(parameters, dict):
        raise WireError("invalid_value", "'parameters' must be a JSON Schema of an object.", where)
    try:
        written = msgspec.json.encode(parameters).decode()
    except (UnicodeEncodeError, RecursionError):
        raise WireError("invalid_value", "'parameters' cannot be read.", where) from None
    return ToolSpec(function.name, function.description or "", written)


def _choice(asked: ChatRequest, tools: tuple[ToolSpec, ...]) -> str:
    """Returns the choice as a prompt has it."""
    choice = asked.tool_choice
    if isinstance(choice, NamedChoice):
        if choice.type != "function" or choice.function is None:
            raise unsupported("tool_choice", "Name a function, or say 'none', 'auto' or 'required'.")
        name = choice.function.name
        if name not in {tool.name for tool in tools}:
            raise WireError("invalid_value", "There is no such tool in 'tools'.", "tool_choice")
        return f"={name}"
    if choice == "required" and not tools:
        raise WireError("invalid_value", "'required' needs 'tools'.", "tool_choice")
    return choice or "auto"


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if any(not 0 < len(one) <= LONGEST_STOP for one in stops):
        raise WireError("invalid_value", f"A stop has 1 to {LONGEST_STOP} characters.", "stop")
    return stops
