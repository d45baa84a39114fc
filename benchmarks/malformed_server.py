"""A server for `chorale bench malformed`: the whole application, with scripted engines.

``python -m benchmarks.malformed_server`` with a configuration in its environment. The port is the first line of its
output, once every worker is ready; each line of its input is answered by one of what it holds now.
"""

import asyncio
import gc
import json
import os
import sys
import threading
from pathlib import Path

from orchestrator.app import Application
from orchestrator.settings import load
from orchestrator.transports.server import listen


def held() -> dict[str, int]:
    """Returns what this process holds: tasks, open files and sockets, live objects, and memory."""
    gc.collect()
    return {
        "tasks": len(asyncio.all_tasks()),
        "files": len(os.listdir("/proc/self/fd")),
        "objects": len(gc.get_objects()),
        "resident_bytes": _resident_bytes(),
    }


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


async def answer(line: asyncio.Queue[None]) -> None:
    """Tells what is held as often as it is asked for."""
    while True:
        await line.get()
        print(json.dumps(held()), flush=True)


async def main() -> None:
    """Serves until its input ends."""
    (one,) = listen("127.0.0.1", 0)
    with one:
        port = int(one.getsockname()[1])
    application = Application(load(None, dict(os.environ), {"server.port": port}))
    loop, asked = asyncio.get_running_loop(), asyncio.Queue[None](maxsize=64)

    def read() -> None:
        for _ in sys.stdin:
            loop.call_soon_threadsafe(asked.put_nowait, None)
        loop.call_soon_threadsafe(application.stop)

    threading.Thread(target=read, daemon=True).start()
    answering = asyncio.create_task(answer(asked))
    await application.run(lambda _: print(port, flush=True))
    answering.cancel()


if __name__ == "__main__":
    asyncio.run(main())
