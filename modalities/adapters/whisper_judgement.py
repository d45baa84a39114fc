"""When a Whisper decode is to be believed: the rules of the fallback ladder, without a model.

Thresholds of average log probability, compression ratio and no-speech probability are those of the Whisper paper
(Radford et al. 2022, section 4.5). The phrases are what Whisper writes for sounds that are not speech, as its training
captions did.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from modalities.ports import SPEECH_RATE_HZ

SHORT, WHOLE, BEAM, SECOND, SAMPLED, ENDED = range(6)
"""The rungs: short encoder, full encoder, beam 5, the second recogniser (never reached by climbing), sampling by
temperature; behind them the end. On the first a clip may stand twice: an unsure text is looked for again with a wide
beam, in what the encoder has already heard."""

WIDE = 5
"""The beam of second looks."""

_BRIEF_SAMPLES = 2 * SPEECH_RATE_HZ
"""An unsure clip below this stays so in the full window, which writes other words, not better ones."""

LOGPROB_FLOOR = -1.0
COMPRESSION_CEILING = 2.4
NO_SPEECH_FLOOR = 0.6
_LOOP_LENGTH = 8
_LOOP_REPEATS = 6

PHRASES_FOR_NOISE = frozenset(
    {"", "you", "thank you", "thank you very much", "thanks for watching", "thank you for watching", "bye"}
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """One decode of one clip. `capped`: it ran into its length limit and would have gone on."""

    text: str
    tokens: tuple[int, ...]
    average_logprob: float
    no_speech_probability: float
    language: str = "en"
    capped: bool = False
    rung: int = 0
    beam: int = 1

    @property
    def compression_ratio(self) -> float:
        """Returns how much the text shrinks by compression; over 2.4 it repeats itself."""
        raw = self.text.encode()
        return len(raw) / len(zlib.compress(raw)) if raw else 0.0


def loops(decoded: Decoded) -> bool:
    """True where the decode repeats itself: it hit its limit, compresses too well, or ends in one group six times."""
    return decoded.capped or decoded.compression_ratio > COMPRESSION_CEILING or _ends_in_loop(decoded.tokens)


def believable(decoded: Decoded) -> bool:
    """True where no further rung is needed."""
    return not loops(decoded) and decoded.average_logprob >= LOGPROB_FLOOR


def silent(decoded: Decoded) -> bool:
    """True where the clip holds no speech: Whisper says so and is unsure of its text, or the text is what it writes
    for noise."""
    if decoded.no_speech_probability > NO_SPEECH_FLOOR:
        return decoded.average_logprob < LOGPROB_FLOOR or _plain(decoded.text) in PHRASES_FOR_NOISE
    return decoded.average_logprob < LOGPROB_FLOOR and _plain(decoded.text) in PHRASES_FOR_NOISE


def best(candidates: Sequence[Decoded]) -> Decoded:
    """Returns the most probable decode among those that do not loop and hold speech, else the most probable.

    Raises `ValueError` without candidates.
    """
    return max(
        candidates, key=lambda decoded: (not loops(decoded), not silent(decoded), decoded.average_logprob)
    )


def next_rung(decodes: Sequence[Decoded], samples: int, draft: bool) -> int:
    """Returns where a clip of so many samples goes on after its last decode, `ENDED` where it does not.

    Drafts end at once. A silent verdict ends it too, except the narrow beam's on less than a second of sound, which
    takes clipped words for noise. Sampling is for loops only: on an unsure text it guesses.
    """
    last = decodes[-1]
    if draft or last.rung >= SAMPLED:
        return ENDED
    narrow = last.rung == SHORT and last.beam < WIDE
    if silent(last):
        return SHORT if narrow and samples < SPEECH_RATE_HZ else ENDED
    if believable(last):
        return ENDED
    if last.rung == SHORT and not loops(last):
        if narrow:
            return SHORT
        return ENDED if samples < _BRIEF_SAMPLES else BEAM
    if last.rung == BEAM:
        return SAMPLED if loops(best(decodes)) else ENDED
    return last.rung + 1


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum() or letter == " ").strip()


def _ends_in_loop(tokens: tuple[int, ...]) -> bool:
    for length in range(1, _LOOP_LENGTH + 1):
        span = length * _LOOP_REPEATS
        if len(tokens) >= span and tokens[-span:] == tokens[-length:] * _LOOP_REPEATS:
            return True
    return False
