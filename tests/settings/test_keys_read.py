"""No key of the configuration is for nothing: a server that is made, runs and ends has looked at each."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from orchestrator.app import Application
from orchestrator.clock import MonotonicClock
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.settings import Settings, load
from orchestrator.settings import parts as parts_of
from orchestrator.settings.parts import server_options
from orchestrator.settings.schema import Calls, Http, Inbound, Section, Server, Tls
from tests.fakes.workers import FakeWorkers, obliging
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


CHANGED = {
    "SERVER__COMPRESSION": "false",
    "SERVER__PING_S": "7",
    "SERVER__MAX_SESSIONS": "7",
    "SERVER__GRPC": "{port: 7}",
    "SERVER__BATCH_TIER": "silver",
    "HTTP__HEARTBEAT_S": "7",
    "HTTP__RETRY_MS": "7",
    "HTTP__MAX_UPLOAD_BYTES": "7",
    "HTTP__MAX_AUDIO_S": "7",
    "INBOUND__EVENTS_PER_S": "7",
    "INBOUND__BYTES_PER_S": "7",
    "INBOUND__BURST_BYTES": "7",
    "INBOUND__EXCESS_S": "7",
    "INBOUND__SESSION_BYTES": "7",
    "CALLS__ICE_SERVERS": "[{urls: 'stun:127.0.0.1:9'}]",
    "CALLS__ICE_TIMEOUT_S": "7",
    "CALLS__MAX_CONNECTING": "7",
    "CALLS__PUBLIC_ADDRESSES": "[203.0.113.7]",
}


def parts(settings: Settings) -> list[object]:
    """What the doors are made of, as far as the configuration goes."""
    made = parts_of.openai(settings, Dispatcher(FakeWorkers(obliging, 0), MonotonicClock()), MonotonicClock())
    registry = parts_of.registry_settings(settings)
    return [
        server_options(settings.server),
        parts_of.grpc_options(settings.server),
        parts_of.stream_settings(settings),
        parts_of.rate(settings),
        parts_of.call_settings(settings),
        (made.limits, vars(made.errands)["_best_tier"]),
        (registry.max_sessions, registry.rules.item_bytes),
    ]


@pytest.mark.parametrize("name", CHANGED)
def test_key_changes_what_the_doors_are_made_of(name: str) -> None:
    """Each by itself. What becomes of it at a door is tested there."""
    assert parts(load(None, {f"CHORALE_{name}": CHANGED[name]})) != parts(load(None, {}))


def test_every_key_of_these_sections_is_tried() -> None:
    """One that comes to be is to be tried too."""
    tried = {name.split("__")[0].title() + "." + name.split("__")[1].lower() for name in CHANGED}
    wanted = {key for section in (Http, Inbound) for key in keys(section)} | {
        f"Calls.{name}" for name in Calls.model_fields
    }
    assert wanted <= tried
