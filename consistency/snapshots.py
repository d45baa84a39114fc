"""The states that a conversation was in when everything agreed: numbered, immutable, sharing what did not change. Pure.

A snapshot holds the tokens that hold, and a digest of how they came about: two conversations with equal digests have
committed the same, in the same order. The engine keeps one behind each unit that it holds.
"""

from dataclasses import dataclass
from hashlib import blake2b

from consistency.observation import Token

MOST_TOKENS = 64
"""Tokens that hold at one time; the oldest leave first."""

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Committed:
    """What one unit brought into the state: `words` are the readings that stand (id and text), in order. `withdrawn`:
    tokens of readings that stand no more."""

    unit: int
    words: tuple[tuple[str, str], ...] = ()
    tokens: tuple[Token, ...] = ()
    withdrawn: tuple[Token, ...] = ()
    adopted: tuple[tuple[str, str], ...] = ()
    superseded: tuple[str, ...] = ()
    prints: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state behind unit `number` (0: nothing was said yet). `prints` are the semantic fingerprints of the readings
    that this unit committed."""

    number: int = 0
    tokens: tuple[Token, ...] = ()
    digest: bytes = bytes(_DIGEST_BYTES)
    prints: tuple[bytes, ...] = ()

    def commit(self, change: Committed) -> "Snapshot":
        """Returns the state with this unit in it. Tokens are shared with this state; of one slot the newest holds."""
        named = {(one.intent, one.slot) for one in change.tokens if one.slot and one.act == "inform"}
        gone = {(one.intent, one.slot, one.value) for one in change.withdrawn}
        kept = [
            one
            for one in self.tokens
            if (one.intent, one.slot) not in named and (one.intent, one.slot, one.value) not in gone
        ]
        tokens = (*kept, *change.tokens)[-MOST_TOKENS:]
        return Snapshot(change.unit, tokens, self._digest(change), change.prints)

    def _digest(self, change: Committed) -> bytes:
        digest = blake2b(self.digest, digest_size=_DIGEST_BYTES)
        written = (change.unit, change.words, change.adopted, change.superseded, change.prints)
        digest.update(repr(written).encode())
        for one in change.tokens:
            digest.update(repr((one.intent, one.slot, one.value, one.act)).encode())
        return digest.digest()
