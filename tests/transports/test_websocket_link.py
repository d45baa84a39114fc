"""What a link sends: at once while its client reads, many entries in one write, every message whole."""

from collections.abc import Sequence

import pytest

from orchestrator.errors import WireError
from orchestrator.transports import server
from tests.transports.running import Running, against, heard, open_session


def test_answers_that_are_read_are_not_bounded() -> None:
    """A client that reads gets an answer to each of its errors, however many it makes, all in order."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            (one,) = session.links.values()
            for number in range(1_000):
                session.refuse(one.id, WireError("invalid_event", "no"), f"mine_{number}")
            answered = [(await heard(link))["error"]["event_id"] for _ in range(1_000)]
            assert answered == [f"mine_{number}" for number in range(1_000)]

    against(test)


def test_what_came_together_leaves_in_one_write_and_arrives_one_by_one() -> None:
    """Entries that wait for one turn of the loop cost one write together; each is a message of its own, in order."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            (connection,) = running.server.server_state.connections
            assert isinstance(connection, server.MeasuredProtocol)
            writes: list[int] = []
            usual = connection.send_texts

            def send(texts: Sequence[bytes]) -> None:
                writes.append(len(texts))
                usual(texts)

            connection.send_texts = send  # type: ignore[method-assign]
            links, session.links = session.links, {}  # nobody is woken until all of it is there
            for number in range(200):
                session.emit(f"event.{number}")
            session.links = links
            session.emit("last")
            found = [(await heard(link))["type"] for _ in range(201)]
            assert found == [*(f"event.{number}" for number in range(200)), "last"]
            assert writes == [64, 64, 64, 9]

    against(test)


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 100_000])
def test_message_of_any_length_arrives_whole(size: int) -> None:
    """The three forms of a frame's length (RFC 6455 §5.2), at their borders."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            empty = len('{"event_id":"","type":""}' + session.event_id(1))
            session.emit("x" * max(0, size - empty))
            text = await link.recv(decode=False)
            assert len(text) == max(size, empty)
            session.emit("next")
            assert (await heard(link))["type"] == "next"

    against(test, options=server.ServerOptions(compression=False))
