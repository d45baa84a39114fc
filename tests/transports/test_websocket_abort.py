"""Clients that connect and are gone again, at any point (F-C3, the WebSocket's part)."""

import asyncio
import gc
import os
import random
import socket
import struct
import threading

from orchestrator.transports.server import MeasuredProtocol
from orchestrator.transports.websocket_link import WebSocketLink
from tests.transports.running import Running, against, build, heard, until

ABORTS = 200
AT_ONCE = 20
_UPGRADE = (
    b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_MESSAGE = b'{"type":"response.create","response":{"instructions":"' + 300 * b"x" + b'"}}'
_FRAME = b"\x81\xfe" + struct.pack("!H", len(_MESSAGE)) + bytes(4) + _MESSAGE


async def abort(port: int, chance: random.Random) -> None:
    """Sends a random part of an upgrade and a message, reads or does not, and goes politely or with a reset."""
    loop = asyncio.get_running_loop()
    with socket.socket() as one:
        one.setblocking(False)
        await loop.sock_connect(one, ("127.0.0.1", port))
        said = _UPGRADE + _FRAME
        upgraded = chance.random() < 0.7
        first = _UPGRADE if upgraded else said[: chance.randrange(len(_UPGRADE))]
        await loop.sock_sendall(one, first)
        if upgraded and chance.random() < 0.7:
            await loop.sock_recv(one, 4_096)
        if upgraded:
            await loop.sock_sendall(one, _FRAME[: chance.randrange(len(_FRAME) + 1)])
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if chance.random() < 0.5:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def living(*kinds: type) -> int:
    """How many objects of these kinds there are."""
    gc.collect()
    # By type: `isinstance` asks every object for its class, and lazy ones of other libraries wake up and warn.
    return sum(issubclass(type(one), kinds) for one in gc.get_objects())


def open_files() -> int:
    """How many files this process has open; 0 where the system does not tell."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_clients_that_give_up_anywhere_leave_nothing_behind() -> None:
    """F-C3: two hundred connect and abort at random points: tasks, connections, links, files, threads and timers come
    back to what they were, and nothing of them is held in memory. The next client is served."""
    chance = random.Random(3)

    async def test(running: Running) -> None:
        loop = asyncio.get_running_loop()

        def timers() -> int:
            return sum(not timer.cancelled() for timer in loop._scheduled)  # type: ignore[attr-defined]

        async with running.connect() as link:
            await heard(link)
        await until(lambda: not running.server.server_state.connections)
        await until(lambda: len(asyncio.all_tasks()) == 2)  # the server's and ours
        threads, files = threading.active_count(), open_files()
        held, due = living(WebSocketLink, MeasuredProtocol), timers()
        for _ in range(ABORTS // AT_ONCE):
            await asyncio.gather(*(abort(running.port, chance) for _ in range(AT_ONCE)))
        await until(lambda: not running.server.server_state.connections and running.house.door.links == 0)
        await until(lambda: len(asyncio.all_tasks()) == 2)
        # Fewer, where something that an earlier test left behind has ended meanwhile.
        await until(lambda: threading.active_count() <= threads and open_files() <= files)
        assert all(not session.links for session in running.house.directory.sessions)
        assert living(WebSocketLink, MeasuredProtocol) <= held
        assert timers() <= due
        async with running.connect() as link:
            assert (await heard(link))["type"] == "session.created"

    against(test, lambda: build(capacity=1_000, max_links=1_000))
