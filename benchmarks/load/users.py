"""The Locust file: users that hold a session each over a WebSocket, and take their turns when the plan says.

``python -m benchmarks.load.users PLAN RESULT FIRST COUNT`` runs users FIRST to FIRST + COUNT of a plan without Locust's
page, as the load study does: prints ``connected`` once all are, begins at the CLOCK_MONOTONIC second that it then
reads, and leaves what it saw in RESULT. With Locust's own page, against a server of yours that runs on port 8080:

    CHORALE_LOAD_PORT=8080 locust -f benchmarks/load/users.py -u 100 -r 20

Every finished turn is a Locust request of the type ``turn``, with its latency from when it was *meant* to begin.
"""

import gevent.monkey

gevent.monkey.patch_all()

import base64  # noqa: E402 - gevent comes first
import itertools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, ClassVar  # noqa: E402

import gevent  # noqa: E402
import gevent.event  # noqa: E402
from locust import User, task  # noqa: E402
from locust.env import Environment  # noqa: E402

from benchmarks.load.arrivals import Plan, Seen, Turn, read_plan  # noqa: E402
from benchmarks.load.framing import CLOSE, PING, PONG, TEXT, Message, Reader, frame, upgrade  # noqa: E402

READ_BYTES = 1 << 16
FRAME_S, RATE_HZ = 0.04, 24_000
FRAME_BYTES = int(FRAME_S * RATE_HZ) * 2
_DELTA, _DONE, _ERROR = b'output_text.delta"', b'"response.done"', b'"type":"error"'


class Crowd:
    """What the users of this process share: the plan, when it begins, and what they see."""

    def __init__(self, plan: Plan, first: int, count: int) -> None:
        self.plan = plan
        self.seen = Seen()
        self.started = gevent.event.Event()
        self.start_s = 0.0
        self.tried = 0
        self.finished = 0
        self.times = plan.times()
        self.sound = Path(plan.sound).read_bytes() if plan.sound else b""
        self.numbers = itertools.count(first)

    @property
    def end_s(self) -> float:
        """When nobody waits any more."""
        return self.plan.until_s + self.plan.drain_s

    def start(self, at_s: float) -> None:
        self.start_s = at_s
        self.started.set()

    def now_s(self) -> float:
        return time.monotonic() - self.start_s


