"""What of a conversation that is too long goes into prompts: the session's ``truncation`` (heart)."""

from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from orchestrator.errors import WireError

PROMPT_CHARACTERS = 24_000
"""What a prompt holds of a conversation."""

_CHARACTERS_PER_TOKEN = 4
_USUAL_SHARE = 0.75


class _Limits(Struct, frozen=True):
    post_instructions: int | None = None


class _Retention(Struct, frozen=True):
    retention_ratio: float
    token_limits: _Limits | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """At most `characters` of a conversation go into a prompt. Of a longer one its old end leaves, down to about the
    `share` that stays, so that the prompts that follow begin alike for a while; None: nothing may leave."""

    characters: int = PROMPT_CHARACTERS
    share: float | None = _USUAL_SHARE

    @property
    def block(self) -> int:
        """How much leaves at a time."""
        return max(1, int(self.characters * (1 - (self.share or 0))))


AUTO = Truncation()


def truncation_of(written: Raw | str) -> Truncation:
    """Reads the field as a session shows it (`wire.update` has checked it)."""
    if written == "auto":
        return AUTO
    if written == "disabled":
        return Truncation(share=None)
    retention = _decoder.decode(written)
    tokens = None if retention.token_limits is None else retention.token_limits.post_instructions
    if tokens is None:
        return Truncation(share=retention.retention_ratio)
    characters = min(PROMPT_CHARACTERS, max(1, tokens) * _CHARACTERS_PER_TOKEN)
    return Truncation(characters, retention.retention_ratio)


def too_long(truncation: Truncation) -> WireError:
    """Returns why no response can be made of a conversation of which nothing may leave."""
    return WireError(
        "context_length_exceeded",
        f"The conversation is longer than the {truncation.characters} characters that a prompt holds, and the "
        "session's truncation is 'disabled'. Delete items, or let the oldest leave.",
    )


_decoder = msgspec.json.Decoder(_Retention)
