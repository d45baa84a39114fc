"""Ask the server in writing, with the stock OpenAI client:  python samples/ask.py "What is a chorale?"

Needs `pip install "openai[realtime]"`; the server's own environment has it: .venv/bin/python. The server's address is
CHORALE_URL, by default http://127.0.0.1:8080.
"""

import asyncio
import os
import sys

from openai import AsyncOpenAI

URL = os.environ.get("CHORALE_URL", "http://127.0.0.1:8080")


async def ask(question: str) -> None:
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=os.environ.get("CHORALE_API_KEY", "none"))
    async with client.realtime.connect(model="chorale") as connection:
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": question}]}
        )
        await connection.response.create()
        async for event in connection:
            if event.type == "response.output_text.delta":
                print(event.delta, end="", flush=True)
            elif event.type == "response.done":
                print()
                if event.response.status != "completed":
                    sys.exit(f"the reply is {event.response.status}")
                return
            elif event.type == "error":
                sys.exit(f"refused: {event.error.message}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    try:
        asyncio.run(ask(" ".join(sys.argv[1:])))
    except ConnectionError:
        sys.exit(f"no server answers at {URL}; start one with: make run")
