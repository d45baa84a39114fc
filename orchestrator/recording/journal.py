"""The journal of a session: what it holds, and how it is read. Pure but for `load`.

A header, then a line for each event of the session's heart with what the heart answered (a *step*), for sound, and at
last one that says how the recording ended. What has been written is never changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from modalities.ports import Pcm
from orchestrator.recording import lines, notation
from orchestrator.recording.lines import JournalDamaged
from orchestrator.recording.sound import Block, Delivery, deliveries, unfold
from orchestrator.sessions.events import Event
from orchestrator.sessions.session import Session as Heart
from orchestrator.wire.session import Session as SessionView

VERSION = 1
JOURNAL_SUFFIX = ".jsonl"
SOUND_SUFFIX = ".sound"

Redaction = Literal["text", "sound"]


class Header(Struct, frozen=True, omit_defaults=True):
    """The first line. `began`: Unix time of the session's time 0. `redact`: what was blanked."""

    n: int
    journal: int
    chorale: str
    began: float
    tag: str
    session: SessionView
    rules: dict[str, Any]
    redact: tuple[Redaction, ...] = ()


class Standing(Struct, frozen=True, array_like=True):
    """How a heart stands after a step: its life, when to come back, the sound it may still want, where silence decides
    next, and what the consistency engine has committed (the digest of its snapshot)."""

    life: str
    deadline: int | None
    keep_from: int | None
    listen_at: int | None
    committed: str = ""


class Done(Struct, frozen=True, array_like=True):
    """An effect: its name, its digest, and its JSON, null where that is longer than `MOST_DETAIL`."""

    name: str
    digest: str
    detail: Raw = Raw(b"null")


class StepLine(Struct, omit_defaults=True):
    """`on` is the event's name. `do` is null where the heart failed. `left` is missing where it is as before."""

    n: int
    now: int
    on: str
    event: Raw
    do: tuple[Done, ...] | None
    left: Standing | UnsetType = UNSET


class SoundLine(Struct):
    n: int
    sound: Block


class EndLine(Struct):
    """`end`: ``closed``, or why the recording stopped before the session."""

    n: int
    end: str


MOST_DETAIL = 8_192
"""Bytes of an effect's JSON that are kept word for word: enough to tell what is different, but prompts."""


class _Line(Struct):
    """Tells the kinds of lines apart."""

    n: int
    on: str | None = None
    sound: Raw | UnsetType = UNSET
    end: str | None = None


_header = msgspec.json.Decoder(Header)
_line = msgspec.json.Decoder(_Line)
_step = msgspec.json.Decoder(StepLine)
_sound = msgspec.json.Decoder(SoundLine)


@dataclass(frozen=True, slots=True)
class Step:
    """One event and what followed from it. `line` counts from 1."""

    line: int
    now: int
    event: Event
    done: tuple[Done, ...] | None
    standing: Standing | None


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal that was read. `torn`: its last line was not whole, and is left out. `end` is None where it says none:
    the server was killed, or still writes. `blocks` have their sound with them."""

    name: str
    header: Header
    contents: tuple[bytes, ...]
    torn: bool
    end: str | None
    blocks: tuple[tuple[Block, Pcm], ...]

    def steps(self) -> Iterator[Step]:
        """Yields all steps in order. Raises `JournalDamaged`."""
        for content in self.contents:
            written = _line.decode(content)
            if written.on is None:
                continue
            try:
                step = _step.decode(content)
                event = notation.read_event(step.on, step.event)
            except (msgspec.MsgspecError, KeyError, ValueError) as error:
                raise JournalDamaged(f"{self.name}: line {written.n + 1} cannot be read: {error}") from None
            standing = None if step.left is UNSET else step.left
            yield Step(written.n + 1, step.now, event, step.do, standing)

    @property
    def steps_count(self) -> int:
        """An upper bound of the steps, for who shows progress."""
        return len(self.contents)

    def deliveries(self) -> list[Delivery]:
        """Returns the sound that came in, in order."""
        return [one for block, pcm in self.blocks if block.clip is None for one in deliveries(block, pcm)]

    def clips(self) -> dict[str, Pcm]:
        """Returns the sound inside clients' items, by name."""
        return {block.clip: pcm for block, pcm in self.blocks if block.clip is not None}


def read(data: bytes, sound: bytes = b"", name: str = "journal") -> Journal:
    """Reads a journal. Raises `JournalDamaged`, also where there is not even a header."""
    try:
        held = tuple(lines.contents(data))
    except (JournalDamaged, msgspec.MsgspecError) as error:
        raise JournalDamaged(f"{name}: {error}") from None
    if not held:
        raise JournalDamaged(f"{name}: no header: nothing was recorded, or it is no journal")
    header = _read_header(held[0], name)
    blocks, end = [], None
    for number, content in enumerate(held[1:], 2):
        try:
            written = _line.decode(content)
            block = None if written.sound is UNSET else _sound.decode(content).sound
        except msgspec.MsgspecError as error:
            raise JournalDamaged(f"{name}: line {number} cannot be read: {error}") from None
        if block is not None:
            blocks.append((block, _unfold(sound, block, f"{name}: line {written.n + 1}")))
        end = written.end if written.end is not None else end
    return Journal(name, header, held[1:], lines.is_torn(data), end, tuple(blocks))


def load(path: Path) -> Journal:
    """Reads a journal and the sound beside it. Raises `JournalDamaged`, `OSError`."""
    beside = path.with_suffix(SOUND_SUFFIX)
    return read(path.read_bytes(), beside.read_bytes() if beside.is_file() else b"", str(path))


def standing_of(heart: Heart) -> Standing:
    """Returns how a heart stands now."""
    committed = heart.checker.engine.snapshot.digest.hex()
    return Standing(heart.life.value, heart.deadline, heart.keep_from, heart.listen_at, committed)


def _read_header(content: bytes, name: str) -> Header:
    try:
        version = msgspec.json.decode(content).get("journal")
        if not isinstance(version, int):
            raise JournalDamaged(f"{name}: no journal")
        if version > VERSION:
            raise JournalDamaged(
                f"{name}: made by a newer Chorale (journal version {version}, not {VERSION})"
            )
        return _header.decode(content)
    except msgspec.MsgspecError as error:
        raise JournalDamaged(f"{name}: its header cannot be read: {error}") from None


def _unfold(sound: bytes, block: Block, where: str) -> Pcm:
    """Returns a block's samples; none where they are not in the file (blanked, or cut off)."""
    if block.offset + block.bytes > len(sound):
        return unfold(b"")
    try:
        return unfold(sound[block.offset : block.offset + block.bytes])
    except ValueError as error:
        raise JournalDamaged(f"{where}: {error}") from None
