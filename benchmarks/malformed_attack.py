"""A client for `chorale bench malformed` that sends nothing that is right, in a process of its own.

``python -m benchmarks.malformed_attack PORT COUNT SEED``. It sends as fast as it is answered; where the server closes
its link for that, it comes back to its session and goes on with what was not answered. In the end it asks for a reply
like anybody else. One line of output tells what came of it.
"""

import asyncio
import itertools
import json
import sys
import time
from collections import deque
from collections.abc import Iterator

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from benchmarks.malformed_messages import malformed

AHEAD = 64
"""Messages that are sent before the first of them is answered: less than the errors for which a link is closed that
does not read them."""

_ANSWER = '"type":"error"'
_AGAIN_S = 0.1
_QUICK = {
    "type": "response.create",
    "response": {
        "conversation": "none",
        "output_modalities": ["text"],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "quick"}]}],
    },
}


class Attacker:
    """One client. `answered` counts refusals, `closed` how often the server had enough."""

    def __init__(self, port: int, messages: Iterator[str | bytes]) -> None:
        self._address = f"ws://127.0.0.1:{port}/v1/realtime"
        self._messages = messages
        self._unanswered: deque[str | bytes] = deque()
        self._session = ""
        self.answered = 0
        self.closed = 0

    async def run(self) -> None:
        """Sends everything, until all of it has been answered."""
        while True:
            try:
                async with self._connected() as link:
                    if await self._attack(link):
                        return
            except (ConnectionClosed, InvalidStatus):  # an answer of 503 too: come back later
                self.closed += 1
                await asyncio.sleep(_AGAIN_S)

    async def is_served(self) -> bool:
        """Whether the session that was attacked still answers what is right."""
        async with self._connected() as link:
            await link.send(json.dumps(_QUICK))
            while (event := json.loads(await link.recv()))["type"] != "response.done":
                pass
            return bool(event["response"]["status"] == "completed")

    def _connected(self) -> connect:
        return connect(self._address + self._session, proxy=None, compression=None)

    async def _attack(self, link: ClientConnection) -> bool:
        """Returns true once there is nothing more to send."""
        assert link.response is not None
        if not self._session:
            given = link.response.headers
            self._session = (
                f"?session_id={given['chorale-session-id']}&secret={given['chorale-session-secret']}"
            )
        again, self._unanswered = self._unanswered, deque()
        for message in itertools.chain(again, self._messages):
            self._unanswered.append(message)
            await link.send(message)
            while len(self._unanswered) >= AHEAD:
                await self._hear(link)
        while self._unanswered:
            await self._hear(link)
        return True

    async def _hear(self, link: ClientConnection) -> None:
        if _ANSWER in await link.recv(decode=True):
            self._unanswered.popleft()
            self.answered += 1


async def main(port: int, count: int, seed: int) -> None:
    """Attacks, and tells."""
    messages = malformed(seed, count)
    attacker, began_s = Attacker(port, messages), time.monotonic()
    await attacker.run()
    took_s = time.monotonic() - began_s
    told = {"answered": attacker.answered, "closed": attacker.closed, "seconds": took_s}
    print(json.dumps({**told, "served": await attacker.is_served()}))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
