"""A real browser calls the service from a page of another origin: gRPC-Web by hand, and Connect as plain JSON."""

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from orchestrator.wire.client import CancelResponse, CommitAudio, TruncateItem
from tests.browser.chromium import chromium
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import House, Running, build, serving

pytestmark = pytest.mark.browser

CONNECT = """
const [address, method, body, done] = arguments;
fetch(`${address}/chorale.v1.Sessions/${method}`, {
  method: "POST",
  headers: { "Content-Type": "application/json", "Connect-Protocol-Version": "1" },
  body: JSON.stringify(body),
}).then(async (answer) => done([answer.status, await answer.json()]), (error) => done([0, String(error)]));
"""

WATCH = """
const [address, id, secret, after, done] = arguments;
const text = new TextEncoder(), words = new TextDecoder();
const field = (number, value) => {
  const bytes = text.encode(value);
  return [number << 3 | 2, bytes.length, ...bytes];
};
const message = [...field(1, id), ...field(2, secret), 3 << 3, after, 4 << 3, 1];
const body = new Uint8Array([0, 0, 0, 0, message.length, ...message]);
window.heard = [];
window.stop = new AbortController();

function varint(bytes, at) {
  let value = 0, shift = 0;
  for (;;) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
    shift += 7;
  }
}

function fields(bytes) {
  const found = {};
  for (let at = 0; at < bytes.length;) {
    let tag, value;
    [tag, at] = varint(bytes, at);
    [value, at] = varint(bytes, at);
    if (tag & 2) {
      found[tag >> 3] = bytes.subarray(at, at + value);
      at += value;
    } else {
      found[tag >> 3] = value;
    }
  }
  return found;
}

(async () => {
  const answer = await fetch(`${address}/chorale.v1.Sessions/Watch`, {
    method: "POST",
    headers: { "Content-Type": "application/grpc-web+proto", "X-Grpc-Web": "1", "X-User-Agent": "by hand" },
    body,
    signal: window.stop.signal,
  });
  done(answer.status);
  let rest = new Uint8Array();
  const reader = answer.body.getReader();
  for (;;) {
    const { done: over, value } = await reader.read();
    if (over) break;
    rest = new Uint8Array([...rest, ...value]);
    while (rest.length >= 5) {
      const size = new DataView(rest.buffer, rest.byteOffset + 1, 4).getUint32(0);
      if (rest.length < 5 + size) break;
      const frame = rest.subarray(5, 5 + size);
      if (rest[0] & 128) {
        window.heard.push({ trailers: words.decode(frame) });
      } else {
        const { 1: number = 0, 3: event, 4: speech } = fields(frame);
        const row = { number, type: event && JSON.parse(words.decode(fields(event)[1])).type };
        if (speech) {
          const { 1: data, 2: response } = fields(speech);
          row.response = words.decode(response);
          row.sound = data.reduce((sum, byte, at) => (sum + byte * (at % 251 + 1)) % 1_000_003, data.length);
        }
        window.heard.push(row);
      }
      rest = rest.slice(5 + size);
    }
  }
})().catch((error) => { window.heard.push({ error: String(error) }); done(0); });
"""


@dataclass
class Served:
    """A server on a loop in a thread of its own."""

    house: House
    port: int
    loop: asyncio.AbstractEventLoop

    @property
    def session(self) -> FakeSession:
        return self.house.directory.sessions[-1]

    def do(self, what: Callable[..., object], *given: object) -> None:
        """Calls something where the server runs, and returns once that is done."""
        done = threading.Event()

        def call() -> None:
            what(*given)
            done.set()

        self.loop.call_soon_threadsafe(call)
        assert done.wait(60)


@contextmanager
def served() -> Iterator[Served]:
    """Serves while the block runs."""
    begun: list[Served] = []
    is_up, over = threading.Event(), asyncio.Event()

    async def main() -> None:
        house = build()
        async with serving(house) as running:
            begun.append(_of(running))
            is_up.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert is_up.wait(60)
    try:
        yield begun[0]
    finally:
        begun[0].loop.call_soon_threadsafe(over.set)
        thread.join()


def _of(running: Running) -> Served:
    return Served(running.house, running.port, asyncio.get_running_loop())


