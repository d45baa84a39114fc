"""The scenarios of clients that learn the gRPC service from the server itself: they say and hear JSON, whatever tool
turns it into messages by the descriptors that reflection gives.

It needs nothing but Python itself.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from tests.third_party.stage import (
    HEARING,
    LISTENS_S,
    STORY,
    TEXT,
    TOOL,
    WEATHER,
    Scenario,
    Stage,
    must,
    peak,
    until,
)

SERVICE = "chorale.v1.Sessions"
METHODS = {"Converse", "Watch", "Create", "Get", "End", "Send"}

Shown = dict[str, Any]


class Refused(Exception):
    """A call ended with a status that is not OK; its text begins with the status' name, in small letters alone."""


class Line(Protocol):
    """A call of Converse."""

    async def send(self, message: Shown) -> None: ...

    async def receive(self) -> Shown:
        """Raises `EOFError` at the end of the stream and `Refused`."""
        ...


class Door(Protocol):
    """A tool and the address that it calls."""

    async def services(self) -> Mapping[str, set[str]]:
        """Returns the methods of each service that the server says it has."""
        ...

    async def call(self, method: str, request: Shown) -> Shown:
        """Calls a method that answers once. Raises `Refused`."""
        ...

    def converse(self) -> AbstractAsyncContextManager[Line]: ...


class Talk:
    """A link with everything it was told."""

    def __init__(self, line: Line) -> None:
        self.opened: Shown = {}
        self.events: list[Shown] = []
        self.speech: list[tuple[str, bytes]] = []
        self.number = 0
        self.failures: list[str] = []
        self._line = line

    async def begin(self, first: Shown) -> None:
        await self._line.send(first)
        self.opened = (await self._line.receive())["opened"]
        self.number = int(self.opened.get("last", 0))

    async def listen(self) -> None:
        try:
            while True:
                self._take(await self._line.receive())
        except EOFError:
            pass
        except Refused as why:
            self.failures.append(str(why))
        except KeyError as why:
            self.failures.append(f"a message without {why}")

    def _take(self, message: Shown) -> None:
        number = int(message.get("number", 0))
        if number:
            if number != self.number + 1:
                self.failures.append(f"{self.number} was followed by {number}")
            self.number = number
        if "event" in message:
            self.events.append(json.loads(message["event"]["json"]))
        if "speech" in message:
            speech = message["speech"]
            self.speech.append((speech["responseId"], base64.b64decode(speech["data"])))

    async def send(self, type: str, **fields: object) -> None:
        await self._line.send({"event": {"json": json.dumps({"type": type, **fields})}})

    async def say(self, sound: bytes) -> None:
        await self._line.send({"sound": {"data": base64.b64encode(sound).decode()}})

    async def typed(self, text: str) -> None:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self.send("conversation.item.create", item=item)

    def all(self, type: str) -> list[Shown]:
        return [event for event in self.events if event["type"] == type]

    @property
    def written(self) -> str:
        return "".join(event["delta"] for event in self.all("response.output_text.delta"))

    def sound(self, response_id: str) -> bytes:
        return b"".join(data for whose, data in self.speech if whose == response_id)

    async def until(self, condition: Callable[[], object], what: str) -> None:
        await until(lambda: self.failures or condition(), what)
        must(not self.failures, "; ".join(self.failures))

    async def done(self, count: int) -> Shown:
        """Waits for so many responses; returns the last of them."""
        await self.until(lambda: len(self.all("response.done")) >= count, "response.done")
        response: Shown = self.all("response.done")[count - 1]["response"]
        return response


@asynccontextmanager
async def linked(door: Door, first: Shown) -> AsyncIterator[Talk]:
    """A link whose first message is this one."""
    async with asyncio.timeout(120), door.converse() as line:
        talk = Talk(line)
        await talk.begin(first)
        listening = asyncio.create_task(talk.listen())
        try:
            yield talk
            must(not talk.failures, "; ".join(talk.failures))
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


def talking(door: Door, **session: object) -> AbstractAsyncContextManager[Talk]:
    """A link to a new session."""
    asked = json.dumps({"type": "realtime", **session})
    return linked(door, {"open": {"model": "chorale", "session": asked}})


async def text(door: Door, _: Stage) -> str:
    async with talking(door, output_modalities=["text"]) as talk:
        await talk.typed(TEXT)
        await talk.send("response.create")
        response = await talk.done(1)
        must(talk.written and response["output"][0]["content"][0]["text"] == talk.written, talk.written)
        return talk.written


