"""What is asked of a recogniser and of the language model, and the shape in which a response is to come.

All follow the session's settings, overridden by what the client asked for this one response.
"""

from msgspec import UNSET

from orchestrator.errors import WireError
from orchestrator.scheduling.work import Reply, ToolSpec, Transcribe
from orchestrator.sessions.conversation import Conversation, Entry, as_prompt
from orchestrator.sessions.response import ResponseShape
from orchestrator.sessions.truncation import truncation_of
from orchestrator.wire.client import ItemReference, ResponseParams
from orchestrator.wire.items import Item
from orchestrator.wire.server import ErrorBody
from orchestrator.wire.session import FunctionTool, NamedToolChoice, Session, ToolChoice

MAX_ASIDES = 16
"""Responses outside of the conversation (``"conversation": "none"``) that run at one time."""

NO_PARAMETERS = '{"type":"object","properties":{}}'


def response_shape(
    view: Session, params: ResponseParams, conversation_id: str, speech_output: bool
) -> ResponseShape:
    """Returns the shape of a response, in the conversation unless its parameters say otherwise. Without a synthesiser
    (`speech_output`) every response is text."""
    modalities = params.output_modalities or view.output_modalities
    output = params.audio.output if params.audio is not None else None
    limit = view.max_output_tokens if params.max_output_tokens is None else params.max_output_tokens
    return ResponseShape(
        modality="audio" if "audio" in modalities and speech_output else "text",
        max_output_tokens=limit,
        format=(output and output.format) or view.audio.output.format,
        voice=(output and output.voice) or view.audio.output.voice,
        metadata=params.metadata,
        conversation_id=None if params.conversation == "none" else conversation_id,
        parallel=view.parallel_tool_calls is not False
        if params.parallel_tool_calls in (None, UNSET)
        else params.parallel_tool_calls is True,
    )


def transcribe_work(view: Session, start: int, stop: int, clip: str | None = None) -> Transcribe:
    """Returns the job of the recogniser, with the hints that the client gave."""
    language = prompt = None
    transcription = view.audio.input.transcription
    if transcription is not None:
        language = None if transcription.language is UNSET else str(transcription.language) or None
        prompt = "" if transcription.prompt is UNSET else str(transcription.prompt)
        if transcription.keywords is not UNSET:
            prompt = ", ".join((*((prompt,) if prompt else ()), *transcription.keywords))
    return Transcribe(start=start, stop=stop, clip=clip, language=language, prompt=prompt or None)


def reply_work(
    view: Session,
    params: ResponseParams,
    conversation: Conversation,
    cache_key: str,
    foreseen: Entry | None = None,
) -> Reply:
    """Returns the job of the language model. `params.input` replaces the conversation as context; `foreseen` is an item
    that the conversation does not hold yet. Raises `WireError` (``context_length_exceeded``) where the conversation is
    too long, and the client wants none of it left out."""
    instructions = view.instructions if params.instructions is None else params.instructions
    limit = view.max_output_tokens if params.max_output_tokens is None else params.max_output_tokens
    if params.input is None:
        messages = conversation.prompt(instructions, foreseen, truncation_of(view.truncation))
    else:
        entries = [_given(conversation, given) for given in params.input]
        messages = as_prompt(instructions, [entry for entry in entries if entry is not None])
    return Reply(
        messages=messages,
        tools=tuple(_tool(tool) for tool in (view.tools if params.tools is None else params.tools)),
        tool_choice=_choice(view.tool_choice if params.tool_choice is None else params.tool_choice),
        max_tokens=None if limit == "inf" else limit,
        cache_key=cache_key,
        whole=view.truncation == "disabled",
    )


def check_inputs(params: ResponseParams, conversation: Conversation) -> None:
    """Raises `WireError` where a response is to be made of items that are not there."""
    for given in params.input or ():
        if isinstance(given, ItemReference) and conversation.get(given.id) is None:
            raise WireError(
                "invalid_value", f"There is no item '{given.id}' in the conversation", "response.input"
            )


def failed_to_ask(error: WireError) -> ErrorBody:
    """Returns the error of a response that could not be put to a model."""
    return ErrorBody(type="invalid_request_error", message=str(error), code=error.wire_code)


TOO_MANY_ASIDES = ErrorBody(
    type="rate_limit_error",
    message=f"At most {MAX_ASIDES} responses may run outside of the conversation; wait until one is done.",
    code="rate_limit_exceeded",
)


def already_active(response_id: str) -> WireError:
    """Returns the error for a second response in one conversation."""
    return WireError(
        "conversation_already_has_active_response",
        f"Conversation already has an active response in progress: {response_id}. Wait until the response "
        "is finished before creating a new one.",
    )


def nothing_to_cancel() -> WireError:
    """Returns the error for a `response.cancel` while nothing runs."""
    return WireError(
        "response_cancel_not_active", "Cancellation failed: no active response found", "response_id"
    )


def _given(conversation: Conversation, given: Item | ItemReference) -> Entry | None:
    return conversation.get(given.id) if isinstance(given, ItemReference) else Entry(given, 0)


def _tool(tool: FunctionTool) -> ToolSpec:
    parameters = NO_PARAMETERS if tool.parameters is UNSET else bytes(tool.parameters).decode()
    return ToolSpec(name=tool.name, description=tool.description, parameters=parameters)


def _choice(choice: ToolChoice) -> str:
    return f"={choice.name}" if isinstance(choice, NamedToolChoice) else choice
