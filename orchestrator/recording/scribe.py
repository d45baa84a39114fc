"""Writes one session down: what happened goes in, bytes for its journal and its sound come out. Pure."""

from dataclasses import dataclass
from importlib.metadata import version

import msgspec
from msgspec import UNSET, Raw, structs

from modalities.ports import Pcm
from orchestrator.recording.journal import (
    MOST_DETAIL,
    VERSION,
    Done,
    EndLine,
    Header,
    Redaction,
    SoundLine,
    Standing,
    StepLine,
)
from orchestrator.recording.lines import seal
from orchestrator.recording.notation import WrittenEffect, digest_of, write_effect, write_event
from orchestrator.recording.redaction import redact
from orchestrator.recording.sound import Block, Mark, fold
from orchestrator.recording.written_rules import write_rules
from orchestrator.sessions.effects import Effect
from orchestrator.sessions.events import Event
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire.session import Session as SessionView


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session began with. `key` is random, at least 8 bytes, where text is redacted."""

    view: SessionView
    rules: SessionRules
    tag: str
    secret: str
    began: float
    redact: tuple[Redaction, ...] = ()
    key: bytes = b""


class Scribe:
    """Numbers lines and knows where in the sound file it is. Everything is asked for in the order of writing."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._secret = opening.secret.encode()
        self._key = opening.key if "text" in opening.redact else b""
        self._n = 0
        self._offset = 0
        self._standing: Standing | None = None

    def header(self) -> bytes:
        """Returns the first line."""
        opening = self._opening
        view = opening.view
        if view.chorale is not UNSET and view.chorale.secret is not UNSET:
            view = structs.replace(view, chorale=structs.replace(view.chorale, secret=""))
        session, rules = Raw(self._said(view)), Raw(self._said(write_rules(opening.rules)))
        header = Header(
            self._number(), VERSION, version("chorale"), opening.began, opening.tag,
            session, rules, opening.redact,  # type: ignore[arg-type]  # as JSON, which is what it becomes
        )  # fmt: skip
        return _line(header)

    def step(self, event: Event, now: int, effects: tuple[Effect, ...] | None, standing: Standing) -> bytes:
        """Returns the line of an event and what followed."""
        name, written = write_event(event)
        if self._key:
            written = redact(written, self._key)
            # The digest of what is committed would let guesses be tried.
            keyed = digest_of(standing.committed.encode(), self._key)
            standing = structs.replace(standing, committed=keyed)
        done = None if effects is None else tuple(map(self._done, effects))
        left = UNSET if standing == self._standing else standing
        self._standing = standing
        return _line(StepLine(self._number(), now, name, Raw(written), done, left))

    def sound(self, marks: tuple[Mark, ...], pcm: Pcm, clip: str | None = None) -> tuple[bytes, bytes]:
        """Returns the line of sound that came in, or of a clip, and the block that is to be in the file before it."""
        block = b"" if "sound" in self._opening.redact else fold(pcm)
        line = _line(SoundLine(self._number(), Block(self._offset, len(block), len(pcm), marks, clip)))
        self._offset += len(block)
        return line, block

    def end(self, reason: str, number: int | None = None) -> bytes:
        """Returns the last line. `number`: how many lines there are, where what was made last was not written."""
        return _line(EndLine(self._number() if number is None else number, reason))

    def _number(self) -> int:
        self._n += 1
        return self._n - 1

    def _said(self, value: object) -> bytes:
        data = msgspec.json.encode(value)
        return redact(data, self._key) if self._key else data

    def _done(self, effect: Effect) -> Done:
        written = write_effect(effect, self._secret)
        if self._key:
            data = redact(written.data, self._key)
            written = WrittenEffect(written.name, data, digest_of(data, self._key))
        data = written.data
        fits = len(data) <= MOST_DETAIL and b"\n" not in data and b"\r" not in data
        return Done(written.name, written.digest, Raw(data if fits else b"null"))


def _line(content: object) -> bytes:
    data = msgspec.json.encode(content)
    if (
        b"\n" in data or b"\r" in data
    ):  # only between the tokens of what others wrote as JSON: nothing else is raw
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return seal(data)
