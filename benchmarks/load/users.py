"""The Locust file: users that hold a session each over a WebSocket, and take their turns when the plan says.

``python -m benchmarks.load.users PLAN RESULT`` runs the users of a plan without Locust's page, as the load study does:
prints ``connected`` once all are, begins at the CLOCK_MONOTONIC second that it then reads, and leaves what it saw in
RESULT. With Locust's own page, against a server of yours that runs on port 8080:

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
from collections import deque  # noqa: E402
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
CONNECTED_WITHIN_S = 120.0
FRAME_S, RATE_HZ = 0.04, 24_000
FRAME_BYTES = int(FRAME_S * RATE_HZ) * 2
_DELTA, _DONE, _ERROR = b'output_text.delta"', b'"response.done"', b'"type":"error"'


class Crowd:
    """What the users of this process share: the plan, when it begins, and what they see."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen = Seen()
        self.started = gevent.event.Event()
        self.start_s = 0.0
        self.tried = 0
        self.given_out = False
        self.lines = [Line() for _ in range(plan.groups)]
        self.sound = Path(plan.sound).read_bytes() if plan.sound else b""
        self.numbers = itertools.count()

    @property
    def end_s(self) -> float:
        """When nobody waits any more."""
        return self.plan.until_s + self.plan.drain_s

    def start(self, at_s: float) -> None:
        self.start_s = at_s
        self.started.set()

    def now_s(self) -> float:
        return time.monotonic() - self.start_s

    def give_out(self) -> None:
        """Gives every turn to a user when it is due; in a greenlet of its own."""
        self.started.wait()
        for number, (at_s, group) in enumerate(self.plan.written()):
            turn = Turn(at_s, group)
            self.seen.turns.append(turn)
            gevent.sleep(max(0.0, at_s - self.now_s()))
            self.seen.late_ms = max(self.seen.late_ms, (self.now_s() - at_s) * 1_000)
            self.lines[group].add(turn, number)
        self.given_out = True

    @property
    def is_done(self) -> bool:
        """Whether everything has been given out and has ended."""
        return self.given_out and all(turn.outcome != "unfinished" for turn in self.seen.turns)


class Line:
    """Turns of one group that wait for a user, or users that wait for a turn."""

    def __init__(self) -> None:
        self._turns: deque[tuple[Turn, int]] = deque(maxlen=1_000_000)
        self._idle: list[Talker] = []

    def add(self, turn: Turn, number: int) -> None:
        """Gives a turn to the user who has been idle for longest, or makes it wait."""
        if self._idle:
            self._idle.pop(0).given.set((turn, number))
        else:
            self._turns.append((turn, number))

    def take(self, user: "Talker") -> tuple[Turn, int]:
        """Waits for a turn."""
        if self._turns:
            return self._turns.popleft()
        user.given = gevent.event.AsyncResult()
        self._idle.append(user)
        found: tuple[Turn, int] = user.given.get()
        return found


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
        self.company = crowd.plan.group_of(self.number)
        self.speaks = self.number < crowd.plan.speaking
        self.given = gevent.event.AsyncResult()
        self.taken = 0
        self.link: Link | None = None
        self.reading: gevent.Greenlet | None = None
        self.turn: Turn | None = None
        self.ended = gevent.event.Event()
        if self._connect() is not None:
            crowd.seen.connected += 1
        crowd.tried += 1

    @task
    def talk(self) -> None:
        """Takes turns as they come, to the end of the run."""
        crowd = self.crowd
        crowd.started.wait()
        try:
            if self.speaks:
                self._speak(crowd.plan.spoken(self.number))
            while not self.speaks:
                self._write(*crowd.lines[self.company].take(self))
        except OSError as fault:
            crowd.seen.faults.append(f"user {self.number}: {fault}")
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

    def _write(self, turn: Turn, number: int) -> None:
        most = self.crowd.plan.turns_per_session
        if self.link is None or (most and self.taken and self.taken % most == 0):
            self._connect()
        turn.user = self.number
        self.taken += 1
        if self.link is None:
            turn.outcome = "not_connected"
            return
        self._begin(turn)
        text = f"This is turn {number}: what do you think of it?"
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        self.link.send({"type": "conversation.item.create", "item": item})
        self.link.send({"type": "response.create"})
        self.ended.wait()

    def _begin(self, turn: Turn) -> None:
        turn.sent_s = self.crowd.now_s()
        self.ended.clear()
        self.turn = turn

    def _speak(self, times: list[float]) -> None:
        """Sends silence in real time, and the utterance in its place when a turn is due: its end is the intended
        time. What comes due meanwhile is said behind it."""
        crowd, link = self.crowd, self.link
        if link is None:
            crowd.seen.turns += [
                Turn(at_s, self.company, self.number, True, outcome="not_connected") for at_s in times
            ]
            return
        silence, spoken = bytes(FRAME_BYTES), _frames(crowd.sound)
        lead_s = len(spoken) * FRAME_S
        waiting = [at_s for at_s in times if at_s > lead_s]
        at_s = crowd.now_s()
        saying: list[bytes] = []
        ends: Turn | None = None
        while at_s < crowd.plan.until_s or (self.turn is not None and at_s < crowd.end_s):
            if not saying and ends is None and waiting and waiting[0] - lead_s <= at_s and self.turn is None:
                ends = Turn(waiting.pop(0), self.company, self.number, True)
                saying = list(spoken)
            link.send_text(_append(saying.pop(0) if saying else silence))
            if ends is not None and not saying:
                crowd.seen.turns.append(ends)
                self._begin(ends)
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


def main(plan_file: str, result_file: str) -> None:
    """Runs a plan to its end."""
    plan = read_plan(Path(plan_file))
    crowd = Talker.crowd = Crowd(plan)
    environment = Environment(user_classes=[Talker])
    runner = environment.create_local_runner()
    runner.start(plan.users, spawn_rate=plan.connect_per_s)
    with gevent.Timeout(CONNECTED_WITHIN_S):
        while crowd.tried < plan.users:
            gevent.sleep(0.05)
    print("connected", flush=True)
    crowd.start(float(gevent.get_hub().threadpool.apply(sys.stdin.readline)))
    cpu_s = time.process_time()
    gevent.spawn(crowd.give_out)
    gevent.sleep(max(0.0, plan.until_s - crowd.now_s()))
    while not crowd.is_done and crowd.now_s() < crowd.end_s:
        gevent.sleep(0.2)
    crowd.seen.ended_s = crowd.now_s()
    crowd.seen.cpu_s = time.process_time() - cpu_s
    crowd.seen.write(Path(result_file))
    os._exit(0)  # a thousand greenlets need no goodbye; the server sees a thousand connections end at once


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
elif port := os.environ.get("CHORALE_LOAD_PORT"):
    Talker.crowd = Crowd(Plan(int(port), users=10_000, rate=500.0, duration_s=3_600))
    Talker.crowd.start(time.monotonic())
    gevent.spawn(Talker.crowd.give_out)
