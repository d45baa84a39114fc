"""The keys of a server follow their file; a file that is wrong changes nothing."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.clock import MonotonicClock
from orchestrator.errors import Unauthorized
from orchestrator.transports.auth import Gate, KeyRing, SecretBook
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.key_file import read_key_file
from orchestrator.transports.key_watch import KeyWatch
from tests.transports.running import until

ONE, TWO = "sk-one-0123456789", "sk-two-0123456789"


class Watched:
    """An entrance with a key file, and what its watch told."""

    def __init__(self, folder: Path, poll_s: float = 3_600) -> None:
        self.file = folder / "keys.yaml"
        self.write(f"keys: [{{key: {ONE}, tenant: a}}]")
        self.now_us = 1_000
        gate = Gate(read_key_file(self.file), SecretBook(4))
        self.entrance = Entrance(gate, (), (), MonotonicClock(), wall_us=lambda: self.now_us)
        self.rings: list[KeyRing] = []
        self.gone: list[frozenset[str]] = []
        self.watch = KeyWatch(self.file, self.entrance, poll_s, self.rings.append, self.gone.append)

    def write(self, text: str) -> None:
        """Replaces the file, as editors do: it has another number even within one tick of the file system's clock."""
        beside = self.file.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self.file)

    def lets_in(self, key: str) -> bool:
        try:
            self.entrance.admit({"authorization": f"Bearer {key}"})
        except Unauthorized:
            return False
        return True


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def both(first: str = ONE, second: str = TWO) -> str:
    return f"keys: [{{key: {first}, tenant: a}}, {{key: {second}, tenant: a}}]"


def test_key_is_taken_once_its_file_stays_the_same(watched: Watched) -> None:
    """Not at the first sight of a change, which may be half of it; then with no restart."""

    async def test() -> None:
        await watched.watch.look()
        assert watched.rings == []
        watched.write(both())
        await watched.watch.look()
        assert not watched.lets_in(TWO)
        await watched.watch.look()
        assert watched.lets_in(ONE)
        assert watched.lets_in(TWO)
        assert len(watched.rings) == 1
        await watched.watch.look()
        assert len(watched.rings) == 1
        assert watched.gone == []

    asyncio.run(test())


def test_file_that_is_written_again_and_again_is_taken_by_what_it_says(watched: Watched) -> None:
    """A program that puts the same words there before each look cannot keep a key that has left them; nor is the file
    read again for it."""

    async def test() -> None:
        for _ in range(4):
            watched.write(f"keys: [{{key: {TWO}, tenant: a}}]")
            await watched.watch.look()
        assert [watched.lets_in(key) for key in (ONE, TWO)] == [False, True]
        assert len(watched.rings) == 1

    asyncio.run(test())


