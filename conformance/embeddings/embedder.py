# SPDX-License-Identifier: Apache-2.0
"""The embedding of the suite's pipeline: the sum of a random vector for each word and each part of a word.

The suite copies this file beside the pipeline; may import NumPy and the standard library only. Each call appends the
number of its texts to the file that the variable EMBEDDINGS_CALLS names, and each load of the model a line `model`.
"""

from __future__ import annotations

import os
import re
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    Model = np.ndarray[tuple[int, int], np.dtype[np.float32]]

DIMENSION = 64
_FEATURES = 8192
CALLS = "EMBEDDINGS_CALLS"
"""The environment variable with the path of the file of calls. Spark copies this module to other directories."""


def load() -> Model:
    """Return the vectors of all features, the same in every process."""
    _note("model")
    return np.random.default_rng(7).standard_normal((_FEATURES, DIMENSION), dtype=np.float32)


def embed(batch: pa.RecordBatch, model: Model) -> Model:
    """Return a vector of length 1 for each text."""
    texts = batch.column("text").to_pylist()
    vectors = np.stack([model[_features(each)].sum(axis=0) for each in texts])
    _note(str(len(texts)))
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)  # type: ignore[no-any-return]


def _features(text: str) -> list[int]:
    words = [f" {each} " for each in re.findall(r"\w+", text.lower())] or [text]
    parts = [word[at : at + 4] for word in words for at in range(max(1, len(word) - 3))]
    return [zlib.crc32(each.encode()) % _FEATURES for each in (*words, *parts)]


def _note(line: str) -> None:
    # One write of a short line: processes that append at the same time do not mix their lines.
    file = os.open(os.environ[CALLS], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)
