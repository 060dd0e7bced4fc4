# SPDX-License-Identifier: Apache-2.0
"""Embedding of one Arrow batch, as a worker process does it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa
import pytest

from limnos.pipeline.declaration import EmbeddingDeclaration
from limnos.pipeline.engine.lance.embedding import (
    ERROR_COLUMN,
    EmbeddingFunction,
    WorkerEmbedding,
    embed_batch,
    made_by,
)

_names = itertools.count()


def batch_of(texts: list[str], *, known: dict[str, list[float]] | None = None) -> pa.RecordBatch:
    """Return rows whose hash is their text, with the vectors that are known."""
    vectors = [(known or {}).get(each) for each in texts]
    columns = {"text": pa.array(texts), "v": pa.array(vectors, pa.list_(pa.float32())), "v_hash": pa.array(texts)}
    return pa.RecordBatch.from_pydict(columns)


def worker(function: EmbeddingFunction, **further: object) -> WorkerEmbedding:
    """Return an embedding into `v` of two dimensions, in batches of four rows."""
    settings: dict[str, object] = {
        "batch": 4,
        "retries": 1,
        "model_name": None,
        "model": None,
        "version": "",
    } | further
    return WorkerEmbedding(
        columns=("text",), into="v", hash_column="v_hash", dimension=2, name="f", function=function, **settings
    )  # type: ignore[arg-type]


def lengths(rows: pa.RecordBatch) -> list[list[float]]:
    """Return a vector of the length of each text. Raises ValueError if one is `bad`."""
    texts = rows.column("text").to_pylist()
    if "bad" in texts:
        raise ValueError("a bad text")
    return [[float(len(each)), 0.0] for each in texts]


def test_equal_and_known_inputs_are_not_embedded_again() -> None:
    """Rows with a known vector keep it, and equal inputs are embedded once, in batches of the declared size."""
    sizes = []

    def counted(rows: pa.RecordBatch) -> list[list[float]]:
        sizes.append(rows.num_rows)
        return lengths(rows)

    texts = ["a", "bb", "a", "ccc", "dddd", "known", "eeeee", "ffffff"]
    result = embed_batch(batch_of(texts, known={"known": [9.0, 9.0]}), worker(counted)).to_pydict()

    assert sizes == [4, 2]
    assert [each[0] for each in result["v"]] == [1, 2, 1, 3, 4, 9, 5, 6]
    assert result[ERROR_COLUMN] == [None] * 8


def test_bad_row_fails_alone() -> None:
    """A row that raises an error has it, without a vector, and the other rows of its batch have vectors."""
    calls = []

    def counted(rows: pa.RecordBatch) -> list[list[float]]:
        calls.append(rows.column("text").to_pylist())
        return lengths(rows)

    result = embed_batch(batch_of(["a", "bad", "ccc", "dddd"]), worker(counted)).to_pydict()

    assert [each and each[0] for each in result["v"]] == [1, None, 3, 4]
    assert result[ERROR_COLUMN] == [None, "ValueError: a bad text", None, None]
    assert len(calls) == 2 + 4  # the batch twice, then halves once each


@pytest.mark.parametrize(
    "vector, reason",
    [
        ([1.0], "1 dimensions"),
        (None, "no vector"),
        ([float("nan"), 1.0], "finite"),
        (["x", "y"], "must be real number"),
    ],
)
def test_wrong_vector_is_an_error_of_its_row(vector: object, reason: str) -> None:
    """A vector of another dimension, none at all, and values that are no finite numbers are errors of their rows."""
    rows = embed_batch(batch_of(["a", "b"]), worker(lambda _: [vector, [1.0, 2.0]])).to_pydict()

    assert rows["v"] == [None, [1.0, 2.0]]
    assert reason in rows[ERROR_COLUMN][0]
    assert rows[ERROR_COLUMN][1] is None


def test_wrong_number_of_vectors_is_no_vector_of_another_row() -> None:
    """A function that leaves rows out fails: its vectors cannot be assigned."""
    rows = embed_batch(batch_of(["a", "b", "c"]), worker(lambda rows: lengths(rows)[1:])).to_pydict()

    assert rows["v"] == [None] * 3
    assert "returned 0 vectors for 1 rows" in rows[ERROR_COLUMN][0]


def test_transient_error_is_tried_again() -> None:
    """A batch that fails once is embedded by the second try, as a whole."""
    failures = iter([True])
    sizes = []

    def fails_once(rows: pa.RecordBatch) -> list[list[float]]:
        sizes.append(rows.num_rows)
        if next(failures, False):
            raise OSError("unreachable")
        return lengths(rows)

    rows = embed_batch(batch_of(["a", "b"]), worker(fails_once)).to_pydict()

    assert (sizes, rows[ERROR_COLUMN]) == ([2, 2], [None, None])


def test_model_is_loaded_once_and_its_failure_is_not_a_rows() -> None:
    """A process loads a model once; a model that cannot be loaded fails the task."""
    loads = []

    def load() -> float:
        loads.append(1)
        return 3.0

    def scaled(rows: pa.RecordBatch, model: object) -> list[list[object]]:
        return [[model, model] for _ in range(rows.num_rows)]

    embedding = worker(scaled, model=load, model_name=f"m{next(_names)}")
    for _ in range(2):
        assert embed_batch(batch_of(["a"]), embedding).to_pydict()["v"] == [[3.0, 3.0]]
    assert len(loads) == 1

    def fail() -> object:
        raise FileNotFoundError("weights")

    with pytest.raises(RuntimeError, match="cannot load the model: FileNotFoundError: weights"):
        embed_batch(batch_of(["a"]), worker(scaled, model=fail, model_name=f"m{next(_names)}"))


@pytest.mark.parametrize(
    "changed",
    [{"function": "m:g"}, {"model": "m:other"}, {"version": "2"}, {"dimension": 3}],
    ids=lambda each: next(iter(each)),
)
def test_changed_declaration_embeds_all_rows_again(changed: dict[str, object]) -> None:
    """Vectors are kept only while function, model, version and dimension are the same."""
    declared = EmbeddingDeclaration(function="m:f", columns=("text",), dimension=2, model="m:load", version="1")

    assert made_by(replace(declared, batch=7, retries=0)) == made_by(declared)
    assert made_by(replace(declared, **changed)) != made_by(declared)  # type: ignore[arg-type]
