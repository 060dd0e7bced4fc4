"""The pipeline: raw tables, a cleaned and joined table, and a late day merged into both.

Job: the steps from CSV files to `main.curated.nyc.delays`, each of which can be run again and then keeps what is
there. May import `model`, the demo's `data`, `expectations`, `statements` and PySpark's types; it must not know which
server or catalog answers to `main`, nor how progress is shown.

The source is complete; the pipeline plays what happens to real feeds: the last day of the year comes late, and on the
evening before it flights were still in the air when the first file was cut, so their arrivals are corrected later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limnos.model.errors import LimnosError
from limnos.spark.demo import statements
from limnos.spark.demo.data import MISSING, Census
from limnos.spark.demo.expectations import Finding, check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.spark.demo.data import Source


class CountsDiffer(LimnosError):
    """A table does not hold what its source holds."""

    code = "counts-differ"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Outcome of a load: the rows there now, and whether they were there before."""

    rows: int
    kept: bool

    def __str__(self) -> str:
        return f"{self.rows:,} rows{', kept from before' if self.kept else ''}"


@dataclass(frozen=True, slots=True)
class Merged:
    """Outcome of a MERGE: rows that were new, rows that were corrected, rows in the table afterwards."""

    inserted: int
    corrected: int
    rows: int

    @property
    def changed(self) -> bool:
        """Whether anything was merged at all."""
        return bool(self.inserted or self.corrected)

    def __str__(self) -> str:
        if not self.changed:
            return f"nothing new, {self.rows:,} rows kept"
        return f"{self.inserted:,} new, {self.corrected:,} corrected, {self.rows:,} rows now"


def make_namespaces(spark: SparkSession) -> None:
    """Make `raw.nyc` and `curated.nyc` in the catalog `main`, where they are missing."""
    for statement in statements.NAMESPACES:
        spark.sql(statement)


def load_small_table(spark: SparkSession, source: Source) -> Loaded:
    """Load one of the small tables whole, unless it holds the source's rows and values already."""
    table = statements.raw(source.name)
    spark.sql(statements.create_raw(source.name, source.columns))
    if census(spark, table, source.column_names) == source.census:
        return Loaded(rows=source.census.rows, kept=True)
    _overwrite(read(spark, source), table)
    return Loaded(rows=source.census.rows, kept=False)


def load_first_flights(spark: SparkSession, source: Source) -> tuple[Loaded, tuple[Finding, ...]]:
    """Load the flights of the first delivery, checked; kept when the table holds them, or holds all, already."""
    table = statements.FLIGHTS
    spark.sql(statements.create_raw(source.name, source.columns, partitioned_by="month"))
    first = first_delivery(read(spark, source))
    rows = row_count(spark, table)
    expected = first.count()
    if rows in {expected, source.census.rows}:
        return Loaded(rows=rows, kept=True), ()
    findings = check(first, statements.RAW_RULES, what="The first delivery of flights")
    _overwrite(first, table)
    return Loaded(rows=expected, kept=False), findings


def build_delays(spark: SparkSession) -> tuple[Loaded, tuple[Finding, ...]]:
    """Clean and join the raw tables into `delays`, checked before it is written; kept when it has every flight."""
    spark.sql(statements.CREATE_DELAYS)
    rows, expected = row_count(spark, statements.DELAYS), row_count(spark, statements.FLIGHTS)
    if rows == expected:
        return Loaded(rows=rows, kept=True), ()
    cleaned = spark.sql(statements.clean_and_join()).cache()
    try:
        findings = check(cleaned, statements.DELAY_RULES, what="The joined table of delays")
        _overwrite(cleaned, statements.DELAYS)
    finally:
        cleaned.unpersist()
    return Loaded(rows=expected, kept=False), findings


def merge_late_flights(spark: SparkSession, source: Source) -> tuple[Merged, tuple[Finding, ...]]:
    """Merge the late delivery into the raw flights, checked first."""
    late = late_delivery(read(spark, source))
    late.createOrReplaceTempView(statements.LATE_VIEW)
    findings = check(late, statements.RAW_RULES, what="The late delivery of flights")
    return _merge(spark, into=statements.FLIGHTS, key=statements.FLIGHT_KEY), findings


