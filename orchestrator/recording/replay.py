"""Exact replay: a recording's events are fed to a fresh heart at their recorded times, and it must do the same. Pure.

No model runs: what workers answered is among the events. Whatever is different, to the last byte, is listed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from orchestrator.errors import ChoraleError
from orchestrator.recording.journal import Done, Header, Journal, Standing, Step, standing_of
from orchestrator.recording.notation import WrittenEffect, write_effect
from orchestrator.recording.written_rules import recorded_rules
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.session import Session as Heart

MOST_DIFFERENCES = 20
"""Once two hearts differ, nearly everything after it does: the first ones tell why."""

_SHOWN = 240


class NotReplayable(ChoraleError):
    """This recording cannot be replayed exactly; the text says why."""

    code = "not_replayable"


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs differ: the journal's line and the session's time, what it is about, what was recorded there and
    what came now ("" for nothing)."""

    line: int
    at_us: int
    about: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay ended. `effects` were compared; `steps` were fed."""

    steps: int
    effects: int
    lasted_us: int
    differences: tuple[Difference, ...]

    @property
    def is_equal(self) -> bool:
        return not self.differences


def make_heart(header: Header, today: SessionRules | None = None) -> Heart:
    """Returns a heart as the recorded session had one, judged by the code of `today`."""
    return Heart(header.session, recorded_rules(header.rules, today), header.tag, 0)


def replay(
    journal: Journal, today: SessionRules | None = None, on_step: Callable[[int], None] | None = None
) -> Replayed:
    """Replays a journal. `today`: rules whose code judges (nobody, if left out). `on_step` is told how many steps were
    fed, now and then. Raises `NotReplayable` for a
    recording whose text was blanked, `JournalDamaged`."""
    if "text" in journal.header.redact:
        raise NotReplayable(
            f"{journal.name}: its text was blanked, so that it cannot be replayed exactly; its times can be read"
        )
    player = _Player(make_heart(journal.header, today))
    for step in journal.steps():
        if player.differences_are_enough:
            break
        player.feed(step)
        if on_step is not None and player.steps % 256 == 0:
            on_step(player.steps)
    if on_step is not None:
        on_step(player.steps)
    return Replayed(player.steps, player.effects, player.now, tuple(player.differences[:MOST_DIFFERENCES]))


class _Player:
    def __init__(self, heart: Heart) -> None:
        self.differences: list[Difference] = []
        self.steps = 0
        self.effects = 0
        self.now = 0
        self._heart = heart
        self._standing: Standing | None = None
        self._failed = False

    @property
    def differences_are_enough(self) -> bool:
        return len(self.differences) >= MOST_DIFFERENCES or self._failed

    def feed(self, step: Step) -> None:
        self.steps += 1
        self.now = step.now
        name = type(step.event).__name__
        try:
            effects = self._heart.receive(step.event, step.now)
        except (AssertionError, LookupError, TypeError, ValueError, AttributeError, ChoraleError) as error:
            self._failed = True
            if step.done is not None:
                fault = f"{type(error).__name__}: {error}"
                self.differences.append(
                    Difference(step.line, step.now, f"{name}: the heart", "went on", fault)
                )
            return
        if step.done is None:
            self.differences.append(
                Difference(step.line, step.now, f"{name}: the heart", "failed", "went on")
            )
            return
        self.effects += len(effects)
        got = [write_effect(effect, b"") for effect in effects]
        self.differences += _compare(step, name, step.done, got)
        self._compare_standing(step, name)

    def _compare_standing(self, step: Step, name: str) -> None:
        """A standing is written down where it changed only."""
        self._standing = step.standing or self._standing
        found = standing_of(self._heart)
        if self._standing is not None and found != self._standing:
            about = f"{name}: how the heart stands"
            self.differences.append(Difference(step.line, step.now, about, str(self._standing), str(found)))


def _compare(
    step: Step, name: str, expected: tuple[Done, ...], got: list[WrittenEffect]
) -> Iterator[Difference]:
    for number, (one, other) in enumerate(zip_longest(expected, got), 1):
        if one is not None and other is not None and one.name == other.name and one.digest == other.digest:
            continue
        recorded = "" if one is None else _show(one.name, bytes(one.detail), one.digest)
        now = "" if other is None else _show(other.name, other.data, other.digest)
        yield Difference(step.line, step.now, f"{name}: effect {number}", *_around(recorded, now))


def _show(name: str, data: bytes, digest: str) -> str:
    text = f"({digest})" if data == b"null" else data.decode(errors="replace")
    return f"{name} {text}"


def _around(expected: str, got: str) -> tuple[str, str]:
    """Cuts two texts to what stands around their first difference."""
    same = next((at for at, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), 0)
    start = max(0, same - _SHOWN // 4) if max(len(expected), len(got)) > _SHOWN else 0
    return _cut(expected, start), _cut(got, start)


def _cut(text: str, start: int) -> str:
    before, after = ("… " if start else ""), (" …" if len(text) > start + _SHOWN else "")
    return f"{before}{text[start : start + _SHOWN]}{after}" if len(text) > start else text[-_SHOWN:]
