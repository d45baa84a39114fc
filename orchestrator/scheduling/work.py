"""What is asked of workers and what they answer: the frames that cross to worker processes, as tagged unions.

`Work` goes out, `Report` comes back. Sound is little-endian int16 bytes. In a session's heart a `Transcribe` carries no
sound but its extent on the session's 16 kHz stream; the runner fills `audio` in.
"""

from typing import Literal

from msgspec import Struct

WorkKind = Literal["asr", "understand", "llm", "speech"]


class ToolSpec(Struct, frozen=True):
    """A function the model may call; `parameters` is a JSON Schema as JSON text."""

    name: str
    description: str
    parameters: str


class CallSpec(Struct, frozen=True):
    """A function call in a prompt or a reply; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


class Picture(Struct, frozen=True, omit_defaults=True):
    """An image that a model is to see. In a session's heart it is a `name` alone; the runner fills its data URI in as
    `url`. `detail` is the client's: auto, low or high."""

    name: str
    detail: str = ""
    url: str = ""


class PromptMessage(Struct, frozen=True, omit_defaults=True):
    """One entry of a prompt: role system, user, assistant or tool. Images stand behind the words."""

    role: str
    content: str = ""
    tool_calls: tuple[CallSpec, ...] = ()
    tool_call_id: str | None = None
    images: tuple[Picture, ...] = ()


class Transcribe(Struct, frozen=True, tag="transcribe", omit_defaults=True):
    """Recognise samples [start, stop) of the session's 16 kHz stream, or stored clip `clip`. Rungs as in
    `modalities.ports.Clip`; `alternatives` are for final passes."""

    start: int
    stop: int
    draft: bool = False
    rung: int = 0
    language: str | None = None
    prompt: str | None = None
    clip: str | None = None
    audio: bytes = b""
    alternatives: int = 0


class Score(Struct, frozen=True, tag="score", omit_defaults=True):
    """Tell how well texts fit samples [start, stop) of the session's 16 kHz stream, or stored clip `clip`.

    `near` is the `Transcribe` job that heard the same stretch at the same rung: the work goes to the worker that still
    has what was heard. At rung 3 the second recogniser judges. `recognised` is the text to compare with.
    """

    start: int
    stop: int
    texts: tuple[str, ...]
    recognised: str
    near: str = ""
    rung: int = 0
    language: str | None = None
    clip: str | None = None
    audio: bytes = b""


class Understand(Struct, frozen=True, tag="understand", omit_defaults=True):
    """Find the meaning of a text: vector, intent, slots."""

    text: str


class Embed(Struct, frozen=True, tag="embed", omit_defaults=True):
    """Turn texts into the embedding model's own vectors."""

    texts: tuple[str, ...]


class Reply(Struct, frozen=True, tag="reply", omit_defaults=True):
    """Write the assistant's next message. `tool_choice` as in `modalities.ports.Prompt`.

    The reply ends before the first text of `stop` that it would say. `seed` None follows from the job. `whole`: a
    prompt that does not fit is refused (``context_length_exceeded``), not shortened.
    """

    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    cache_key: str = ""
    seed: int | None = None
    stop: tuple[str, ...] = ()
    whole: bool = False


class Speak(Struct, frozen=True, tag="speak", omit_defaults=True):
    """Say one sentence."""

    text: str
    speed: float = 1.0


Work = Transcribe | Score | Understand | Embed | Reply | Speak


def kind_of(work: Work) -> WorkKind:
    """Names the kind of worker that does this work."""
    match work:
        case Transcribe() | Score():
            return "asr"
        case Understand() | Embed():
            return "understand"
        case Reply():
            return "llm"
        case Speak():
            return "speech"


class WordFound(Struct, frozen=True, array_like=True):
    """A recognised word; seconds from the clip's start."""

    text: str
    start_s: float
    stop_s: float
    probability: float


class AlternativeText(Struct, frozen=True, array_like=True):
    """One of the likeliest texts of a clip, with the natural logarithm of its probability."""

    text: str
    log_probability: float


class Transcribed(Struct, frozen=True, tag="transcribed", omit_defaults=True):
    """The recogniser's answer to one `Transcribe`. Empty text means: no speech heard."""

    job_id: str
    text: str
    words: tuple[WordFound, ...] = ()
    language: str = "en"
    average_logprob: float = 0.0
    no_speech_probability: float = 0.0
    compression_ratio: float = 0.0
    rung: int = 0
    alternatives: tuple[AlternativeText, ...] = ()


