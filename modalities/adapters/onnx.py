"""ONNX Runtime as the adapters use it: within a thread budget, asleep between calls, and without its telemetry.

Its official builds send trace events with an identifier of the machine to their maker, and keep that identifier and
what is still to be sent in the user's cache folder, unless a variable says otherwise before the library is loaded
(``Privacy.md`` in the package). What runs here stays here: the variable is set as soon as this module is imported, so
whoever imports a library that brings ONNX Runtime imports this first.
"""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def load_network(model: Path | bytes, threads: int) -> Any:  # an `onnxruntime.InferenceSession`
    """Returns the network of a file, or of a file's content, on the processor.

    `threads` 0 leaves their number to ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning would keep a core busy between calls for nothing.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(
        model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
    )
