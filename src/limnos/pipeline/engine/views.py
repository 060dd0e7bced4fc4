# SPDX-License-Identifier: Apache-2.0
"""Definitions of views: the query, and the catalog and namespace of its unqualified names.

Loads a view from the session's catalogs. Must not know the use of the query. Over Spark Connect only the CREATE VIEW
statement is available. It lacks the default catalog, and leaves special column names unquoted; a view that depends on
either raises an error there.
"""

from __future__ import annotations

from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from limnos.names import engine
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.metadata import is_classic
from limnos.pipeline.engine.parser import grammar_of

_PLACE = "View Catalog and Namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDefinition:
    """A view: its query, its column names, and the default catalog and namespace of names in the query."""

    sql: str
    columns: tuple[str, ...]
    selected_columns: tuple[str, ...]
    """The columns of the query that the view selects, in order; empty for all."""
    catalog: str | None
    """The default catalog of unqualified names; None if unknown."""
    namespace: Parts = ()


def view_of(spark: SparkSession, name: Parts) -> ViewDefinition | None:
    """Return the view of that name; None if it does not exist or is not a view."""
    return _from_catalog(spark, name) if is_classic(spark) else _from_statement(spark, name)


def _from_catalog(spark: SparkSession, name: Parts) -> ViewDefinition | None:
    machine = spark._jvm  # noqa: SLF001 - catalogs are Spark's own
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    if machine is None or gateway is None:
        return None
    levels = gateway.new_array(machine.java.lang.String, len(name) - 2)
    for index, level in enumerate(name[1:-1]):
        levels[index] = level
    identifier = machine.org.apache.spark.sql.connector.catalog.Identifier.of(levels, name[-1])
    try:
        catalog = spark._jsparkSession.sessionState().catalogManager().catalog(name[0])  # noqa: SLF001
        view = catalog.loadView(identifier)
    except (AnalysisException, Py4JError):
        return None
    schema = view.schema().fields()
    return ViewDefinition(
        sql=view.query(),
        columns=tuple(each.name() for each in schema),
        selected_columns=tuple(view.queryColumnNames()),
        catalog=view.currentCatalog() or name[0],
        namespace=tuple(view.currentNamespace()),
    )


def _from_statement(spark: SparkSession, name: Parts) -> ViewDefinition | None:
    text = engine.render_spark(name)
    try:
        entries = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {text}").collect()}
        statement = spark.sql(f"SHOW CREATE TABLE {text}").collect()[0][0]
    except AnalysisException:
        return None
    if _PLACE not in entries:
        return None
    return ViewDefinition(
        sql=_query(spark, statement), columns=tuple(spark.table(text).columns), selected_columns=(), catalog=None
    )


def _query(spark: SparkSession, statement: str) -> str:
    """Return the query in a CREATE VIEW statement. The grammar finds it, because comments may contain anything."""
    query = grammar_of(spark).tree(statement).root.statement().query()
    return statement[query.getStart().getStartIndex() : query.getStop().getStopIndex() + 1]
