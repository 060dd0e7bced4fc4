# SPDX-License-Identifier: Apache-2.0
"""Keys of a step whose table is a Lance table: vectors, indexes, and the embedding of its rows.

Defines the records. Must not know which catalogs have Lance tables.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.pipeline.compound_schemas import Cases, ListOf, MapOf, Record, RecordKey
from limnos.pipeline.declaration import EmbeddingDeclaration, IndexDeclaration, IndexKind
from limnos.pipeline.keys.shared import COLUMNS, FUNCTION, TEXT, WORD, require_function
from limnos.pipeline.node_schemas import Boolean, Choice, NodeSite, Text, Values, WholeNumber

_COLUMN = Text(word="a column")
DIMENSION_MAX = 65_536
METRICS = ("l2", "cosine", "dot")
SCALAR_TYPES = ("BTREE", "BITMAP", "LABEL_LIST")


def _index(kind: IndexKind) -> Callable[[Values, NodeSite], IndexDeclaration]:
    def build(values: Values, site: NodeSite) -> IndexDeclaration:
        options = {name: value for name, value in values.items() if name != kind.value}
        return IndexDeclaration(column=values[kind.value], kind=kind, options=options)

    return build


def _column_key(kind: IndexKind, description: str, *, example: str) -> dict[str, RecordKey]:
    return {
        kind.value: RecordKey(value_schema=_COLUMN, description=description, example=example, required=True),
    }


INDEX = Cases(
    name="an index",
    cases={
        "vector": Record(
            name="a vector index",
            keys={
                **_column_key(IndexKind.VECTOR, "The column of vectors.", example="vector: embedding"),
                "metric": RecordKey(
                    value_schema=Choice(METRICS),
                    description="The distance by which vectors are compared.",
                    example="metric: cosine",
                    default="l2",
                ),
                "partitions": RecordKey(
                    value_schema=WholeNumber(least=1, most=1_000_000),
                    description="The number of groups of vectors; the default follows from the number of rows.",
                    example="partitions: 64",
                ),
                "sub_vectors": RecordKey(
                    value_schema=WholeNumber(least=1, most=DIMENSION_MAX),
                    description=(
                        "The number of parts into which a vector is divided; the default follows from the dimension."
                    ),
                    example="sub_vectors: 24",
                ),
            },
            build=_index(IndexKind.VECTOR),
        ),
        "scalar": Record(
            name="a scalar index",
            keys={
                **_column_key(IndexKind.SCALAR, "The column that filters name.", example="scalar: id"),
                "type": RecordKey(
                    value_schema=Choice(SCALAR_TYPES),
                    description="BTREE for ranges and single values, BITMAP for few values, LABEL_LIST for lists.",
                    example="type: BITMAP",
                    default="BTREE",
                ),
            },
            build=_index(IndexKind.SCALAR),
        ),
        "text": Record(
            name="a full-text index",
            keys={
                **_column_key(IndexKind.TEXT, "The column of texts.", example="text: body"),
                "language": RecordKey(
                    value_schema=TEXT,
                    description="The language for stems and stop words, as Lance's library names it.",
                    example="language: German",
                    default="English",
                ),
                "with_position": RecordKey(
                    value_schema=Boolean(),
                    description="Store the positions of words, which searches for phrases need.",
                    example="with_position: true",
                    default="false",
                ),
            },
            build=_index(IndexKind.TEXT),
        ),
    },
)


def _embed(values: Values, site: NodeSite) -> EmbeddingDeclaration:
    for key in ("function", "model"):
        if key in values:
            require_function(values[key], site)
    return EmbeddingDeclaration(**values)


EMBED = Record(
    name="'embed'",
    keys={
        "function": RecordKey(
            value_schema=FUNCTION,
            description=(
                "A function from an Arrow batch of `columns`, and the model if there is one, to as many vectors."
            ),
            example="function: embeddings:embed",
            required=True,
        ),
        "columns": RecordKey(
            value_schema=COLUMNS,
            description="The columns that the function receives.",
            example="columns: [title, body]",
            required=True,
        ),
        "dimension": RecordKey(
            value_schema=WholeNumber(least=1, most=DIMENSION_MAX),
            description="The dimension of the vectors.",
            example="dimension: 384",
            required=True,
        ),
        "into": RecordKey(
            value_schema=WORD,
            description="The column of the vectors; `<into>_hash` has the hash of a row's inputs.",
            example="into: vector",
            default="embedding",
        ),
        "model": RecordKey(
            value_schema=FUNCTION,
            description="A function without arguments that loads the model, once for each worker process.",
            example="model: embeddings:load",
        ),
        "version": RecordKey(
            value_schema=TEXT,
            description="The version of the function and its model: another one embeds all rows again.",
            example="version: minilm-6",
        ),
        "batch": RecordKey(
            value_schema=WholeNumber(least=1, most=100_000),
            description="The largest number of rows of one call.",
            example="batch: 256",
            default="64",
        ),
        "retries": RecordKey(
            value_schema=WholeNumber(least=0, most=20),
            description="Further tries of a batch that fails; then its rows are tried alone.",
            example="retries: 5",
            default="2",
        ),
    },
    build=_embed,
)
LANCE_KEYS = {
    "embed": RecordKey(
        value_schema=EMBED,
        description="Of a Lance table: makes a vector of each row that has none yet; rows that fail go to quarantine.",
        example="embed: {function: embeddings:embed, columns: text, dimension: 384}",
    ),
    "vectors": RecordKey(
        value_schema=MapOf(_COLUMN, WholeNumber(least=1, most=DIMENSION_MAX)),
        description="Of a Lance table: array columns that are vectors, with their dimensions.",
        example="vectors: {embedding: 384}",
    ),
    "indexes": RecordKey(
        value_schema=ListOf(INDEX),
        description="Of a Lance table: its indexes, which a run builds or brings up to date before it publishes.",
        example="indexes: [{vector: embedding, metric: cosine}, {text: body}]",
    ),
}
