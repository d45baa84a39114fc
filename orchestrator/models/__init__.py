"""Which model serves which role, where it comes from, and how to get it."""

from orchestrator.models.catalogue import CATALOGUE, Model
from orchestrator.models.resolution import Resolved, resolve

__all__ = ["CATALOGUE", "Model", "Resolved", "resolve"]
