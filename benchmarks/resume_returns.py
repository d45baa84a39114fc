"""Returns to a long log for `chorale bench resume`, timed by a process of their own.

A client with threads of its own, beside a server that is busy sending, would wait for Python's lock most of the time.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from contextlib import aclosing
from typing import NamedTuple

import uvloop
from websockets.asyncio.client import connect

from benchmarks.door_clients import Place
from benchmarks.resume_rpc import Following
from benchmarks.resume_transports import way_of
from orchestrator.clients.address import CallFailed
from orchestrator.clients.returning import Cursor

_ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
_ALL = 10**9
"""After which nothing is missed."""


class Returns(NamedTuple):
    """What is come back to, and how often: a session with so many `events`, and beside it a server of the same texts in
    a list."""

    transport: str
    list_port: int
    session_id: str
    secret: str
    events: int
    tries: int
    seed: int


class Latencies(NamedTuple):
    """Seconds until the first missed event, of each return; and round trips on a connection that is there."""

    chorale: list[float]
    plain: list[float]
    round_trips: list[float]


async def returns_from_apart(place: Place, plan: Returns) -> Latencies:
    """Has a process come back, and waits for it. Raises `RuntimeError` where it fails."""
    process = _client(place, plan)
    try:
        told, _ = await asyncio.to_thread(process.communicate)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise RuntimeError(f"the client ended with {process.returncode}")
    return Latencies(*json.loads(told))


def _client(place: Place, plan: Returns) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.resume_returns", json.dumps([place, plan])],
        stdout=subprocess.PIPE,
        text=True,
        env=_ENV,
        close_fds=False,  # or it would be forked, at which gRPC complains
    )


async def _come_back(place: Place, plan: Returns) -> Latencies:
    chance = random.Random(plan.seed)
    follow, port = way_of(plan.transport, place)
    cursor = Cursor(plan.session_id, plan.secret)
    found = Latencies([], [], [])
    await _first_missed(follow, port, cursor)  # what is imported by the first request is there
    async with connect(f"ws://127.0.0.1:{plan.list_port}/?after={_ALL}", proxy=None) as idle:
        for _ in range(plan.tries):
            cursor.last = chance.randrange(plan.events)
            found.chorale.append(await _first_missed(follow, port, cursor))
            found.plain.append(await _first_of_list(plan.list_port, cursor.last))
            began_s = time.perf_counter()
            await (await idle.ping())
            found.round_trips.append(time.perf_counter() - began_s)
    return found


async def _first_missed(transport: Following, port: int, cursor: Cursor) -> float:
    place = Cursor(cursor.session_id, cursor.secret, cursor.last)
    began_s = time.perf_counter()
    async with aclosing(transport(port, place)) as events:
        async for event, _ in events:
            if place.receive(event) and place.last != cursor.last:
                return time.perf_counter() - began_s
    raise CallFailed("the connection ended")


async def _first_of_list(port: int, after: int) -> float:
    began_s = time.perf_counter()
    async with connect(f"ws://127.0.0.1:{port}/?after={after}", proxy=None) as connection:
        await connection.recv()
        took_s = time.perf_counter() - began_s
        connection.transport.abort()
    return took_s


def main(given: str) -> None:
    """Prints how long it took. `given`: the place and the plan, as JSON lists."""
    place, plan = json.loads(given)
    print(json.dumps(uvloop.run(_come_back(Place(*place), Returns(*plan)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
