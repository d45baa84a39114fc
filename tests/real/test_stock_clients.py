"""The scenarios of `make clients`, with clients that are there wherever this is tested: gRPC by what reflection says,
and a browser's own `EventSource`. The language model is a script; speech is heard and spoken by real models."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.real.serving import free_port, serving
from tests.third_party import chromium_client
from tests.third_party.clients import SCRIPT, TALK
from tests.third_party.converse import over
from tests.third_party.reflection_client import Reflected
from tests.third_party.run import say
from tests.third_party.stage import Scenario, Stage

pytestmark = pytest.mark.real

REFLECTED: Mapping[str, Scenario] = over(Reflected)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("clients")
    say(made / "question.wav")
    return made


@pytest.fixture(scope="module")
def grpc_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def url(folder: Path, grpc_port: int) -> Iterator[str]:
    """A server whose language model is a script; it speaks gRPC, too."""
    settings = {
        "CHORALE_WORKERS__LLM__ENGINE": "scripted",
        "CHORALE_WORKERS__LLM__OPTIONS": json.dumps(SCRIPT),
        "CHORALE_SERVER__GRPC__PORT": str(grpc_port),
    }
    with serving(folder / "log", settings) as address:
        yield address


def play(scenario: Scenario, folder: Path, url: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(180):
            await scenario(Stage({"question": str(folder / "question.wav")}, url))

    asyncio.run(main())


@pytest.mark.parametrize("scenario", TALK)
def test_client_that_knows_nothing_talks_over_grpc(
    folder: Path, url: str, grpc_port: int, scenario: str
) -> None:
    """It asks what there is, and is answered, called, interrupted and let in again by that alone."""
    play(REFLECTED[scenario], folder, f"http://127.0.0.1:{grpc_port}")


@pytest.mark.browser
@pytest.mark.parametrize("scenario", ["text", "interrupt", "again"])
def test_page_of_another_origin_talks_by_event_source(folder: Path, url: str, scenario: str) -> None:
    """Written to over requests and read as events: with sound, cut in the middle, and from where it was."""
    play(chromium_client.played("events", scenario, None), folder, f"{url}/v1")