def merge_late_delays(spark: SparkSession) -> tuple[Merged, tuple[Finding, ...]]:
    """Clean and join only the days the late delivery touched, and merge them into `delays`."""
    # A view made by SQL: Spark 4.1 cannot plan a MERGE from a DataFrame's view that reads Iceberg tables itself.
    spark.sql(statements.late_delays_view())
    findings = check(spark.table(statements.LATE_VIEW), statements.DELAY_RULES, what="The late part of the delays")
    return _merge(spark, into=statements.DELAYS, key=statements.DELAY_KEY), findings


def verify(spark: SparkSession, source: Source) -> Census:
    """Compare a raw table with its source, rows and values per column; raise CountsDiffer on any difference."""
    table = statements.raw(source.name)
    found = census(spark, table, source.column_names)
    if found.rows != source.census.rows:
        raise CountsDiffer(f"{table} has {found.rows:,} rows, its source {source.census.rows:,}. {_REMEDY}")
    for column, filled in source.census.filled.items():
        if found.filled[column] != filled:
            raise CountsDiffer(
                f"{table}.{column} has {found.filled[column]:,} values, its source {filled:,}. {_REMEDY}"
            )
    return found


def verify_delays(spark: SparkSession, flights: Source) -> int:
    """Check that `delays` has every flight exactly once; return its rows."""
    rows, keys = spark.sql(statements.COUNT_DELAY_KEYS).collect()[0]
    if (rows, keys) != (flights.census.rows, flights.census.rows):
        raise CountsDiffer(
            f"{statements.DELAYS} has {rows:,} rows for {keys:,} flights, the source {flights.census.rows:,}. {_REMEDY}"
        )
    return int(rows)


def read(spark: SparkSession, source: Source) -> DataFrame:
    """The source's file as a DataFrame, typed; a value that does not fit its type ends the run."""
    options = {"header": "true", "nullValue": MISSING, "mode": "FAILFAST"}
    return spark.read.options(**options).schema(source.columns).csv(source.file.as_uri())


def first_delivery(flights: DataFrame) -> DataFrame:
    """Everything but the late day; on the evening before it, flights that had not landed yet have no arrival."""
    return flights.where(f"NOT ({statements.LATE_DAY})").selectExpr(*statements.without_late_arrivals(flights.columns))


def late_delivery(flights: DataFrame) -> DataFrame:
    """The late day, and the flights of the evening before, now complete."""
    return flights.where(f"({statements.LATE_DAY}) OR ({statements.IN_THE_AIR})")


def census(spark: SparkSession, table: str, columns: tuple[str, ...]) -> Census:
    """Count a table's rows and the values of each column in one job."""
    counted = spark.table(table).selectExpr("count(*)", *(f"count(`{column}`)" for column in columns)).collect()[0]
    return Census(rows=int(counted[0]), filled={name: int(n) for name, n in zip(columns, counted[1:], strict=True)})


def row_count(spark: SparkSession, table: str) -> int:
    """How many rows a table has."""
    return spark.table(table).count()


def _overwrite(data: DataFrame, table: str) -> None:
    """Replace all rows in one commit: a load that was cut short is repeated without doubling anything."""
    from pyspark.sql.functions import lit  # noqa: PLC0415

    data.writeTo(table).overwrite(lit(True))


def _merge(spark: SparkSession, *, into: str, key: tuple[str, ...]) -> Merged:
    """MERGE the view of late rows into a table; no commit at all when the table has every row of it already."""
    others = tuple(column for column in spark.table(into).columns if column not in key)
    inserted, corrected = spark.sql(statements.count_differences(into, key=key, others=others)).collect()[0]
    if inserted or corrected:
        spark.sql(statements.merge(into, key=key, others=others))
    return Merged(inserted=int(inserted), corrected=int(corrected), rows=row_count(spark, into))


_REMEDY = "Delete the demo's directory and run it again; if it stays so, it is a bug."
