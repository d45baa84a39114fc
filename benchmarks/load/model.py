"""How long the simulated accelerator takes: pure arithmetic, with the numbers in one place.

The model of a language model's worker is that of continuous batching. Every reply inside gets one token per step, and a
step takes ``step_ms + step_ms_per_reply · replies``; who comes in is prefilled first, which holds everybody up for
``prefill_ms + prefill_ms_per_token · tokens``. So tokens per second grow with the replies inside, by less and less.

Memory is ``weights_mb`` and ``mb_per_token`` for each token in the context of a reply inside. From `strain_from` of it
on everything takes longer, `strain` times as long where it is full (an engine that evicts and computes again). Where
it is full who comes waits inside, first come first served, as in engines that exist. So there is a number of replies
from which more make everything slower, which is what a limit of concurrency can find.

Jitter is lognormal with mean 1. All draws are from a `Random` that the caller seeds.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Replies:
    """The simulated accelerator under a language model. The defaults are of the order of an 8-billion-parameter model
    in 16 bits on one card of 24 GB; no card was measured."""

    prefill_ms: float = 2.0
    prefill_ms_per_token: float = 0.01
    step_ms: float = 12.0
    step_ms_per_reply: float = 0.2
    memory_mb: float = 24_000.0
    weights_mb: float = 16_000.0
    mb_per_token: float = 0.13
    strain_from: float = 0.9
    strain: float = 2.0
    jitter: float = 0.1
    context_tokens: float = 400.0
    """Median of a prompt with its history. What the words of the prompt are makes no difference."""
    output_tokens: float = 32.0
    """Median of a reply."""
    spread: float = 0.5
    """Of both, as the standard deviation of their logarithm."""

    def prefill_s(self, tokens: int) -> float:
        """Returns how long a prompt of so many tokens holds everybody up, without strain and jitter."""
        return (self.prefill_ms + self.prefill_ms_per_token * tokens) / 1_000

    def step_s(self, replies: int) -> float:
        """Returns how long one token for each of so many replies takes, without strain and jitter."""
        return (self.step_ms + self.step_ms_per_reply * replies) / 1_000

    def strain_at(self, memory_share: float) -> float:
        """Returns how many times as long everything takes: 1 up to `strain_from`, rising evenly to `strain` at 1."""
        over = (min(memory_share, 1.0) - self.strain_from) / (1 - self.strain_from)
        return 1 + (self.strain - 1) * max(0.0, over)

    def memory_share(self, tokens: int) -> float:
        """Returns how full the memory is with so many tokens in the contexts of all replies inside."""
        return (self.weights_mb + self.mb_per_token * tokens) / self.memory_mb

    def length_of(self, number: int) -> tuple[int, int]:
        """Draws tokens of context and of reply for the prompt with this number: the same for the same number, in every
        run and under every policy."""
        chance = Random(number)
        context = chance.lognormvariate(math.log(self.context_tokens), self.spread)
        output = chance.lognormvariate(math.log(self.output_tokens), self.spread)
        return max(1, round(context)), max(1, round(output))


@dataclass(frozen=True, slots=True)
class Batches:
    """The simulated accelerator under a recogniser or an embedder: a batch takes ``batch_ms`` and
    ``item_ms`` times what is in it, in seconds of sound or in texts."""

    batch_ms: float = 20.0
    item_ms: float = 4.0
    jitter: float = 0.1

    def took_s(self, items: float) -> float:
        """Returns how long a batch takes, without jitter."""
        return (self.batch_ms + self.item_ms * items) / 1_000


def jittered(took_s: float, jitter: float, chance: Random) -> float:
    """Returns a duration times a lognormal factor of mean 1, whose logarithm has the standard deviation `jitter`."""
    return took_s * chance.lognormvariate(-(jitter**2) / 2, jitter) if jitter > 0 else took_s


@dataclass(slots=True)
class _Inside:
    context: int
    left: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step: how long it takes, who gets a token at its end, and who has got the last one."""

    took_s: float
    told: tuple[str, ...]
    ended: tuple[str, ...]


class Decoding:
    """The replies inside a simulated accelerator. A heart: it says how long things take, someone else waits.

    `add` lets anybody in; the memory holds one prompt at least, and as many as have room with it. Replies grow beyond
    what was free when they came, so that `memory_share` may pass 1 a little. Nobody is put out for it.
    """

    def __init__(self, model: Replies, chance: Random) -> None:
        self._model = model
        self._chance = chance
        self._waiting: dict[str, _Inside] = {}
        self._running: dict[str, _Inside] = {}
        self._tokens = 0

    def __len__(self) -> int:
        """Returns how many are inside, waiting for memory or not."""
        return len(self._waiting) + len(self._running)

    @property
    def running(self) -> int:
        """How many get a token in each step."""
        return len(self._running)

    @property
    def memory_share(self) -> float:
        """How full the memory is, and how full it would be with the first that waits, where one does: one that is
        too full for it is full."""
        waits = next(iter(self._waiting.values()), None)
        return self._model.memory_share(self._tokens + (waits.context if waits else 0))

    def add(self, key: str, context: int, output: int) -> None:
        """Lets a reply of `output` tokens to a prompt of `context` tokens in. It begins in the next step that has
        memory for it."""
        self._waiting[key] = _Inside(context, output)

    def drop(self, keys: Iterable[str]) -> None:
        """Takes out replies that nobody waits for any more; those that are not inside are none of its business."""
        for key in keys:
            self._waiting.pop(key, None)
            gone = self._running.pop(key, None)
            if gone is not None:
                self._tokens -= gone.context

    def step(self) -> Step:
        """Returns the next step: the prefills of all that have come in, then one token for each that runs."""
        took_s = sum(self._model.prefill_s(context) for context in self._begin())
        took_s += self._model.step_s(len(self._running))
        took_s *= self._model.strain_at(self._model.memory_share(self._tokens))
        told = tuple(self._running)
        for inside in self._running.values():
            inside.context += 1
            inside.left -= 1
        self._tokens += len(told)
        ended = tuple(key for key, inside in self._running.items() if inside.left <= 0)
        self.drop(ended)
        return Step(jittered(took_s, self._model.jitter, self._chance), told, ended)

    def _begin(self) -> list[int]:
        """Moves those from the waiting line that have room; returns their contexts."""
        begun: list[int] = []
        for key, inside in list(self._waiting.items()):
            if self._running and self._model.memory_share(self._tokens + inside.context + 1) > 1:
                break
            del self._waiting[key]
            self._running[key] = inside
            self._tokens += inside.context
            begun.append(inside.context)
        return begun
