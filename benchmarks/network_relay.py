"""A bad network between a WebRTC client and a server: a UDP relay whose address stands in the server's answer.

The client knows the server by the relay's address only; the server learns the client's by its checks. Everything
passes here: ICE, DTLS, sound, events. Each client address gets a socket of its own towards the server, as behind a
router that translates addresses; `move` gives it another one, as such a router does after a while or a phone does
when it leaves the house.
"""

import asyncio
import itertools
from collections.abc import Callable

from benchmarks.network_faults import Conditions, Line, LineStatistics

Address = tuple[str, int]

MAX_CLIENTS = 64
"""Client addresses of one call at most; datagrams of further ones are not carried."""


class _Socket(asyncio.DatagramProtocol):
    """Hands on what comes. Errors (nobody listens at the other end) are what a network is like, too."""

    def __init__(self, receive: Callable[[bytes, Address], None]) -> None:
        self._receive = receive

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self._receive(data, addr)


class Relay:
    """Carries datagrams between any clients and one server address. Made by `open`, ended by `close`."""

    def __init__(self, server: Address, seed: int) -> None:
        self._server = server
        self._up, self._down = Line(seed), Line(seed + 1)
        self._front: asyncio.DatagramTransport | None = None
        self._backs: dict[Address, asyncio.DatagramTransport] = {}
        self._opening: dict[Address, list[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self._under_way: dict[int, asyncio.TimerHandle] = {}
        self._loop = asyncio.get_running_loop()
        self._closed = False

    @classmethod
    async def open(cls, server: Address, seed: int = 0) -> "Relay":
        """Opens a relay to a server's address, on the same interface; it carries everything at once."""
        relay = cls(server, seed)
        relay._front, _ = await relay._loop.create_datagram_endpoint(
            lambda: _Socket(relay._from_client), local_addr=(server[0], 0)
        )
        return relay

    @property
    def address(self) -> Address:
        """Where clients send to."""
        assert self._front is not None
        host, port = self._front.get_extra_info("sockname")[:2]
        return host, port

    def set(self, up: Conditions, down: Conditions | None = None) -> None:
        """Changes what happens to datagrams from now on; `up` is towards the server, `down` the same where not
        said."""
        self._up.conditions = up
        self._down.conditions = up if down is None else down

    def statistics(self) -> tuple[LineStatistics, LineStatistics]:
        """Returns the counters towards the server and towards clients."""
        return self._up.statistics(), self._down.statistics()

    def move(self) -> None:
        """Gives every client another address towards the server; the old one is dead."""
        for back in self._backs.values():
            back.close()
        self._backs.clear()

    def close(self) -> None:
        """Ends everything; datagrams under way are lost. Idempotent."""
        self._closed = True
        for timer in self._under_way.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        self.move()
        if self._front is not None:
            self._front.close()

    def _from_client(self, data: bytes, client: Address) -> None:
        self._carry(self._up, data, lambda: self._to_server(data, client))

    def _from_server(self, data: bytes, client: Address) -> None:
        front = self._front
        assert front is not None
        self._carry(self._down, data, lambda: front.sendto(data, client))

    def _carry(self, line: Line, data: bytes, deliver: Callable[[], None]) -> None:
        now_s = self._loop.time()
        for at_s in line.carry(len(data), now_s):
            if at_s <= now_s:
                deliver()
                continue
            number = next(self._numbers)
            self._under_way[number] = self._loop.call_at(at_s, self._arrive, number, deliver)

    def _arrive(self, number: int, deliver: Callable[[], None]) -> None:
        del self._under_way[number]
        deliver()

    def _to_server(self, data: bytes, client: Address) -> None:
        back = self._backs.get(client)
        if back is not None:
            back.sendto(data, self._server)
        elif client in self._opening:
            self._opening[client].append(data)
        elif len(self._backs) < MAX_CLIENTS and not self._closed:
            self._opening[client] = [data]
            task = self._loop.create_task(self._add(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _add(self, client: Address) -> None:
        back, _ = await self._loop.create_datagram_endpoint(
            lambda: _Socket(lambda data, _: self._from_server(data, client)), local_addr=(self._server[0], 0)
        )
        waiting = self._opening.pop(client)
        if self._closed:
            back.close()
            return
        self._backs[client] = back
        for data in waiting:
            back.sendto(data, self._server)


def without_candidates(sdp: str) -> str:
    """Returns an offer that does not tell where its client is, nor that it never will."""
    return "\r\n".join(line for line in sdp.splitlines() if not line.startswith(_CANDIDATES)) + "\r\n"


def server_address(answer: str) -> Address:
    """Returns the first host address (IPv4) of an answer. Raises `LookupError` where it has none."""
    for line in answer.splitlines():
        fields = line.split()
        if line.startswith("a=candidate:") and fields[7] == "host" and "." in fields[4]:
            return fields[4], int(fields[5])
    raise LookupError("the answer names no IPv4 host candidate")


async def reroute(answer: str, seed: int = 0) -> tuple[str, Relay]:
    """Returns an answer by which a client reaches the server through a new relay only, and that relay."""
    relay = await Relay.open(server_address(answer), seed)
    host, port = relay.address
    lines: list[str] = []
    for line in answer.splitlines():
        if line.startswith("a=candidate:") and not lines[-1].startswith("a=candidate:relayed "):
            lines.append(f"a=candidate:relayed 1 udp 2130706431 {host} {port} typ host")
        elif not line.startswith("a=candidate:"):
            lines.append(line)
    return "\r\n".join(lines) + "\r\n", relay


_CANDIDATES = ("a=candidate", "a=end-of-candidates")
