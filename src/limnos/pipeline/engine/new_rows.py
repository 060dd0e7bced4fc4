# SPDX-License-Identifier: Apache-2.0
"""Rows of a query that come from new rows of its inputs, from the query's analyzed plan.

Filters, projections, unions, and joins with unchanged tables qualify: they process each new row by itself. Operators
that combine several rows do not. A branch of a UNION without new rows was written by an earlier run, so it is read as
empty. Must not know which inputs have new rows, or write modes: the caller names the temporary views with new rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame

from limnos.pipeline.engine.definitions import NOT_INSPECTED
from limnos.pipeline.engine.metadata import is_classic
from limnos.spark.gateway import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.spark.gateway import Java

_THROUGH = frozenset(
    {
        "Project",
        "Filter",
        "SubqueryAlias",
        "View",
        "Generate",
        "Sort",
        "CollectMetrics",
        "ResolvedHint",
        "RepartitionByExpression",
        "Repartition",
        "CTERelationDef",
        "PipeOperator",
    }
)
_LEFT = frozenset({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"})
_RIGHT = frozenset({"Inner", "Cross", "RightOuter"})
_MADE_BY_CODE = frozenset({"LogicalRDD", "LocalRelation", "ExternalRDD", "InMemoryRelation"})
"""Leaves without an input. In a Python step their rows may be computed from any input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """The rows of a query that come from new rows of its inputs. With `whole_because`, all inputs must be read in full,
    and `frame` is the query as it was.
    """

    frame: DataFrame
    whole_because: str | None = None


def new_rows(
    frame: DataFrame, *, views: frozenset[str], aliases: frozenset[str] = frozenset(), by_code: bool
) -> NewRows:
    """Return the rows of the query that come from new rows of its inputs.

    `views` are the names of the temporary views that have only new rows, and `aliases` the aliases of such DataFrames,
    which no query uses for others. `by_code`: a Python function made the query,
    so that rows without an input may be computed from one.
    """
    spark = frame.sparkSession
    if not is_classic(spark):
        return NewRows(frame=frame, whole_because=NOT_INSPECTED)
    reader = _PlanReader(spark, views=views, aliases=aliases, by_code=by_code)
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - plans are Spark's own
    try:
        read = reader.read(plan)
    except _NotIncremental as error:
        return NewRows(frame=frame, whole_because=str(error))
    if not read.has_new_rows:
        return NewRows(frame=frame, whole_because="no row of the query comes from an input with new rows")
    if not reader.has_empty_branches:
        return NewRows(frame=frame)
    dataset = java_class(spark._jvm, "org.apache.spark.sql.classic.Dataset")  # noqa: SLF001
    return NewRows(frame=DataFrame(dataset.ofRows(spark._jsparkSession, read.plan), spark))  # noqa: SLF001


class _NotIncremental(Exception):
    """Raised if the plan needs more than the new rows; the message names the part of the plan."""


class _ReadPlan(NamedTuple):
    """A node of a plan whose old branches of unions are empty, and whether it reads new rows."""

    plan: Java
    has_new_rows: bool


