"""Adapters on ONNX Runtime tell nobody about this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.real
@pytest.mark.parametrize(
    ("role", "engine"), [("vad", "silero"), ("embed", "minilm_onnx"), ("speech", "piper")]
)
def test_adapter_of_onnx_runtime_keeps_no_telemetry(tmp_path: Path, role: str, engine: str) -> None:
    """Loading it leaves nothing in the user's folders: neither an identifier of the machine nor events to be sent."""
    program = f"from modalities.adapters.registry import build; build({role!r}, {engine!r}, {{}})"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_"))}
    subprocess.run([sys.executable, "-c", program], env=kept | {"HOME": str(tmp_path)}, check=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