def test_a_browser_talks_by_grpc_web_and_connect_from_a_page_of_another_origin() -> None:
    """It creates, sends, and reads along as it is written; comes back to where it was; and is told of the end."""
    with served() as server, chromium() as page:
        page.open(f"http://localhost:{server.port}/healthz")
        address = f"http://127.0.0.1:{server.port}"

        def connect(method: str, **body: object) -> tuple[int, dict[str, object]]:
            status, answer = page.driver.execute_async_script(CONNECT, address, method, body)
            return status, answer

        status, opened = connect("Create", model="m")
        assert status == 200, opened
        session = server.session
        named = {"sessionId": opened["sessionId"], "secret": opened["secret"]}
        status, reply = connect("Send", **named, events=['{"type":"input_audio_buffer.commit"}', "{"])
        assert (status, reply["accepted"]) == (200, 1)
        assert [type(event) for event in session.submitted] == [CommitAudio]
        server.do(session.emit, "missed.1")
        server.do(session.emit, "missed.2")

        watched = page.driver.execute_async_script(WATCH, address, named["sessionId"], named["secret"], 1)
        assert watched == 200

        def heard(count: int) -> list[dict[str, object]]:
            page.wait_for(lambda: page.script("return window.heard.length") >= count, f"{count} messages")
            rows: list[dict[str, object]] = page.script("return window.heard")
            return rows

        first, created, missed = heard(3)
        assert (first["number"], created["type"]) == (0, "session.created")
        assert missed == {"number": 2, "type": "missed.2"}
        server.do(session.emit, "live")  # and not before the stream has begun: it is read as it is written
        assert heard(4)[3] == {"number": 3, "type": "live"}
        assert connect("End", **named)[0] == 200
        assert "grpc-status: 0" in str(heard(5)[4]["trailers"])
        status, error = connect("Get", **named)
        assert (status, error["code"]) == (404, "not_found")
        assert [row for row in page.complaints() if "404" not in row] == []


def test_a_browser_hears_a_reply_and_interrupts_it() -> None:
    """Every byte of the sound in its place between the events, and what it sends meanwhile is handed in."""
    with served() as server, chromium() as page:
        page.open(f"http://localhost:{server.port}/healthz")
        address = f"http://127.0.0.1:{server.port}"
        _, opened = page.driver.execute_async_script(CONNECT, address, "Create", {})
        named = {"sessionId": opened["sessionId"], "secret": opened["secret"]}
        session = server.session
        page.driver.execute_async_script(WATCH, address, named["sessionId"], named["secret"], 0)
        sound = bytes(range(256)) * 150
        for entry in ("response.created", "response.output_audio.done"):
            server.do(session.emit, entry)
            server.do(session.speak, sound)
        page.wait_for(lambda: page.script("return window.heard.length") >= 6, "the reply")
        calls = [
            {"type": "response.cancel"},
            {
                "type": "conversation.item.truncate",
                "item_id": "item_1",
                "content_index": 0,
                "audio_end_ms": 20,
            },
        ]
        body = {
            **named,
            "events": [json.dumps(call) for call in calls],
            "sound": base64.b64encode(sound).decode(),
        }
        status, reply = page.driver.execute_async_script(CONNECT, address, "Send", body)
        assert (status, reply["accepted"]) == (200, 2), reply
        assert [type(event) for event in session.submitted] == [CancelResponse, TruncateItem]
        assert session.intake.position == len(sound) // 2 * 2 // 3  # at 16 kHz
        server.do(session.emit, "response.done")
        page.wait_for(lambda: page.script("return window.heard.length") >= 7, "its end")
        rows = page.script("return window.heard")[2:]
        told = sum_of(sound)
        assert [(row["number"], row.get("type"), row.get("sound")) for row in rows] == [
            (1, "response.created", None),
            (2, None, told),
            (3, "response.output_audio.done", None),
            (4, None, told),
            (5, "response.done", None),
        ]
        assert [row for row in page.complaints() if "favicon" not in row] == []


def sum_of(data: bytes) -> int:
    """Returns what the page makes of these bytes."""
    total = len(data)
    for at, byte in enumerate(data):
        total = (total + byte * (at % 251 + 1)) % 1_000_003
    return total


def test_a_browser_that_leaves_the_page_lets_go_of_its_session() -> None:
    """Aborting the fetch ends the link; the session waits for who comes back."""
    with served() as server, chromium() as page:
        page.open(f"http://localhost:{server.port}/healthz")
        address = f"http://127.0.0.1:{server.port}"
        _, opened = page.driver.execute_async_script(CONNECT, address, "Create", {})
        page.driver.execute_async_script(WATCH, address, opened["sessionId"], opened["secret"], 0)
        page.wait_for(lambda: len(server.session.links) == 1, "the link")
        page.script("window.stop.abort()")
        page.wait_for(lambda: not server.session.links, "the server to notice")
        assert server.session.ended is None
