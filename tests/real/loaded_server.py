"""``python -m tests.real.loaded_server CONFIG``: the server as `chorale serve` runs it, but for one tenant.

Replies of `HURRIED` have to be there within `WITHIN_S`: what the server grants everybody is longer than a test.
"""

import sys
from dataclasses import replace
from pathlib import Path

import uvloop

from orchestrator import settings
from orchestrator.app import Application
from orchestrator.clock import seconds
from orchestrator.observability import logs
from orchestrator.sessions.links import SessionRequest
from orchestrator.sessions.registry import Registry
from orchestrator.sessions.runner import SessionRunner

HURRIED = "hurried"
WITHIN_S = 1.5


def hurry(registry: Registry) -> None:
    """Sessions of `HURRIED` get rules of their own."""
    patient = registry._settings
    hurried = replace(patient, rules=replace(patient.rules, reply_within_us=seconds(WITHIN_S)))
    make = registry._make

    def chosen(request: SessionRequest) -> SessionRunner:
        registry._settings = hurried if request.tenant == HURRIED else patient
        return make(request)

    registry._make = chosen  # type: ignore[method-assign]


async def serve(config: Path) -> None:
    found = settings.load(config)
    opened = logs.configure(found.logging.level, found.logging.format)
    try:
        application = Application(found)
        hurry(application._registry)
        await application.run()
    finally:
        opened.close()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
