"""The configuration: `load` reads it, `Settings` holds it."""

from orchestrator.settings.loading import load
from orchestrator.settings.schema import Settings, Worker, thread_budget, usable_cores

__all__ = ["Settings", "Worker", "load", "thread_budget", "usable_cores"]
