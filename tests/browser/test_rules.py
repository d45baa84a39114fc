"""The page's rules, run by node's own test runner: they need no browser."""

import subprocess
from pathlib import Path

import pytest

RULES = Path(__file__).parent / "rules"


@pytest.mark.needs("node")
@pytest.mark.parametrize("file", sorted(RULES.glob("*.test.mjs")), ids=lambda file: file.name)
def test_rules_of_the_page_hold(file: Path) -> None:
    """Conversation, connection states, faults, latency, levels, the event log and what a reload leaves do what
    their files promise."""
    run = subprocess.run(
        ["node", "--test", "--test-reporter=spec", str(file)], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "ℹ pass 0" not in run.stdout, "node found no test"
