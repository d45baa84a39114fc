"""What a job uses of its tenant's quotas: estimated and reserved before it is queued, put right at its end.

A final recognition costs the sound that it hears; a reply costs one request, what the model reads and what it may
write; vectors that somebody asks for cost the tokens that they are of. Drafts, scores, understanding and speech cost
nothing: the server makes them for itself. Who asks for such work alone asks for a request (`Costs.request`).
"""

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import Literal

from msgspec import structs

from orchestrator.clock import US_PER_S
from orchestrator.flow.limiter import Refusal
from orchestrator.flow.tenants import Hold, Quotas, TenantLimits, TenantStatistics
from orchestrator.flow.token_limiter import Resource
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import (
    Embed,
    Embedded,
    LimitLeft,
    Replied,
    Reply,
    Report,
    Transcribe,
    Transcribed,
)

BYTES_PER_MS = 32
DEFAULT_OUTPUT_TOKENS = 1_024
"""Reserved for a reply whose client names no bound; the model is held to it."""

MOST_RATIOS = 64
_FIRST_RATIO = 0.5
_MARGIN = 1.25
_LEAST_BYTES = 64
_IMAGE_BYTES = 4_000
"""What an image counts for: a thousand tokens, about."""
_CHARACTERS_PER_TOKEN = 3
_NAMES: Mapping[Resource, Literal["requests", "tokens"]] = {
    Resource.REQUESTS: "requests",
    Resource.LLM_TOKENS: "tokens",
}


class Costs:
    """Reserves and settles for all tenants. Estimates of what a model reads are its bytes times the highest ratio of
    tokens to bytes of the last `MOST_RATIOS` replies and a quarter more; one token for two bytes before the first."""

    def __init__(self, limits: TenantLimits, default_output_tokens: int = DEFAULT_OUTPUT_TOKENS) -> None:
        self._limits = limits
        self._default_output_tokens = default_output_tokens
        self._ratios: deque[float] = deque(maxlen=MOST_RATIOS)

    def reserve(self, tenant: str, job: Job, now: int, tier: int | None = None) -> "Charge | Refusal":
        """Takes what a job may use, or says when there is room for it. `tier` is whose quotas bound it; None: its
        own."""
        if tier is None:
            tier = job.tier
        needs: Mapping[Resource, int] = {}
        read_bytes = 0
        match job.work:
            case Transcribe(draft=False):
                needs = {Resource.AUDIO_MS: ceil(len(job.work.audio) / BYTES_PER_MS)}
            case Embed(texts=texts):
                read_bytes = sum(len(text.encode()) for text in texts)
                needs = {Resource.LLM_TOKENS: ceil(read_bytes * _FIRST_RATIO) + len(texts)}
            case Reply() as work if quotas := self._limits.quotas_of(tenant, tier):
                read_bytes = _bytes_of(work)
                written = self._default_output_tokens if work.max_tokens is None else work.max_tokens
                needs = {Resource.LLM_TOKENS: self._tokens_of(read_bytes) + written, Resource.REQUESTS: 1}
                if Resource.LLM_TOKENS in quotas:
                    job = structs.replace(job, work=structs.replace(work, max_tokens=written))
        hold = self._limits.reserve(tenant, tier, needs, now) if needs else None
        return hold if isinstance(hold, Refusal) else Charge(job, hold, read_bytes, tier)

    def request(self, tenant: str, tier: int, now: int) -> Refusal | None:
        """Books one request for work that costs nothing by itself; says when there is room for it where there is
        none."""
        hold = self._limits.reserve(tenant, tier, {Resource.REQUESTS: 1}, now)
        if isinstance(hold, Refusal):
            return hold
        if hold is not None:
            hold.settle({}, now)
        return None

    def settle(self, charge: "Charge", report: Report | None, written: int, now: int) -> None:
        """Books what a job has used, once: its last report says it. Without one (it was taken back) a reply that had
        begun costs what was read and the `written` characters; what failed or never began costs nothing."""
        hold, charge.hold = charge.hold, None
        if hold is None:
            return
        match report:
            case Replied():
                if report.input_tokens and charge.read_bytes >= _LEAST_BYTES:
                    self._ratios.append(report.input_tokens / charge.read_bytes)
                hold.settle({Resource.LLM_TOKENS: report.input_tokens + report.output_tokens}, now)
            case Embedded(tokens=tokens):
                hold.settle({Resource.LLM_TOKENS: tokens}, now)
            case Transcribed():
                hold.settle({}, now)
            case None if written:
                spent = self._tokens_of(charge.read_bytes) + ceil(written / _CHARACTERS_PER_TOKEN)
                hold.settle({Resource.LLM_TOKENS: spent}, now)
            case _:
                hold.refund(now)

    def left(self, tenant: str, tier: int, now: int) -> tuple[LimitLeft, ...]:
        """Returns what a tenant may still use; nothing of what has no quota."""
        left = self._limits.left(tenant, tier, now)
        return tuple(
            LimitLeft(name, *left[resource][:2], round(left[resource][2] / US_PER_S, 3))
            for resource, name in _NAMES.items()
            if resource in left
        )

    def with_limits(self, replied: Replied, tenant: str, tier: int, now: int) -> Replied:
        """Returns the last report of a reply with what its tenant may still use."""
        left = self.left(tenant, tier, now)
        return structs.replace(replied, limits=left) if left else replied

    def set_own(self, own: Mapping[str, Quotas]) -> None:
        """Lets other tenants have quotas of their own (`TenantLimits.set_own`)."""
        self._limits.set_own(own)

    def statistics(self) -> TenantStatistics:
        return self._limits.statistics()

    def _tokens_of(self, read_bytes: int) -> int:
        ratio = _MARGIN * max(self._ratios) if self._ratios else _FIRST_RATIO
        return ceil(read_bytes * ratio)


class Charge:
    """A job as it may run, and what is reserved for it: of the quotas of `tier`."""

    __slots__ = ("hold", "job", "read_bytes", "tier")

    def __init__(self, job: Job, hold: Hold | None, read_bytes: int, tier: int) -> None:
        self.job = job
        self.hold = hold
        self.read_bytes = read_bytes
        self.tier = tier


def _bytes_of(work: Reply) -> int:
    """Returns the bytes of what a model reads for a reply."""
    messages = sum(
        len(one.content.encode())
        + _IMAGE_BYTES * len(one.images)
        + sum(len(call.arguments.encode()) for call in one.tool_calls)
        for one in work.messages
    )
    tools = sum(len(str(tool).encode()) for tool in work.tools)
    return messages + tools
