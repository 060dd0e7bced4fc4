"""Names of airports as vectors, beside the tables: made by Spark, kept in a Lance table, searched by `ana` through
the server.

Job: fill the table, and ask for what is like some words and for what has a word in it. May import `client`, `model`,
the demo's `access`, PySpark for the vectors, pyarrow for answers, and the shapes of Lance's requests. It must not
know how the pipeline made what it reads.

A vector is a name's groups of three letters, counted, the rare ones for more (TF-IDF), each group in one of a few
hundred places: names that are spelled alike are near each other. No model is needed for it, and none is fetched.
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
    """A search found something else than what is there."""

    code = "search-wrong"


@dataclass(frozen=True, slots=True)
class VectorTableContents:
    """What was put into the table, and the vector of what ana will look for."""

    rows: int
    source_lookup: list[float]


def fill_table(spark: SparkSession, admin: Client) -> VectorTableContents:
    """Write every airport's name with its vector, and an index of their words. A table from an earlier run is
    replaced.
    """
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
    """Learn which groups of letters are rare."""
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

    found = model.transform(names)
    return found.select(*names.columns, vector_to_array(col("even"), dtype="float32").alias("vector"))


def search_access(client: Client, source_lookup: list[float]) -> TableAccess:
    """How ana searches: by likeness, and by a word."""
    namespace = client.lance.namespace()
    return TableAccess(table=TABLE, way="Lance REST", ask=lambda: _search(namespace, source_lookup))


def _search(namespace: LanceNamespace, source_lookup: list[float]) -> AccessAnswer:
    """Ask both ways; what is refused in one and not in the other is no answer. Raises SearchCheckFailed."""
    from lance_namespace.errors import PermissionDeniedError

    found: list[str] = []
    refused: list[str] = []
    for query in _queries(source_lookup):
        try:
            found.append(_first(namespace, query))
        except PermissionDeniedError as error:
            refused.append(str(error))
    if refused and not found:
        return AccessAnswer(allowed=False, text=refused[0])
    if found != [MEANT, NAMED]:
        raise SearchCheckFailed(f"'{MISSPELT}' and '{WORD}' found {found or 'nothing'}, and not {MEANT} and {NAMED}")
    return AccessAnswer(allowed=True, text=f"'{MISSPELT}' is nearest to {MEANT}; '{WORD}' is in {NAMED}")


def _queries(source_lookup: list[float]) -> tuple[QueryTableRequest, QueryTableRequest]:
    from lance_namespace_urllib3_client.models.query_table_request import QueryTableRequest

    asked = {"id": _PATH, "k": 1, "columns": {"column_names": ["name"]}}
    words = {"string_query": {"query": WORD, "columns": ["name"]}}
    return (
        QueryTableRequest.model_validate({**asked, "vector": {"single_vector": source_lookup}}),
        QueryTableRequest.model_validate({**asked, "vector": {}, "full_text_query": words}),
    )


def _first(namespace: LanceNamespace, query: QueryTableRequest) -> str:
    found = namespace.query_table(query).data
    names = pa.ipc.open_file(pa.BufferReader(found)).read_all()["name"].to_pylist()
    return str(names[0]) if names else "nothing"
