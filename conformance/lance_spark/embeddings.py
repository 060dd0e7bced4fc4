# SPDX-License-Identifier: Apache-2.0
"""Embeddings of real text in a Lance table: computed by a Spark job, indexed at the server, searched through LanceDB
and compared with brute force.

May import PySpark, `limnos.spark`, `limnos.client`, pylance. Knows no rights. Nothing is downloaded: the text is the
documentation of installed packages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa

from limnos.spark import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from limnos.client import Client

DOCS = "lance.ml.text.docs"
PATH = DOCS.split(".")
SIZE = 256
NEAREST, QUERIES, PROBES = 10, 50, 40


def sentences(rows: int) -> Iterator[str]:
    """Return real text: the sentences of docstrings of installed packages, repeated if there are too few."""
    texts: list[str] = []
    for file in sorted(Path(pa.__file__).parents[1].rglob("*.py")):
        text = " ".join(re.findall(r'"""(.*?)"""', file.read_text(encoding="utf-8", errors="ignore"), re.DOTALL))
        texts += [each for each in re.split(r"(?<=[.!?])\s+", " ".join(text.split())) if 40 < len(each) < 400]
        if len(texts) >= rows:
            break
    for number in range(rows):
        yield texts[number % len(texts)]


def embedded(spark: SparkSession, file: Path) -> DataFrame:
    """Return each line of a file with its normalized TF-IDF vector of hashed words."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import IDF, HashingTF, Normalizer, RegexTokenizer
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql.functions import col, monotonically_increasing_id

    lines = spark.read.text(str(file)).withColumn("id", monotonically_increasing_id())
    stages = [
        RegexTokenizer(inputCol="value", outputCol="words", pattern=r"\W+"),
        HashingTF(numFeatures=SIZE, inputCol="words", outputCol="counts"),
        IDF(inputCol="counts", outputCol="weights"),
        Normalizer(inputCol="weights", outputCol="even"),
    ]
    vectors = Pipeline(stages=stages).fit(lines).transform(lines)
    return vectors.select(
        "id", col("value").alias("text"), vector_to_array(col("even"), dtype="float32").alias("vector")
    )


def fill(spark: SparkSession, admin: Client, *, rows: int, folder: Path) -> int:
    """Write the table with Spark; returns its number of rows."""
    file = folder / "text.txt"
    file.write_text("\n".join(sentences(rows)), encoding="utf-8")
    for name in ("lance.ml", "lance.ml.text"):
        admin.namespaces.create(name)
    writer = embedded(spark, file).repartition(4).write.format("limnos.lance").option("vectors", f"vector={SIZE}")
    writer.mode("append").save(DOCS)
    return table(spark, DOCS, columns=["id"]).count()


def index(admin: Client) -> None:
    """Build a vector index and a full-text index at the server, through LanceDB's remote client."""
    docs = admin.lance.remote("lance").open_table(PATH[-1], namespace_path=PATH[1:-1])
    partitions = max(2, int(docs.count_rows() ** 0.5) // 2)
    docs.create_index("l2", vector_column_name="vector", index_type="IVF_FLAT", num_partitions=partitions)
    docs.create_fts_index("text")


def recall(admin: Client) -> dict[str, float]:
    """Return the share of the nearest rows by brute force that a search through LanceDB finds with the index, in each
    mode.
    """
    vectors = lance.dataset(admin.lance.load(DOCS).location).to_table(columns=["vector"])["vector"].combine_chunks()
    numbers = vectors.values.to_numpy().reshape(-1, SIZE)
    queries = numbers[:: max(1, len(numbers) // QUERIES)][:QUERIES]
    tables = {
        "namespace": admin.lance.connect().open_table(PATH[-1], namespace_path=PATH[:-1]),
        "remote": admin.lance.remote("lance").open_table(PATH[-1], namespace_path=PATH[1:-1]),
    }
    hits = dict.fromkeys(tables, 0)
    for each in queries:
        bound = np.partition(((numbers - each) ** 2).sum(axis=1), NEAREST - 1)[NEAREST - 1] + 1e-5
        for mode, docs in tables.items():
            matches = docs.search(each, vector_column_name="vector").limit(NEAREST).nprobes(PROBES).to_arrow()
            hits[mode] += sum(distance <= bound for distance in matches["_distance"].to_pylist())
    return {mode: count / (NEAREST * len(queries)) for mode, count in hits.items()}
