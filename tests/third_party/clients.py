"""Which clients there are, how each is started, and what each is asked to do."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.real.serving import ROOT

HERE = Path(__file__).parent
ENVIRONMENTS = ROOT / ".venv-clients"

SCRIPTED = frozenset({"tool", "interrupt", "chat"})
SCRIPT: Mapping[str, object] = {
    "replies": {
        "story": " ".join(f"The king went to town number {n} and sang a song." for n in range(1, 40))
    },
    "tool_calls": {"weather": {"name": "get_weather", "arguments": {"city": "Paris"}}},
}
"""The second server's language model: a story where one is asked for, a call where the weather is, else an echo."""

TALK = ("text", "audio", "tool", "interrupt", "again", "odd")
REQUESTS = ("chat", "transcribe", "speech", "embed")
"""Without a session: the OpenAI HTTP API."""

SCENARIOS = (*TALK, "resume", "listen", *REQUESTS)


class Door(Enum):
    """Which port a client is told."""

    HTTP = "http"
    GRPC = "grpc"


@dataclass(frozen=True, slots=True)
class Client:
    """One program with one client; its task's path follows `command`. `tls`: it connects in no other way. `tapped`:
    what it is told can be read along on the line; only a WebSocket can. `needs`: a program that is not installed by
    `make clients`; without it the client is left out."""

    name: str
    command: tuple[str, ...]
    scenarios: tuple[str, ...] = TALK
    tls: bool = False
    tapped: bool = True
    door: Door = Door.HTTP
    needs: str | None = None


def _python(environment: str, module: str) -> tuple[str, ...]:
    return (str(ENVIRONMENTS / environment / "bin" / "python"), "-m", f"tests.third_party.{module}")


def _own(module: str, *arguments: str) -> tuple[str, ...]:
    """In the environment of the server: what it needs to be tested is there."""
    return (sys.executable, "-m", f"tests.third_party.{module}", *arguments)


def _node(script: str) -> tuple[str, ...]:
    return ("node", str(HERE / "javascript" / script))


CLIENTS = (
    Client("openai", _python("agents", "openai_python"), SCENARIOS),
    Client("openai-agents", _python("agents", "agents_python"), (*TALK, "chat")),
    Client("pipecat", _python("pipecat", "pipecat_client")),
    Client("livekit", _python("livekit", "livekit_client")),
    Client("openai-js", _node("openai.mjs"), SCENARIOS, tls=True),
    Client("openai-agents-js", _node("agents.mjs")),
    Client("connect-web", _node("connect.mjs"), tapped=False),
    Client("connect-web-chromium", _own("chromium_client", "connect"), tapped=False, needs="chromium"),
    Client("eventsource-chromium", _own("chromium_client", "events"), tapped=False, needs="chromium"),
    Client("grpc-reflection", _own("reflection_client"), tapped=False, door=Door.GRPC),
    Client("buf-curl", _own("command_client", "buf"), tapped=False, door=Door.GRPC),
    Client("grpcurl", _own("command_client", "grpcurl"), tapped=False, door=Door.GRPC, needs="grpcurl"),
)
"""By what they are called on the command line."""