async def audio(door: Door, stage: Stage) -> str:
    async with talking(door, audio={"input": HEARING}) as talk:
        microphone = asyncio.create_task(stage.speak(talk.say))
        response = await talk.done(1)
        microphone.cancel()
        (heard,) = talk.all("conversation.item.input_audio_transcription.completed")
        must("capital of France" in heard["transcript"], f"{heard}")
        must(peak(talk.sound(response["id"])) > 1_000, "silence")
        return f"{heard['transcript']} / {response['output'][0]['content'][0]['transcript']}"


async def tool(door: Door, _: Stage) -> str:
    async with talking(door, output_modalities=["text"], tools=[WEATHER], tool_choice="auto") as talk:
        await talk.typed(TOOL)
        await talk.send("response.create")
        call = (await talk.done(1))["output"][-1]
        must(
            call["type"] == "function_call" and json.loads(call["arguments"]) == {"city": "Paris"}, f"{call}"
        )
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny, 21 degrees"}
        await talk.send("conversation.item.create", item=output)
        await talk.send("response.create")
        answer: str = (await talk.done(2))["output"][0]["content"][0]["text"]
        must("sunny" in answer, answer)
        return f"{call['arguments']} / {answer}"


async def interrupt(door: Door, stage: Stage) -> str:
    async with talking(door, audio={"input": HEARING}) as talk:
        await talk.typed(STORY)
        await talk.send("response.create")
        await talk.until(lambda: talk.speech, "sound")
        await asyncio.sleep(LISTENS_S)
        microphone = asyncio.create_task(stage.speak(talk.say))
        old = await talk.done(1)
        must(old["status_details"]["reason"] == "turn_detected", f"{old}")
        size = len(talk.sound(old["id"]))
        item = old["output"][0]["id"]
        cut_ms = int(LISTENS_S * 1_000)
        await talk.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=cut_ms)
        answer: str = (await talk.done(2))["output"][0]["content"][0]["transcript"]
        microphone.cancel()
        must(len(talk.sound(old["id"])) == size, "the old reply went on")
        must(talk.all("conversation.item.truncated"), "nothing was cut")
        must("capital of France" in answer, answer)
        return answer


async def again(door: Door, _: Stage) -> str:
    """Comes back as one who has seen the first words only: nothing is missing, nothing comes twice."""
    async with talking(door, output_modalities=["text"]) as first:
        await first.typed(TEXT)
        await first.send("response.create")
        await first.until(lambda: first.written, "words")
        opened, number = first.opened, int(first.all("response.created")[0]["event_id"].rpartition("_")[2])
    join = {"sessionId": opened["sessionId"], "secret": opened["secret"], "after": number}
    async with linked(door, {"join": join}) as talk:
        must(talk.number == number, f"{talk.opened} does not go on after {number}")
        response = await talk.done(1)
        must(response["output"][0]["content"][0]["text"] == talk.written, talk.written)
        must(talk.written.startswith(first.written), f"{first.written!r} and {talk.written!r}")
        return talk.written


async def odd(door: Door, _: Stage) -> str:
    """What there is, what one method says, and what is wrong: by statuses, and by errors of events."""
    found = await door.services()
    must(found.get(SERVICE) == METHODS, f"{found}")
    created = await door.call("Create", {"model": "chorale"})
    named = {"sessionId": created["sessionId"], "secret": created["secret"]}
    shown = json.loads((await door.call("Get", named))["session"])
    must(shown["id"] == named["sessionId"], f"{shown}")
    reply = await door.call("Send", {**named, "events": ['{"type":"nope","event_id":"e1"}']})
    must(json.loads(reply["error"])["error"]["event_id"] == "e1", f"{reply}")
    try:
        await door.call("Get", {**named, "secret": "another"})
    except Refused as why:
        must(str(why).startswith("notfound"), f"{why}")
    else:
        must(False, "a session was shown to somebody else")
    await door.call("End", named)
    return ", ".join(sorted(found))


def over(make: Callable[[str], Door]) -> dict[str, Scenario]:
    """Returns the scenarios of one tool. `make` gets the server's ``host:port``."""

    def bound(scenario: Callable[[Door, Stage], Awaitable[str]]) -> Scenario:
        return lambda stage: scenario(make(stage.url.partition("//")[2]), stage)

    scenarios = {
        "text": text,
        "audio": audio,
        "tool": tool,
        "interrupt": interrupt,
        "again": again,
        "odd": odd,
    }
    return {name: bound(scenario) for name, scenario in scenarios.items()}
