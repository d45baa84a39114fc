"""Where the page's files lie and under which rules it is served."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "orchestrator" / "transports" / "web"
IMAGES = ROOT / "docs" / "images"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The policy that the page is written for; the server sends the same."""
