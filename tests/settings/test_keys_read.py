"""No key of the configuration is for nothing: a server that is made, runs and ends has looked at each."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from orchestrator.app import Application
from orchestrator.settings import Settings
from orchestrator.settings.parts import server_options
from orchestrator.settings.schema import Section, Server, Tls
from tests.test_app import readiness, running
from tests.transports.running import until

ELSEWHERE = {
    "Server.workers": "refused by itself where it is not 1",
    "Logging.level": "`chorale serve` reads it, before there is a server",
    "Logging.format": "`chorale serve` reads it, before there is a server",
}


def keys(section: type[BaseModel]) -> Iterator[str]:
    """Yields the keys of a section and of those in it that hold no section of their own, as ``Section.key``."""
    for name, field in section.model_fields.items():
        inner = [one for one in _sections(field.annotation) if one is not section]
        if inner:
            for one in inner:
                yield from keys(one)
        else:
            yield f"{section.__name__}.{name}"


def _sections(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, Section) else []
    return [found for part in getattr(annotation, "__args__", ()) for found in _sections(part)]


def test_server_reads_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With everything switched on that is off by default. A key that nobody reads has no effect, whatever the file of
    defaults says of it."""
    read: set[str] = set()
    plain = Section.__getattribute__

    def noted(self: Section, name: str) -> object:
        for kind in type(self).__mro__:
            if issubclass(kind, Section) and name in kind.model_fields:
                read.add(f"{kind.__name__}.{name}")
        return plain(self, name)

    file = tmp_path / "keys.yaml"
    file.write_text("keys:\n- {key: sk-0123456789abcdef, tenant: a}\n")
    (tmp_path / "signing").write_bytes(bytes(32))
    monkeypatch.setattr(Section, "__getattribute__", noted)

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        file.write_text("keys:\n- {key: sk-fedcba9876543210, tenant: a}\n")
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: "Server.revoke" in read)

    server_options(Server(tls=Tls(cert=file, key=file)))
    running(
        test,
        {
            "CHORALE_SERVER__KEY_FILE": str(file),
            "CHORALE_SERVER__SECRET_FILE": str(tmp_path / "signing"),
            "CHORALE_SERVER__GRPC": "{port: 0}",
            "CHORALE_CALLS__ICE_SERVERS": "[{urls: 'stun:127.0.0.1:9'}]",
            "CHORALE_RECORDING__DIR": str(tmp_path / "recordings"),
        },
    )
    assert "Server.key_poll_s" in read
    unread = {key for key in keys(Settings) if key not in read} - ELSEWHERE.keys()
    assert unread == set()