class _PlanReader:
    """Reads a plan from its root to its leaves. Raises _NotIncremental for a node that needs more than new rows."""

    def __init__(self, spark: SparkSession, *, views: frozenset[str], aliases: frozenset[str], by_code: bool) -> None:
        self.spark = spark
        self.views = frozenset(each.lower() for each in views)
        self.aliases = aliases
        self.by_code = by_code
        self.has_empty_branches = False
        self._common_tables: dict[int, bool] = {}
        """Whether a common table expression reads new rows, by its id."""

    def read(self, plan: Java) -> _ReadPlan:
        """Return the node without old branches of unions."""
        node = _kind(plan)
        if (node == "View" and self._is_view_of_new_rows(plan)) or (
            node == "SubqueryAlias" and str(plan.alias()) in self.aliases
        ):
            return _ReadPlan(plan, has_new_rows=True)
        if node == "CTERelationRef":
            return _ReadPlan(plan, has_new_rows=self._common_tables.get(plan.cteId(), False))
        for each in _each(plan.subqueries()):
            if self.read(each).has_new_rows:
                raise _NotIncremental("a subquery of the query reads a changed table")
        if node == "WithCTE":
            return self._with_common_tables(plan)
        children = [self.read(each) for each in _each(plan.children())]
        if not any(each.has_new_rows for each in children):
            return _ReadPlan(plan, has_new_rows=False)
        if node == "Union":
            children = [each if each.has_new_rows else self._empty(each.plan) for each in children]
        elif node == "Join":
            _require_join_of_new_rows(plan, left=children[0], right=children[1])
        elif node not in _THROUGH:
            raise _NotIncremental(f"the query has {_WORDS.get(node, node)}, which reads more than the new rows")
        return _ReadPlan(self._with_children(plan, children), has_new_rows=True)

    def _is_view_of_new_rows(self, view: Java) -> bool:
        """Return whether a node is one of the temporary views. An alias in the query may have the same name."""
        return bool(view.isTempView()) and str(view.desc().identifier().table()).lower() in self.views

    def _with_common_tables(self, plan: Java) -> _ReadPlan:
        tables = []
        for each in _each(plan.cteDefs()):
            tables.append(self.read(each))
            self._common_tables[each.id()] = tables[-1].has_new_rows
        read = self.read(plan.plan())
        return _ReadPlan(self._with_children(plan, [*tables, read]), has_new_rows=read.has_new_rows)

    def _empty(self, branch: Java) -> _ReadPlan:
        """Return a branch of a union without its rows, which an earlier run has written."""
        if self.by_code and _has_rows_made_by_code(branch):
            raise _NotIncremental(
                "the function unites rows of an input with rows that it made itself, which may come from any input"
            )
        self.has_empty_branches = True
        jvm = self.spark._jvm  # noqa: SLF001 - plans are Spark's own
        no_row = java_class(jvm, "org.apache.spark.sql.catalyst.expressions.Literal").FalseLiteral()
        node = java_class(jvm, "org.apache.spark.sql.catalyst.plans.logical.Filter")
        return _ReadPlan(node(no_row, branch), has_new_rows=False)

    def _with_children(self, plan: Java, children: Sequence[_ReadPlan]) -> Java:
        if not self.has_empty_branches:
            return plan
        nodes = [each.plan for each in children]
        utilities = java_class(self.spark._jvm, "org.apache.spark.api.python.PythonUtils")  # noqa: SLF001
        return plan.withNewChildren(utilities.toSeq(nodes))


def _require_join_of_new_rows(join: Java, *, left: _ReadPlan, right: _ReadPlan) -> None:
    """Require that new rows are on one side, and that they change no row derived from the other."""
    kind: str = join.joinType().toString()
    if left.has_new_rows and right.has_new_rows:
        raise _NotIncremental(
            "the query joins two inputs of which new rows are read: tables that have both changed, or files"
        )
    if kind not in (_LEFT if left.has_new_rows else _RIGHT):
        raise _NotIncremental(
            f"the query has a join ({kind}) by which new rows of one table change rows derived from the other"
        )


def _has_rows_made_by_code(plan: Java) -> bool:
    return _kind(plan) in _MADE_BY_CODE or any(_has_rows_made_by_code(each) for each in _each(plan.children()))


_WORDS = {
    "Aggregate": "an aggregate",
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT",
    "Window": "a window",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Sample": "TABLESAMPLE",
    "Pivot": "PIVOT",
    "UnionLoop": "a recursive common table expression",
}


def _kind(plan: Java) -> str:
    """Return the simple name of the node's Scala class, such as `Project`."""
    return str(plan.getClass().getSimpleName())


def _each(sequence: Java) -> Iterator[Java]:
    return (sequence.apply(index) for index in range(sequence.size()))