class WordsApart(Struct, frozen=True, array_like=True):
    """Words of a text in the place of recognised ones, and how much likelier they are (natural logarithm)."""

    recognised: str
    text: str
    ratio: float


class TextFit(Struct, frozen=True, array_like=True):
    """How well a text fits the sound: natural logarithms of its tokens' probabilities. `spelling` fitted best."""

    text: str
    spelling: str
    total: float
    mean: float
    lowest: float
    apart: tuple[WordsApart, ...] = ()


class Scored(Struct, frozen=True, tag="scored", omit_defaults=True):
    """The answer to one `Score`: the fit of what was recognised, and of each text in order; none where nothing can be
    told."""

    job_id: str
    recognised: TextFit | None = None
    fits: tuple[TextFit, ...] = ()


class SlotFound(Struct, frozen=True, array_like=True):
    """A named value; character offsets, -1 where inferred."""

    name: str
    value: str
    start: int
    stop: int
    confidence: float


class FactFound(Struct, frozen=True, array_like=True):
    """A typed value of the text, as in `modalities.text.facts.Fact`; character offsets."""

    kind: str
    value: str
    start: int
    stop: int


class Understood(Struct, frozen=True, tag="understood", omit_defaults=True):
    """The answer to one `Understand`. `vector`: int16 little-endian, each = round(32767 · component). `normal`: the
    form in which the text is compared (`modalities.text.facts.normal_form`). `likeness`: cosines with what the domain
    describes, in 1/10,000."""

    job_id: str
    vector: bytes = b""
    intent: str | None = None
    confidence: float = 0.0
    slots: tuple[SlotFound, ...] = ()
    normal: str = ""
    facts: tuple[FactFound, ...] = ()
    likeness: dict[str, int] = {}


class Embedded(Struct, frozen=True, tag="embedded", omit_defaults=True):
    """The answer to one `Embed`: a vector of float32, little-endian, for each text in order, and how many tokens the
    texts have together."""

    job_id: str
    vectors: tuple[bytes, ...] = ()
    tokens: int = 0


class ReplyText(Struct, frozen=True, tag="reply_text", gc=False):
    """More text of a reply."""

    job_id: str
    text: str


class ReplyCall(Struct, frozen=True, tag="reply_call", omit_defaults=True):
    """More of tool call `index` of a reply; `name` is set in the first piece only."""

    job_id: str
    index: int
    arguments: str
    name: str | None = None


class LimitLeft(Struct, frozen=True, array_like=True):
    """What a tenant may still use of a quota, and in how many seconds all of it is there again."""

    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_s: float


class Replied(Struct, frozen=True, tag="replied", omit_defaults=True):
    """A reply is complete. `finish_reason`: stop, length, tool_calls or cancelled. `limits` are put in by the
    dispatcher, once the reply is booked; none where there are no quotas."""

    job_id: str
    finish_reason: str
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    limits: tuple[LimitLeft, ...] = ()


class SpeechPiece(Struct, frozen=True, tag="speech_piece", omit_defaults=True):
    """More sound of a sentence: `samples` int16 values at `rate_hz`. Hearts see it with `audio` taken out."""

    job_id: str
    index: int
    rate_hz: int
    samples: int
    audio: bytes = b""


class Spoke(Struct, frozen=True, tag="spoke"):
    """A sentence is complete; `pieces` of it were sent."""

    job_id: str
    pieces: int


class Failed(Struct, frozen=True, tag="failed", omit_defaults=True):
    """A job will give nothing (more). `code` is a wire code (``worker_failed``, ``deadline_exceeded``, …); `message`
    is fit for a client; `retry_after_s` > 0 where waiting helps. `reason`: why it was refused, in one word for who
    counts (``queue_full``, ``tenant_limit``, ``shed`` …)."""

    job_id: str
    code: str
    message: str
    retry_after_s: float = 0.0
    reason: str = ""


Report = (
    Transcribed
    | Scored
    | Understood
    | Embedded
    | ReplyText
    | ReplyCall
    | Replied
    | SpeechPiece
    | Spoke
    | Failed
)

CONTEXT_EXCEEDED = "context_length_exceeded"
"""The code of a `Failed` whose prompt or text does not fit into the model."""

REFUSED = "rate_limit_exceeded"
"""The code of a `Failed` whose job was never taken: there was no room for it."""

ENDS_A_JOB = frozenset({Transcribed, Scored, Understood, Embedded, Replied, Spoke, Failed})
"""Reports after which nothing more comes for their job. A set of types, since it is asked of every token several
times: six `isinstance` tests of Structs take a microsecond and a half."""