class Link:
    """One WebSocket. Raises `OSError` where it cannot be opened, or is not any more."""

    def __init__(self, plan: Plan, user: int) -> None:
        self._reader = Reader()
        self._socket = socket.create_connection((plan.host, plan.port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(upgrade(plan.host, plan.port, "/v1/realtime", plan.key_of(user)))
        came = b""
        while b"\r\n\r\n" not in came:
            came += self._some()
        head, _, rest = came.partition(b"\r\n\r\n")
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise OSError(f"refused: {head.partition(b' ')[2][:60].decode(errors='replace')}")
        self._socket.settimeout(None)
        self._came = self._reader.feed(rest)

    def send(self, event: dict[str, Any]) -> None:
        self._socket.sendall(frame(TEXT, json.dumps(event).encode()))

    def send_text(self, text: bytes) -> None:
        self._socket.sendall(frame(TEXT, text))

    def messages(self) -> Iterator[bytes]:
        """Yields the texts as they come, answering pings, until the link is closed."""
        while True:
            for message in self._came:
                if message.kind == TEXT:
                    yield message.payload
                elif not self._answered(message):
                    return
            self._came = self._reader.feed(self._some())

    def close(self) -> None:
        self._socket.close()

    def _answered(self, message: Message) -> bool:
        if message.kind == PING:
            self._socket.sendall(frame(PONG, message.payload))
        return message.kind != CLOSE

    def _some(self) -> bytes:
        came = self._socket.recv(READ_BYTES)
        if not came:
            raise OSError("the server closed the connection")
        return came


class Talker(User):
    """A user. Writes, or where the plan says so speaks."""

    crowd: ClassVar[Crowd]

    def on_start(self) -> None:
        crowd = self.crowd
        self.number = next(crowd.numbers)
        self.speaks = self.number < crowd.plan.speaking
        self.link: Link | None = None
        self.reading: gevent.Greenlet | None = None
        self.turn: Turn | None = None
        self.ended = gevent.event.Event()
        if self._connect() is not None:
            crowd.seen.connected += 1
        crowd.tried += 1

    @task
    def talk(self) -> None:
        """Takes all its turns, then waits for the end of the run."""
        crowd = self.crowd
        crowd.started.wait()
        try:
            self._speak(crowd.times[self.number]) if self.speaks else self._write(crowd.times[self.number])
        except OSError as fault:
            crowd.seen.faults.append(f"user {self.number}: {fault}")
        crowd.finished += 1
        gevent.sleep(86_400)

    def on_stop(self) -> None:
        if self.link is not None:
            self.link.close()

    def _connect(self) -> Link | None:
        """Opens a session, closing the one before; returns None where that fails."""
        plan = self.crowd.plan
        if self.reading is not None:
            self.reading.kill()
        if self.link is not None:
            self.link.close()
        try:
            self.link = Link(plan, self.number)
            most = {"max_output_tokens": plan.max_tokens} if plan.max_tokens else {}
            session = {"type": "realtime", "output_modalities": ["text"], **most}
            self.link.send({"type": "session.update", "session": session})
        except OSError as fault:
            self.crowd.seen.faults.append(f"user {self.number}: {fault}")
            self.link = None
            return None
        self.reading = gevent.spawn(self._read, self.link)
        return self.link

    def _write(self, times: list[float]) -> None:
        crowd = self.crowd
        most = crowd.plan.turns_per_session
        for number, at_s in enumerate(times):
            turn = Turn(self.number, at_s)
            crowd.seen.turns.append(turn)
            waited = crowd.now_s() < at_s
            gevent.sleep(max(0.0, at_s - crowd.now_s()))
            if (most and number and number % most == 0) or self.link is None:
                self._connect()
            if self.link is None:
                turn.outcome = "not_connected"
                continue
            self._begin(turn, waited)
            text = f"turn {number} of user {self.number}: what do you think of it?"
            content = [{"type": "input_text", "text": text}]
            item = {"type": "message", "role": "user", "content": content}
            self.link.send({"type": "conversation.item.create", "item": item})
            self.link.send({"type": "response.create"})
            if not self._wait_for_end():
                return

    def _begin(self, turn: Turn, waited: bool) -> None:
        """`waited`: nothing held the turn up, so what it is late is this process's fault."""
        crowd = self.crowd
        turn.sent_s = crowd.now_s()
        if waited:
            crowd.seen.late_ms = max(crowd.seen.late_ms, (turn.sent_s - turn.intended_s) * 1_000)
        self.ended.clear()
        self.turn = turn

    def _wait_for_end(self) -> bool:
        return bool(self.ended.wait(max(0.0, self.crowd.end_s - self.crowd.now_s())))

    def _speak(self, times: list[float]) -> None:
        """Sends silence in real time, and the utterance in its place when a turn is due: its end is the intended
        time. What comes due meanwhile is said behind it."""
        crowd, link = self.crowd, self.link
        if link is None:
            crowd.seen.turns += [Turn(self.number, at_s, outcome="not_connected") for at_s in times]
            return
        silence, spoken = bytes(FRAME_BYTES), _frames(crowd.sound)
        waiting = list(times)
        at_s = crowd.now_s()
        saying: list[bytes] = []
        ends: Turn | None = None
        lead_s = len(spoken) * FRAME_S
        while at_s < crowd.plan.until_s or (self.turn is not None and at_s < crowd.end_s):
            if not saying and ends is None and waiting and waiting[0] - lead_s <= at_s and self.turn is None:
                ends = Turn(self.number, max(waiting.pop(0), at_s + lead_s))
                saying = list(spoken)
            link.send_text(_append(saying.pop(0) if saying else silence))
            if ends is not None and not saying:
                crowd.seen.turns.append(ends)
                self._begin(ends, waited=False)
                ends = None
            at_s += FRAME_S
            gevent.sleep(max(0.0, at_s - crowd.now_s()))

    def _read(self, link: Link) -> None:
        """Books what comes on the turn that is open."""
        try:
            for text in link.messages():
                if self.turn is not None:
                    self._book(self.turn, text)
        except OSError as fault:
            self.crowd.seen.faults.append(f"user {self.number}: {fault}")
        if self.turn is not None:
            self._end(self.turn, "closed")

    def _book(self, turn: Turn, text: bytes) -> None:
        if _DELTA in text:
            turn.tokens += 1
            if turn.first_s is None:
                turn.first_s = self.crowd.now_s()
        elif _DONE in text:
            response = json.loads(text)["response"]
            details = response.get("status_details") or {}
            fault = (details.get("error") or {}).get("code") or details.get("reason")
            self._end(
                turn, "completed" if response["status"] == "completed" else str(fault or response["status"])
            )
        elif _ERROR in text:
            self._end(turn, str(json.loads(text)["error"].get("code")))

    def _end(self, turn: Turn, outcome: str) -> None:
        turn.done_s, turn.outcome = self.crowd.now_s(), outcome
        self.turn = None
        self.ended.set()
        self.environment.events.request.fire(
            request_type="turn", name="spoken" if self.speaks else "written", response_length=turn.tokens,
            response_time=(turn.done_s - turn.intended_s) * 1_000,
            exception=None if outcome == "completed" else RuntimeError(outcome), context={},
        )  # fmt: skip


def _frames(sound: bytes) -> list[bytes]:
    return [sound[at : at + FRAME_BYTES] for at in range(0, len(sound), FRAME_BYTES)]


def _append(pcm: bytes) -> bytes:
    return b'{"type":"input_audio_buffer.append","audio":"' + base64.b64encode(pcm) + b'"}'


def main(plan_file: str, result_file: str, first: int, count: int) -> None:
    """Runs a share of a plan's users to its end."""
    plan = read_plan(Path(plan_file))
    crowd = Talker.crowd = Crowd(plan, first, count)
    environment = Environment(user_classes=[Talker])
    runner = environment.create_local_runner()
    runner.start(count, spawn_rate=plan.connect_per_s)
    while crowd.tried < count:
        gevent.sleep(0.05)
    print("connected", flush=True)
    crowd.start(float(gevent.get_hub().threadpool.apply(sys.stdin.readline)))
    cpu_s = time.process_time()
    while crowd.finished < count and crowd.now_s() < crowd.end_s:
        gevent.sleep(0.1)
    crowd.seen.ended_s = crowd.now_s()
    crowd.seen.cpu_s = time.process_time() - cpu_s
    crowd.seen.write(Path(result_file))
    os._exit(0)  # a thousand greenlets need no goodbye; the server sees a thousand connections end at once


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
elif port := os.environ.get("CHORALE_LOAD_PORT"):
    Talker.crowd = Crowd(Plan(int(port), users=10_000, rate=500.0, duration_s=3_600), 0, 10_000)
    Talker.crowd.start(time.monotonic())
