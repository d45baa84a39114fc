"""Fits the whitening of sentence vectors and the rotation of fingerprints: `make fit-consistency` runs it first.

    CHORALE_CONSISTENCY_DATA=... python -m benchmarks.fit_whitening

It reads texts whose licence allows numbers made of them to be shipped: SLURP (CC BY 4.0), SNIPS (CC0), the n-best lists
of DSTC10 (Apache-2.0) and commands made of the templates below. The dialogues of the data (CC BY-SA 4.0) are not read.
Labels are not read. The rotation is iterative quantisation (Gong and Lazebnik 2011) of the whitened vectors. The same
texts and model give the same files.
"""

import argparse
import itertools
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import consistency
from benchmarks.data_files import LIST, TEXT, BadData, Field, rows_of
from consistency.fingerprint import BITS, PROSODY, TOKENS
from consistency.observation import VECTOR_ONE
from consistency.whitening import FILE, Whitening, fit
from modalities.adapters.minilm_onnx import MiniLmOnnx

VERSION = 1
ROTATION = "rotation.npz"
ITERATIONS = 50
SEED = 7
BATCH = 64

TEMPLATES = (
    ("book a table for {} at {}", ("two", "five people", "the whole family"),
     ("luigi's", "the harbour grill", "seven")),
    ("reserve {} in {}", ("a room", "a hotel", "a car", "two seats"), ("berlin", "new orleans", "the old town")),
    ("{} the {}", ("turn on", "switch off", "dim", "check", "lock", "open"),
     ("kitchen lights", "heating", "front door", "garage", "fan in the bedroom", "oven", "blinds")),
    ("set the {} to {}", ("thermostat", "bedroom lamp", "volume", "timer"),
     ("twenty", "forty percent", "blue", "six")),
    ("how do i get from {} to {}", ("the station", "oak street", "the airport"),
     ("the museum", "my hotel", "downtown")),
    ("order {} from {}", ("two pizzas", "noodles", "flowers", "my usual"),
     ("the corner shop", "the thai place", "town")),
    ("{} my {}", ("cancel", "move", "confirm", "show me"),
     ("appointment", "order", "subscription", "flight", "invoice")),
    ("is there {} {}", ("parking", "a vegan menu", "wifi", "a doctor"),
     ("nearby", "on sunday", "at the hotel", "tonight")),
    ("transfer {} to {}", ("fifty dollars", "the rent", "two hundred"), ("my savings", "anna", "the landlord")),
    ("what {} at {}", ("opens", "plays", "is cheap", "is showing"), ("the odeon", "the mall", "eight tonight", "noon")),
)  # fmt: skip
"""Commands of our own, of subjects that the other texts lack."""


def texts_of(data: Path) -> list[str]:
    """Returns every text of the data that may be used, and the commands of the templates, sorted.

    Raises OSError where a file is missing, `BadData` where a line is not as it should be."""
    found: set[str] = set()
    for row in rows_of(data / "pairs_slurp.jsonl", {"a": TEXT, "b": TEXT}):
        found |= {row["a"], row["b"]}
    for row in rows_of(data / "clips.jsonl", {"said": TEXT, "asr": Field(dict, "an object")}):
        found |= {row["said"], *(heard["text"] for heard in row["asr"].values())}
    for row in rows_of(data / "nbest_dstc10.jsonl", {"nbest": LIST}):
        found |= {text for text, _ in row["nbest"][:2]}
    for template, *choices in TEMPLATES:
        found |= {template.format(*chosen) for chosen in itertools.product(*choices)}
    return sorted(text for text in found if text.strip())


def embed(texts: list[str]) -> NDArray[np.float32]:
    """Returns one sentence vector of the default model per text: the same in whatever company."""
    model = MiniLmOnnx()
    starts = track(range(0, len(texts), BATCH), "sentence vectors", transient=True)
    return np.concatenate([model.embed(texts[at : at + BATCH]) for at in starts])


def write(whitening: Whitening, path: Path) -> None:
    """Writes a fit as it ships: half precision, uncompressed, the same bytes every time."""
    np.savez(
        path,
        version=np.uint8(whitening.version),
        mean=whitening.mean.astype(np.float16),
        matrix=whitening.matrix.astype(np.float16),
    )


def rotation(white: NDArray[np.int16]) -> NDArray[np.float64]:
    """Returns the orthogonal (128, 128) matrix whose sign bits tell most of unit vectors like these, (k, 128)."""
    vectors = white.astype(np.float64) / VECTOR_ONE
    turn = np.linalg.qr(np.random.default_rng(SEED).standard_normal((BITS, BITS)))[0]
    for _ in range(ITERATIONS):
        left, _, right = np.linalg.svd(vectors.T @ np.sign(vectors @ turn.T))
        turn = (left @ right).T
    return turn


def write_rotation(turn: NDArray[np.float64], path: Path) -> None:
    """Writes the rotation of the text block, and directions for the blocks of prosody and tokens, as int16."""
    drawn = np.random.default_rng(SEED + 1)
    blocks = {"text": turn}
    for name, width in (("prosody", PROSODY), ("tokens", TOKENS)):
        blocks[name] = np.linalg.qr(drawn.standard_normal((BITS, width)))[0]
    text, prosody, tokens = (np.rint(VECTOR_ONE * one).astype(np.int16) for one in blocks.values())
    np.savez(path, version=np.uint8(VERSION), text=text, prosody=prosody, tokens=tokens)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("CHORALE_CONSISTENCY_DATA")
    parser.add_argument(
        "--data", type=Path, default=default, required=default is None, help="the data's folder"
    )
    parser.add_argument("--out", type=Path, default=Path(consistency.__file__).with_name(FILE))
    arguments = parser.parse_args()
    try:
        texts = texts_of(arguments.data)
    except (BadData, OSError) as error:
        parser.error(str(error))
    vectors = embed(texts)
    whitening = fit(vectors, VERSION)
    write(whitening, arguments.out)
    write_rotation(rotation(whitening.apply(vectors)), arguments.out.with_name(ROTATION))
    print(f"{arguments.out.name} and {ROTATION}: version {VERSION}, fitted on {len(texts)} texts")


if __name__ == "__main__":
    main()
