# SPDX-License-Identifier: Apache-2.0
"""Embedding of rows: a function over Arrow batches makes a vector for each row that has none yet.

The hash of a row's inputs lies beside its vector, so a later run takes the vectors of equal inputs from the published
version. A worker process loads the model once. A batch that fails is tried again, then halved without further pauses,
so that one bad row does not fail its batch; the rows that fail alone have no vector and their error. Must not know
tables.
"""

from __future__ import annotations

import importlib
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, FloatType, StringType, StructField, StructType

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import EmbeddingDeclaration
from limnos.pipeline.engine.changes import quote_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

logger = logging.getLogger(__name__)

ERROR_COLUMN: Final = "embedding_error"
"""The column with the error of a row that could not be embedded. Only the quarantine table has it."""
_VECTOR: Final = ArrayType(FloatType(), containsNull=False)
_PAUSE_S: Final = 0.2
_PAUSE_MAX_S: Final = 10.0
_ERROR_CHARACTERS_MAX: Final = 500
_models: dict[tuple[str, str], object] = {}
"""The models that this process has loaded, by the names of their functions and the declared versions."""

EmbeddingFunction = Callable[..., object]


def embed_rows(frame: DataFrame, embedding: EmbeddingDeclaration, *, known: DataFrame | None, step: str) -> DataFrame:
    """Return the rows with the columns of the vector, the hash of its inputs, and the error if there is no vector.

    `known` has vectors by hash, which are used again; None to embed every row. Nothing is run.

    Raises BadRequest if the rows lack an input column, or have one of the new columns.
    """
    names = {each.lower() for each in frame.columns}
    for column in embedding.columns:
        if column.lower() not in names:
            raise BadRequest(f"Step {step}: `embed` reads {column!r}, which the query does not return.")
    for column in (*embedding.added, ERROR_COLUMN):
        if column.lower() in names:
            raise BadRequest(f"Step {step}: the query returns {column!r}, which `embed` makes: rename it.")
    rows = frame.withColumn(embedding.hash_column, _hash_of(embedding))
    if known is None:
        rows = rows.withColumn(embedding.into, f.lit(None).cast(_VECTOR))
    else:
        vectors = known.where(f.col(quote_column(embedding.into)).isNotNull())
        rows = rows.join(vectors.dropDuplicates([embedding.hash_column]), embedding.hash_column, "left")
    columns = [*frame.columns, embedding.into, embedding.hash_column]
    rows = rows.select(*map(quote_column, columns))
    result = StructType(
        [
            *rows.schema.fields[:-2],
            StructField(embedding.into, _VECTOR),
            rows.schema.fields[-1],
            StructField(ERROR_COLUMN, StringType()),
        ]
    )
    return rows.mapInArrow(_task(WorkerEmbedding.of(embedding)), result)


def _hash_of(embedding: EmbeddingDeclaration) -> Column:
    """Return the hash of what a row's vector follows from: function, model, version, dimension and input columns."""
    inputs = f.to_json(f.struct(*map(quote_column, embedding.columns)), {"ignoreNullFields": "false"})
    return f.sha2(f.concat_ws("\0", f.lit(made_by(embedding)), inputs), 256)


