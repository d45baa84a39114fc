"""A server with one worker that holds its interpreter's lock; prints the worker's pid and waits to be killed.

Run as ``python -m tests.workers.orphanage FOLDER VERB``.
"""

import asyncio
import sys
from pathlib import Path

from orchestrator.workers.spec import WorkerSpec
from orchestrator.workers.supervision import Supervision
from tests.workers.house import engine, house

PATIENT = Supervision(silence_s=60)


async def main(folder: str, verb: str) -> None:
    async with house(
        WorkerSpec("llm", engine("LanguageModel"), {"folder": folder}), supervision=PATIENT
    ) as at:
        at.submit("a", verb)
        await at.reports(1)
        if verb == "hold":
            await at.until((Path(folder) / "holding").exists)
        sys.stdout.write(f"{at.pool.states()[0].pid}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
