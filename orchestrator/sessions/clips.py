"""Sound inside clients' own items: read slice by slice, kept at 16 kHz until it is transcribed. Hearts see its name."""

import base64
from collections.abc import Generator, Iterator

from msgspec import UNSET, structs

from modalities.audio.frame import SampleJoiner, bytes_of
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ
from orchestrator.errors import WireError
from orchestrator.sessions.response import OUTPUT_RATE_HZ
from orchestrator.wire.items import InputAudio, Item, Message, Part

MAX_CLIP_BYTES = 16 * 1024 * 1024
"""Sound that clients' own items may hold untranscribed, per session."""

_PREFIX = "clip:"
_SLICE_CHARACTERS = 16_384


def unwritten_sound(item: Item) -> tuple[str, ...]:
    """Returns the base64 sound of an item's parts that come without a transcript."""
    parts = item.content if isinstance(item, Message) else ()
    return tuple(sound for part in parts if (sound := _unwritten(part)))


def places_of_sound(item: Item) -> tuple[int, ...]:
    """Returns which of its parts those are."""
    parts = item.content if isinstance(item, Message) else ()
    return tuple(index for index, part in enumerate(parts) if _unwritten(part))


def named(item: Item, name: str | None) -> Item:
    """Returns the item without its sound. The first part that has to be written down carries the clip's name instead;
    others are part of that clip, and have no words of their own."""
    if not isinstance(item, Message):
        return item
    parts: list[Part] = []
    for part in item.content:
        if _unwritten(part):
            part = InputAudio(transcript="") if name is None else InputAudio(audio=_PREFIX + name)
            name = None
        elif isinstance(part, InputAudio):
            part = InputAudio(transcript=part.transcript)
        parts.append(part)
    return structs.replace(item, content=tuple(parts))


def without_name(item: Item) -> tuple[Item, str | None]:
    """Takes the clip's name out of an item; returns both."""
    if not isinstance(item, Message):
        return item, None
    names = [sound.removeprefix(_PREFIX) for sound in unwritten_sound(item) if sound.startswith(_PREFIX)]
    parts = tuple(InputAudio(p.transcript) if isinstance(p, InputAudio) else p for p in item.content)
    return structs.replace(item, content=parts), (names[0] if names else None)


def _unwritten(part: Part) -> str:
    if not isinstance(part, InputAudio) or part.audio is UNSET or part.transcript:
        return ""
    return str(part.audio)


class ClipStore:
    """Holds clips by name, at most `limit` bytes with those that are still being read. Full means: refused."""

    def __init__(self, limit: int = MAX_CLIP_BYTES) -> None:
        self._limit = limit
        self._clips: dict[str, bytes] = {}
        self._bytes = 0
        self._count = 0
        self.refused = 0
        """Clips that found no room, since the start."""

    @property
    def held_bytes(self) -> int:
        return self._bytes

    def read(
        self, sounds: tuple[str, ...], places: tuple[int, ...] = ()
    ) -> Generator[str | None, None, None]:
        """Reads base64 of 24 kHz int16 as one clip: yields None after each slice, and the clip's name at the end. What
        is not read to the end is not kept. Raises `WireError` by the name of the part, whose `places` in its item those
        are; the first ones, where they are not given."""
        named_as = [f"item.content[{place}].audio" for place in places or range(len(sounds))]
        size = sum(map(len, sounds)) // 2  # four characters are three bytes, of which two thirds stay
        if self._bytes + size > self._limit:
            self.refused += 1
            raise WireError(
                "invalid_value",
                f"Too much untranscribed audio in items: at most {self._limit} bytes at 16 kHz are held",
                named_as[0],
            )
        self._bytes += size
        try:
            clip = bytearray()
            for sound, name in zip(sounds, named_as, strict=True):
                for pcm in _resampled(sound, name):
                    clip += pcm
                    yield None
            self._count += 1
            name = str(self._count)
            self._clips[name] = bytes(clip)
            self._bytes += len(clip)
        finally:
            self._bytes -= size
        yield name

    def sound(self, name: str) -> bytes:
        """Returns 16 kHz int16 sound. Raises `LookupError` where there is none of that name."""
        return self._clips[name]

    def forget(self, name: str) -> None:
        """Lets a clip go. Idempotent."""
        self._bytes -= len(self._clips.pop(name, b""))

    def clear(self) -> None:
        for name in list(self._clips):
            self.forget(name)


def _resampled(sound: str, path: str) -> Iterator[bytes]:
    joiner, resampler = SampleJoiner(), Resampler(OUTPUT_RATE_HZ, SPEECH_RATE_HZ)
    for start in range(0, len(sound), _SLICE_CHARACTERS):
        try:
            data = base64.b64decode(sound[start : start + _SLICE_CHARACTERS], validate=True)
        except ValueError:
            raise WireError("invalid_value", "Invalid audio: expected base64-encoded sound", path) from None
        yield bytes_of(resampler.feed(joiner.feed(data)))
    yield bytes_of(resampler.flush())