def made_by(embedding: EmbeddingDeclaration) -> str:
    """Return the text of what makes the vectors. Vectors of another one are not used again."""
    return "\0".join((embedding.function, embedding.model or "", embedding.version, str(embedding.dimension)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEmbedding:
    """What a worker process needs to embed rows."""

    columns: tuple[str, ...]
    into: str
    hash_column: str
    dimension: int
    batch: int
    retries: int
    name: str
    function: EmbeddingFunction
    model_name: str | None
    model: Callable[[], object] | None
    version: str

    @classmethod
    def of(cls, embedding: EmbeddingDeclaration) -> WorkerEmbedding:
        """Return the settings with the functions, which the pipeline's directory or installed modules have."""
        return cls(
            columns=embedding.columns,
            into=embedding.into,
            hash_column=embedding.hash_column,
            dimension=embedding.dimension,
            batch=embedding.batch,
            retries=embedding.retries,
            name=embedding.function,
            function=embedding.callable or _import_function(embedding.function),
            model_name=embedding.model,
            model=None if embedding.model is None else embedding.model_callable or _import_function(embedding.model),
            version=embedding.version,
        )


def _import_function(reference: str) -> Callable[..., object]:
    module, _, name = reference.partition(":")
    function: Callable[..., object] = getattr(importlib.import_module(module), name)
    return function


def _task(embedding: WorkerEmbedding) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def embed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield embed_batch(batch, embedding)

    return embed


def embed_batch(batch: pa.RecordBatch, embedding: WorkerEmbedding) -> pa.RecordBatch:
    """Return the batch with vectors and errors. Rows with equal inputs are embedded once."""
    hashes = batch.column(embedding.hash_column).to_pylist()
    vectors = batch.column(embedding.into).to_pylist()
    first: dict[str, int] = {}
    for row, (key, vector) in enumerate(zip(hashes, vectors, strict=True)):
        if vector is None:
            first.setdefault(key, row)
    results = _BatchResults()
    if first:
        call = _call_of(embedding)
        inputs = batch.select(list(embedding.columns)).take(pa.array(list(first.values())))
        for start in range(0, len(first), embedding.batch):
            rows = inputs.slice(start, embedding.batch)
            _embed_rows(call, rows, start=start, tries=1 + embedding.retries, results=results)
    positions = {key: index for index, key in enumerate(first)}
    filled = [
        results.vectors.get(positions[key]) if vector is None else vector
        for key, vector in zip(hashes, vectors, strict=True)
    ]
    errors = [
        results.errors.get(positions[key]) if vector is None else None
        for key, vector in zip(hashes, vectors, strict=True)
    ]
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns[embedding.into] = pa.array(filled, pa.list_(pa.field("element", pa.float32(), nullable=False)))
    return pa.RecordBatch.from_pydict({**columns, ERROR_COLUMN: pa.array(errors, pa.string())})


@dataclass(slots=True)
class _BatchResults:
    """Vectors and errors by the place of their inputs."""

    vectors: dict[int, Sequence[float]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)


def _embed_rows(call: _Call, rows: pa.RecordBatch, *, start: int, tries: int, results: _BatchResults) -> None:
    """Embed the rows that begin at the place `start`: in at most `tries` calls, then each half in one."""
    try:
        vectors = _with_tries(call, rows, tries=tries)
    except Exception as error:  # noqa: BLE001 - whatever a function or a remote model raises
        if rows.num_rows == 1:
            results.errors[start] = f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS_MAX]
            return
        half = rows.num_rows // 2
        _embed_rows(call, rows.slice(0, half), start=start, tries=1, results=results)
        _embed_rows(call, rows.slice(half), start=start + half, tries=1, results=results)
        return
    for index, vector in enumerate(vectors, start):
        try:
            results.vectors[index] = _check_vector(vector, call.dimension)
        except (TypeError, ValueError) as error:
            results.errors[index] = str(error)[:_ERROR_CHARACTERS_MAX]


def _with_tries(call: _Call, rows: pa.RecordBatch, *, tries: int) -> list[Sequence[float] | None]:
    pause_s = _PAUSE_S
    for left in range(tries - 1, -1, -1):
        try:
            return call.vectors(rows)
        except Exception:
            if not left:
                raise
            logger.debug("a batch of %s rows was not embedded, and is tried again", rows.num_rows, exc_info=True)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    raise AssertionError("the last try returns or raises")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """The function of an embedding, with its model."""

    name: str
    function: EmbeddingFunction
    dimension: int
    model: tuple[object, ...] = ()
    """The model, if there is one; it may be any value."""

    def vectors(self, rows: pa.RecordBatch) -> list[Sequence[float] | None]:
        """Call the function. Raises ValueError if it returns another number of vectors than there are rows."""
        vectors = _vectors_as_lists(self.function(rows, *self.model))
        if len(vectors) != rows.num_rows:
            raise ValueError(f"{self.name} returned {len(vectors)} vectors for {rows.num_rows} rows")
        return vectors


def _call_of(embedding: WorkerEmbedding) -> _Call:
    """Return the function with the model, which this process loads once. Raises RuntimeError if that fails: then no
    row is wrong.
    """
    model: tuple[object, ...] = ()
    if embedding.model is not None and embedding.model_name is not None:
        key = (embedding.model_name, embedding.version)
        if key not in _models:
            try:
                _models[key] = embedding.model()
            except Exception as error:
                raise RuntimeError(
                    f"{embedding.model_name} cannot load the model: {type(error).__name__}: {error}"
                ) from error
        model = (_models[key],)
    return _Call(name=embedding.name, function=embedding.function, dimension=embedding.dimension, model=model)


def _vectors_as_lists(vectors: Any) -> list[Sequence[float] | None]:  # noqa: ANN401 - what a function may return
    """Return the vectors as lists: of an Arrow array, a NumPy array, or a sequence of sequences."""
    if isinstance(vectors, (pa.Array, pa.ChunkedArray)):
        return list(vectors.to_pylist())
    if hasattr(vectors, "tolist"):
        return list(vectors.tolist())
    return [None if each is None else each.tolist() if hasattr(each, "tolist") else list(each) for each in vectors]


def _check_vector(vector: Sequence[float] | None, dimension: int) -> Sequence[float]:
    """Return a vector. Raises ValueError for none, one of another dimension, and values that are not finite."""
    if vector is None:
        raise ValueError("the function returned no vector")
    if len(vector) != dimension:
        raise ValueError(f"the vector has {len(vector)} dimensions, and not {dimension}")
    if not all(map(math.isfinite, vector)):
        raise ValueError("the vector has a value that is not a finite number")
    return vector
