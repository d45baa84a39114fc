"""Where a decode stopped before the speech did, and how its rest is put behind it.

Whisper ends a text where a sentence ends before a pause, now and then, though more is said behind it, and is sure of
what it wrote. Its own remedy for long sound is to go on behind the last word; so is ours.
"""

from dataclasses import replace

import numpy as np

from modalities.ports import SPEECH_RATE_HZ, Pcm, Recognition

_FRAME = SPEECH_RATE_HZ // 50
_UNHEARD_S = 2.0
"""A shorter rest is a pause and what alignment is wrong by."""

_SOUNDING_S = 1.2
_BELOW_SPEECH_DB = 15.0
_LEAD_S = 0.1
"""The rest begins so much behind the last word, and so is always shorter than the clip."""


def unheard_from(pcm: Pcm, stop_s: float) -> int | None:
    """Returns the sample from which a clip is to be heard again, when its last word was placed up to `stop_s`; None
    where nothing as loud as its speech follows for long."""
    start = round((stop_s + _LEAD_S) * SPEECH_RATE_HZ)
    if len(pcm) - start < _UNHEARD_S * SPEECH_RATE_HZ:
        return None
    frames = len(pcm) // _FRAME
    level = np.sqrt(np.mean(pcm[: frames * _FRAME].reshape(frames, _FRAME).astype(np.float32) ** 2, axis=1))
    said, rest = level[: start // _FRAME], level[start // _FRAME :]
    if not len(said):
        return None
    floor = float(np.percentile(said, 90)) * 10 ** (-_BELOW_SPEECH_DB / 20)
    return start if np.count_nonzero(rest > floor) * _FRAME >= _SOUNDING_S * SPEECH_RATE_HZ else None


def continued(first: Recognition, rest: Recognition, offset_s: float) -> Recognition:
    """Returns both as one; `rest` was heard from `offset_s` on. Alternatives of a part are none of the whole."""
    if not rest.text:
        return first
    words = tuple(
        replace(word, start_s=round(word.start_s + offset_s, 3), stop_s=round(word.stop_s + offset_s, 3))
        for word in rest.words
    )
    share = len(first.words) / max(1, len(first.words) + len(words))
    return replace(
        first,
        text=f"{first.text} {rest.text}",
        words=first.words + words,
        average_logprob=share * first.average_logprob + (1 - share) * rest.average_logprob,
        compression_ratio=max(first.compression_ratio, rest.compression_ratio),
        rung=max(first.rung, rest.rung),
        alternatives=(),
    )
