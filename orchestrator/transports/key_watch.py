"""Looks at the key file again and again: what stands in it holds without a restart.

A file that is wrong, half written or gone changes nothing: the keys before it stay, and the log says why, once. A file
is read when it has said the same for one look, or at once when it is asked for (SIGHUP).
"""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from orchestrator.errors import ConfigError
from orchestrator.transports.auth import KeyRing
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.key_file import read_key_file

log = logging.getLogger(__name__)

Signature = bytes | None
"""A hash of what a file says; None where there is none that can be read."""


def signature_of(path: Path) -> Signature:
    """Returns what tells that a file says something else; links are followed. One that is written again and again with
    the same words stays the same: a key that left it is not to be good for as long as that goes on."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None


class KeyWatch:
    """Keeps the keys of an entrance those of a file. `run` is its task.

    `on_ring` is told of every new ring, `on_gone` of the keys that are worth nothing any more, be it that they left the
    file or that they expired.
    """

    def __init__(
        self,
        path: Path,
        entrance: Entrance,
        poll_s: float,
        on_ring: Callable[[KeyRing], None] = lambda ring: None,
        on_gone: Callable[[frozenset[str]], None] = lambda key_ids: None,
        read: Callable[[Path], KeyRing] = read_key_file,
    ) -> None:
        """The entrance has the keys of the file as it is now. `read` reads it, or raises `ConfigError`."""
        self._path = path
        self._entrance = entrance
        self._poll_s = poll_s
        self._on_ring = on_ring
        self._on_gone = on_gone
        self._read_file = read
        self._applied = signature_of(path)
        """The file that was read last, whatever came of it."""
        self._seen = self._applied
        self._asked = asyncio.Event()
        entrance.gone()  # from here on

    def look_now(self) -> None:
        """Asks for the file to be read again, changed or not."""
        self._asked.set()

    async def run(self) -> None:
        """Looks until it is cancelled. A task border: a fault of ours in one look is logged, and the next one comes."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):  # wait_for can swallow a cancellation
                    await self._asked.wait()
            at_once = self._asked.is_set()
            self._asked.clear()
            try:
                await self.look(at_once)
            except Exception:
                log.exception("the key file could not be looked at")

    async def look(self, at_once: bool = False) -> None:
        """Looks once. `at_once`: the file is read though nobody knows whether it is still being written."""
        now = await asyncio.to_thread(signature_of, self._path)
        settled, self._seen = now == self._seen, now
        if at_once or (settled and now != self._applied):
            await self._read(now, at_once)
        if gone := self._entrance.gone():
            log.warning("keys withdrawn", extra={"keys": ",".join(sorted(gone))})
            self._on_gone(gone)

    async def _read(self, signature: Signature, at_once: bool) -> None:
        try:
            ring = await asyncio.to_thread(self._read_file, self._path)
        except ConfigError as error:
            if at_once or await self._still_says(signature):
                self._applied = signature
                log.error("the key file is not taken, the keys before it stay: %s", error)
            return
        if not (at_once or await self._still_says(signature)):
            return  # half of it may have been written while it was read
        self._applied = signature
        self._entrance.gate.replace(ring)
        log.info("key file read", extra={"keys": len(ring)})
        tell_in_clear(ring)
        self._on_ring(ring)

    async def _still_says(self, signature: Signature) -> bool:
        return await asyncio.to_thread(signature_of, self._path) == signature


def tell_in_clear(ring: KeyRing) -> None:
    """Warns of keys that whoever reads the file can use."""
    if ring.in_clear:
        log.warning(
            "keys stand in clear in the key file; `chorale keys hash` hides them",
            extra={"keys": ring.in_clear},
        )
