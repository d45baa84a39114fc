"""Where the page's files lie and under which rules it is served."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "orchestrator" / "transports" / "web"
IMAGES = ROOT / "docs" / "images"
