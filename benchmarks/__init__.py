"""Measurements, one file each: `chorale bench NAME` runs one (see `orchestrator/cli/bench.py`)."""