@pytest.mark.parametrize("half", [f"keys: [{{key: {TWO}, tenant: a}}]", "keys: [{"])
def test_file_that_changes_while_it_is_read_is_not_taken(
    half: str, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """What was read may be half of it, be it half a list of keys or half a word."""

    def read(path: Path) -> KeyRing:
        watched.write(half)
        return read_key_file(path)

    async def test() -> None:
        watch = KeyWatch(watched.file, watched.entrance, 3_600, read=read)
        watched.write(both())
        for _ in range(2):
            await watch.look()
        assert watched.file.read_text() == half
        assert [watched.lets_in(key) for key in (ONE, TWO)] == [True, False]
        assert not [record for record in caplog.records if record.levelname == "ERROR"]

    asyncio.run(test())


def test_key_that_leaves_the_file_is_gone_with_its_secrets(watched: Watched) -> None:
    """It is refused from then on, and told of once, with its id."""

    async def test() -> None:
        owner = watched.entrance.admit({"authorization": f"Bearer {ONE}"})
        secret = watched.entrance.make_secret(owner, None, 600).value
        assert watched.lets_in(secret)
        watched.write(f"keys: [{{key: {TWO}, tenant: a}}]")
        await watched.watch.look(at_once=True)
        assert [watched.lets_in(key) for key in (ONE, TWO, secret)] == [False, True, False]
        await watched.watch.look(at_once=True)
        assert watched.gone == [frozenset({owner.key_id})]

    asyncio.run(test())


def test_key_that_expires_is_gone_without_a_change(tmp_path: Path) -> None:
    """Time alone withdraws it."""

    async def test() -> None:
        watched = Watched(tmp_path)
        watched.write(f"keys: [{{key: {ONE}, tenant: a, expires: 2001-01-01}}, {{key: {TWO}, tenant: a}}]")
        await watched.watch.look(at_once=True)
        assert watched.gone == []
        watched.now_us = 10**15
        await watched.watch.look()
        assert [len(key_ids) for key_ids in watched.gone] == [1]
        assert not watched.lets_in(ONE)

    asyncio.run(test())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_text("keys: ["),
        lambda file: file.write_text("keys: []"),
        lambda file: file.write_text(""),
        lambda file: file.write_bytes(b"\xff\xfe"),
        lambda file: file.write_text("keys: [{key: short, tenant: a}]"),
        lambda file: file.unlink(),
        lambda file: (file.unlink(), file.mkdir()),
    ],
)
def test_file_that_is_wrong_changes_nothing(
    spoil: Callable[[Path], object], watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """The keys before it stay, nobody is sent away, the log says so once; a good one after it is taken."""

    async def test() -> None:
        spoil(watched.file)
        with caplog.at_level(logging.INFO):
            for _ in range(4):
                await watched.watch.look()
        assert watched.lets_in(ONE)
        assert watched.rings == []
        assert watched.gone == []
        assert len([one for one in caplog.records if one.levelno >= logging.ERROR]) == 1
        assert "sk-" not in caplog.text
        if watched.file.is_dir():
            watched.file.rmdir()
        watched.write(both())
        await watched.watch.look()
        await watched.watch.look()
        assert watched.lets_in(TWO)

    asyncio.run(test())


def test_file_written_in_place_is_noticed(watched: Watched) -> None:
    """Also with the same size, and through a link that is pointed elsewhere, as orchestrators do it."""

    async def test() -> None:
        watched.file.write_text(both(TWO, ONE))
        await watched.watch.look()
        await watched.watch.look()
        assert watched.lets_in(TWO)
        watched.file.write_text(both("sk-six-0123456789", ONE))
        os.utime(watched.file, ns=(1, 1))
        await watched.watch.look()
        await watched.watch.look()
        assert not watched.lets_in(TWO)
        other = watched.file.with_name("other.yaml")
        other.write_text(both())
        watched.file.unlink()
        watched.file.symlink_to(other)
        await watched.watch.look()
        await watched.watch.look()
        assert watched.lets_in(TWO)

    asyncio.run(test())


def test_watch_looks_by_itself_and_at_once_when_asked(tmp_path: Path) -> None:
    """With a long pause between looks, asking is what reads the file; with a short one nobody asks."""

    async def test() -> None:
        async with asyncio.timeout(120):
            for poll_s, asks in ((3_600.0, True), (0.001, False)):
                watched = Watched(tmp_path, poll_s)
                running = asyncio.create_task(watched.watch.run())
                watched.write(both())
                if asks:
                    watched.watch.look_now()
                await until(lambda watched=watched: bool(watched.rings))  # type: ignore[misc]
                assert watched.lets_in(TWO)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(test())


def test_watch_goes_on_after_a_fault_of_ours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is told of a ring fails once: the next change is taken all the same."""

    async def test() -> None:
        watched = Watched(tmp_path)
        told: list[KeyRing] = []

        def fail_once(ring: KeyRing) -> None:
            told.append(ring)
            if len(told) == 1:
                raise RuntimeError("broken")

        watch = KeyWatch(watched.file, watched.entrance, 3_600, fail_once)
        running = asyncio.create_task(watch.run())
        async with asyncio.timeout(120):
            for count in (1, 2):
                watch.look_now()
                await until(lambda count=count: len(told) == count)  # type: ignore[misc]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert "could not be looked at" in caplog.text

    asyncio.run(test())
