"""The numbers a session lives by. Set once from the configuration; a heart never reads settings."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from consistency.corrections import Corrections
from consistency.judge import Graph, Judge
from consistency.misheard import Misheard
from consistency.observation import Observation
from consistency.policy import EngineRules
from consistency.reading import Reader
from orchestrator.clock import US_PER_MS, US_PER_S
from orchestrator.scheduling.job import Tier

DEFAULT_INSTRUCTIONS = (
    "You are a friendly voice assistant. "
    "Answer in one or two short, clear sentences, in plain words without lists."
)


@dataclass(frozen=True, slots=True)
class ConsistencyRules:
    """Whether what a user says in several ways is held against each other, and by whom.

    deadline_us: what is not settled by then is answered all the same, unverified. `judge` None compares nothing,
    `graph` None checks no tokens, `corrections` None finds no home for "no, fifteen". `read` tells values that are the
    same in other words. `misheard` None looks for no slot that was lost in recognition. `asks`: the user may be asked,
    where the server answers by itself.
    """

    enabled: bool = True
    engine: EngineRules = field(default_factory=EngineRules)
    deadline_us: int = 1_500 * US_PER_MS
    asks: bool = False
    judge: Judge | None = None
    graph: Graph | None = None
    corrections: Corrections | None = None
    read: Reader | None = None
    misheard: Misheard | None = None
    fingerprint: Callable[[Observation], bytes] | None = None


@dataclass(frozen=True, slots=True)
class SessionRules:
    """Durations in microseconds unless named otherwise.

    window_us: how long after the last sign of the user a further sign still joins the turn (`align.window_ms`).
    text_grace_us: text counts as read once it has been delivered for this long.
    grace_us: how long a session without links waits for one to come back.
    buffer_s: seconds of sound that a session holds; what of a longer buffer is older cannot be committed.
    early_replies: whether recognition and replies begin in the silence that may end a turn.
    drain_us: how long work in flight may take to settle once the session is to close.
    abandoned_us: how long a reply goes on to be made once nobody is there to get it; 0: to its end.
    images: whether the language model sees images.
    item_bytes: what clients' own items may hold together while they are in the conversation, in characters; 0: as much
    as they like.
    idles: whether a silence that a client finds too long becomes a turn (``idle_timeout_ms``).
    returns: whether what nobody hears waits for who comes back: the sound of a call that was lost, and the time in
    which text counts as read. Off: a lost call is over, and what was sent to nobody counts as heard.
    heeds: whether ``truncation``, ``parallel_tool_calls``, ``prompt`` and ``include`` do what they say, responses out
    of band are bounded in number and long words go out in parts. Off: they are shown, and no more.
    gives_way: a sentence that is refused its sound, or does not get it in time, stays text and its reply goes on; what
    was left out for want of room is told. Off: the reply fails.
    """

    tier: Tier = Tier.GOLD
    instructions: str = DEFAULT_INSTRUCTIONS
    window_us: int = 1_500 * US_PER_MS
    text_grace_us: int = 300 * US_PER_MS
    grace_us: int = 30 * US_PER_S
    drain_us: int = 5 * US_PER_S
    abandoned_us: int = 0
    gives_way: bool = True
    max_session_us: int = 3_600 * US_PER_S
    draft_every_us: int = 400 * US_PER_MS
    max_draft_us: int = 20 * US_PER_S
    max_utterance_s: float = 60.0
    buffer_s: float = 120.0
    transcribe_within_us: int = 30 * US_PER_S
    understand_within_us: int = 10 * US_PER_S
    reply_within_us: int = 120 * US_PER_S
    speak_within_us: int = 60 * US_PER_S
    max_items: int = 2_000
    speech_output: bool = True
    images: bool = False
    item_bytes: int = 0
    idles: bool = True
    returns: bool = True
    heeds: bool = True
    early_replies: bool = True
    consistency: ConsistencyRules = field(default_factory=ConsistencyRules)


def on_day(rules: SessionRules, unix_s: float) -> SessionRules:
    """Returns the rules of a session that begins then: what "tomorrow" means is known from the day, by local time. It
    is a rule, not a clock: a recorded session keeps its day."""
    day = datetime.datetime.fromtimestamp(unix_s).astimezone().date().isoformat()
    consistency = rules.consistency
    return replace(rules, consistency=replace(consistency, engine=replace(consistency.engine, today=day)))
