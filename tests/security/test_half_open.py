"""Offers that are answered, and of which nothing more is heard: a thousand of them (fewer in a quick run)."""

import asyncio
import json
import os
import socket
from pathlib import Path

import httpx
import pytest

from orchestrator.clients.call import RealtimeCall
from tests.security.doors import ACME, OTHER, Fort, Shown, defended
from tests.transports.calling import open_files
from tests.transports.running import until
from tests.transports.test_http import CALLS, SDP

OFFERS = int(os.environ.get("CHORALE_HALF_OPEN", "60"))
"""`make fuzz` makes it a thousand."""

AT_ONCE = 32
TOO_LATE = 404
"""Where the machine was so busy that a call's time was up before it was answered."""

WITHIN_S = 120 + OFFERS
IMPATIENT = {"CHORALE_CALLS__ICE_TIMEOUT_S": "2", "CHORALE_SESSIONS__GRACE_S": "1"}


def udp_sockets() -> int:
    """How many this process has open."""
    mine = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            mine.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:  # it was that of the listing
            continue
    found = 0
    for table in ("udp", "udp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            found += f"socket:[{line.split()[9]}]" in mine
    return found


async def offered(fort: Fort, count: int, key: str = ACME) -> list[int]:
    """Posts so many offers, `AT_ONCE` of them at a time; returns what each was answered."""
    busy = asyncio.Semaphore(AT_ONCE)

    async def post(client: httpx.AsyncClient) -> int:
        async with busy:
            answer = await client.post(CALLS, content=fort.offer, headers={**SDP, **Shown(key).headers()})
            if answer.status_code == TOO_LATE:
                assert answer.json()["error"]["code"] == "session_expired"
            elif answer.status_code != 201:
                assert int(answer.headers["retry-after"]) >= 1
                assert answer.json()["error"]["code"] == "rate_limit_exceeded"
            return answer.status_code

    async with httpx.AsyncClient(base_url=fort.url, trust_env=False, timeout=120) as client:
        return await asyncio.gather(*(post(client) for _ in range(count)))


async def talks(fort: Fort, key: str) -> None:
    """Makes a real call, says something and hears the answer."""
    async with RealtimeCall.connect(fort.url, key, connect_within_s=60) as call:
        await call.send({"type": "response.create"})
        async for event in call.events():
            if event["type"] == "response.done":
                assert event["response"]["status"] == "completed", json.dumps(event)
                return
    pytest.fail("the call ended without an answer")


async def back_to(fort: Fort, files: int) -> None:
    """Returns once nothing is left of any call."""
    await until(lambda: fort.application._calls.calls == 0)
    await until(lambda: not fort.application._registry._sessions)
    await until(lambda: udp_sockets() == 0)
    await until(lambda: open_files() <= files)


def test_half_open_calls_of_one_tenant_take_a_part_of_the_places(tmp_path: Path) -> None:
    """A quarter, as the bound says; the rest is told when to come back, before there is a socket for it. Meanwhile
    another tenant's call connects and is answered; afterwards everything is as before, and the places can be taken
    again."""

    async def test(fort: Fort) -> None:
        assert udp_sockets() == 0
        await talks(fort, OTHER)  # what is made for the first call, and kept, is made
        await back_to(fort, open_files())
        files = open_files()
        answered = await offered(fort, OFFERS)
        assert {201, 429} <= set(answered) <= {201, 429, TOO_LATE}
        calls = fort.application._calls
        assert calls.calls <= answered.count(201)
        attacking = asyncio.create_task(offered(fort, OFFERS))
        await talks(fort, OTHER)
        await attacking
        await back_to(fort, files)
        assert (await offered(fort, 1)) == [201]
        await back_to(fort, files)

    defended(tmp_path, test, {**IMPATIENT, "CHORALE_CALLS__MAX_CONNECTING": "16"}, WITHIN_S)


def test_half_open_calls_that_are_all_let_in_give_everything_back(tmp_path: Path) -> None:
    """Where nothing bounds them, each has its session and its sockets until its time is up: then places, sockets and
    files are as before. A real call gets through them."""

    async def test(fort: Fort) -> None:
        await talks(fort, OTHER)
        await back_to(fort, open_files())
        files, most = open_files(), 0
        attacking = asyncio.create_task(offered(fort, OFFERS))
        while not attacking.done():
            most = max(most, udp_sockets())
            await asyncio.sleep(0.05)
        assert {201} <= set(await attacking) <= {201, TOO_LATE}
        assert most >= 1
        await talks(fort, OTHER)
        await back_to(fort, files)

    unbounded = {"CHORALE_CALLS__MAX_CONNECTING": "100000", "CHORALE_SERVER__MAX_SESSIONS": "100000"}
    patience = {"CHORALE_CALLS__ICE_TIMEOUT_S": str(max(20, OFFERS // 10))}
    defended(tmp_path, test, {**IMPATIENT, **unbounded, **patience}, WITHIN_S)


def test_stranger_cannot_fill_the_port_of_a_half_open_call(tmp_path: Path) -> None:
    """Datagrams of any kind to the sockets of calls that are being connected: nothing is answered with more than was
    sent, and the calls end in their time."""

    async def test(fort: Fort) -> None:
        await talks(fort, OTHER)
        await back_to(fort, open_files())
        files = open_files()
        async with httpx.AsyncClient(base_url=fort.url, trust_env=False, timeout=60) as client:
            answer = await client.post(CALLS, content=fort.offer, headers={**SDP, **Shown(ACME).headers()})
        candidates = [line.split() for line in answer.text.splitlines() if line.startswith("a=candidate:")]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.setblocking(False)
            sent = received = 0
            for fields in candidates:
                if ":" in fields[4] or fields[2].lower() != "udp":
                    continue
                for size in (0, 1, 20, 28, 100, 1_400):
                    for first in (b"", b"\0\1", b"\1\1", b"\x16\xfe\xff", b"\x80\x60"):
                        sent += stranger.sendto((first + bytes(size))[:1_400], (fields[4], int(fields[5])))
                    await asyncio.sleep(0)
            await until(lambda: fort.application._calls.calls == 0)
            while True:
                try:
                    received += len(stranger.recv(65_536))
                except BlockingIOError:
                    break
        assert sent > 0
        assert received <= sent
        await back_to(fort, files)

    defended(tmp_path, test, IMPATIENT)
