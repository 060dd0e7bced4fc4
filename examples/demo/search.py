# SPDX-License-Identifier: Apache-2.0
"""Names of airports as vectors: computed by Spark, stored in a Lance table, searched by `ana` through the server.

Job: fill the table, and search by similarity and by a word. May import `client`, `model`, the demo's `access`, PySpark
for the vectors, pyarrow for answers, and the types of Lance's requests. It must not know how the pipeline made the
table that it reads.

A vector has the counts of a name's groups of three letters, weighted by rarity (TF-IDF), each group hashed to one of a
few hundred positions: names with a similar spelling are close to each other. This needs no model and no download.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from examples.demo.access import AccessAnswer, TableAccess
from limnos.client import ConflictError
from limnos.model.errors import LimnosError

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace
    from lance_namespace_urllib3_client.models.query_table_request import QueryTableRequest
    from pyspark.ml import PipelineModel
    from pyspark.sql import DataFrame, SparkSession

    from limnos.client import Client

CATALOG: Final = "lance"
NAMESPACE: Final = "lance.nyc"
TABLE: Final = "lance.nyc.airports"
AIRPORTS: Final = "main.raw.nyc.airports"
MISSPELT: Final = "Chicgo Ohair Intl"
MEANT: Final = "Chicago Ohare Intl"
WORD: Final = "reagan"
NAMED: Final = "Ronald Reagan Washington Natl"
_PLACES: Final = 512
_PATH: Final = TABLE.split(".")


class SearchCheckFailed(LimnosError):
    """A search returned an unexpected result."""

    code = "search-wrong"


@dataclass(frozen=True, slots=True)
class VectorTableContents:
    """The content of the table, and the vector of ana's query."""

    rows: int
    source_lookup: list[float]


def fill_table(spark: SparkSession, admin: Client) -> VectorTableContents:
    """Write every airport's name with its vector, and a full-text index. A table from an earlier run is replaced."""
    try:
        admin.namespaces.create(NAMESPACE)
    except ConflictError as error:
        if error.code != "already-exists":
            raise
    names = spark.table(AIRPORTS).selectExpr("faa", "name", "tzone")
    model = _vectors(names)
    writer = _with_vectors(model, names).coalesce(1).write.format("limnos.lance").option("vectors", f"vector={_PLACES}")
    writer.mode("overwrite").save(TABLE)
    written = admin.lance.dataset(TABLE)
    written.create_scalar_index("name", "INVERTED", replace=True)
    source_lookup = _with_vectors(model, spark.sql("SELECT :name AS name", args={"name": MISSPELT})).first()
    return VectorTableContents(
        rows=written.count_rows(), source_lookup=list(source_lookup["vector"]) if source_lookup is not None else []
    )


def _vectors(names: DataFrame) -> PipelineModel:
    """Compute the rarity of groups of letters, and the vectors."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import IDF, HashingTF, NGram, Normalizer, RegexTokenizer

    return Pipeline(
        stages=[
            RegexTokenizer(inputCol="name", outputCol="letters", pattern=".", gaps=False),
            NGram(n=3, inputCol="letters", outputCol="groups"),
            HashingTF(numFeatures=_PLACES, inputCol="groups", outputCol="counts"),
            IDF(inputCol="counts", outputCol="weights"),
            Normalizer(inputCol="weights", outputCol="even"),
        ]
    ).fit(names)


def _with_vectors(model: PipelineModel, names: DataFrame) -> DataFrame:
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql.functions import col

    vectors = model.transform(names)
    return vectors.select(*names.columns, vector_to_array(col("even"), dtype="float32").alias("vector"))


def search_access(client: Client, source_lookup: list[float]) -> TableAccess:
    """Return ana's searches: by similarity, and by a word."""
    namespace = client.lance.namespace()
    return TableAccess(table=TABLE, way="Lance REST", ask=lambda: _search(namespace, source_lookup))


def _search(namespace: LanceNamespace, source_lookup: list[float]) -> AccessAnswer:
    """Search both ways; if only one is refused, that is an error. Raises SearchCheckFailed."""
    from lance_namespace.errors import PermissionDeniedError

    names: list[str] = []
    refused: list[str] = []
    for query in _queries(source_lookup):
        try:
            names.append(_first(namespace, query))
        except PermissionDeniedError as error:
            refused.append(str(error))
    if refused and not names:
        return AccessAnswer(allowed=False, text=refused[0])
    if names != [MEANT, NAMED]:
        raise SearchCheckFailed(f"'{MISSPELT}' and '{WORD}' found {names or 'nothing'}, and not {MEANT} and {NAMED}")
    return AccessAnswer(allowed=True, text=f"'{MISSPELT}' is nearest to {MEANT}; '{WORD}' is in {NAMED}")


def _queries(source_lookup: list[float]) -> tuple[QueryTableRequest, QueryTableRequest]:
    from lance_namespace_urllib3_client.models.query_table_request import QueryTableRequest

    fields = {"id": _PATH, "k": 1, "columns": {"column_names": ["name"]}}
    words = {"string_query": {"query": WORD, "columns": ["name"]}}
    return (
        QueryTableRequest.model_validate({**fields, "vector": {"single_vector": source_lookup}}),
        QueryTableRequest.model_validate({**fields, "vector": {}, "full_text_query": words}),
    )


def _first(namespace: LanceNamespace, query: QueryTableRequest) -> str:
    data = namespace.query_table(query).data
    names = pa.ipc.open_file(pa.BufferReader(data)).read_all()["name"].to_pylist()
    return str(names[0]) if names else "nothing"
