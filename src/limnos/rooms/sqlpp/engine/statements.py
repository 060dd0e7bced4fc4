# SPDX-License-Identifier: Apache-2.0
"""Executes one job, from its plan to its results.

Must not know the wire protocol. Supported operations are pushed down to Spark. The evaluator executes the others within
its budget. A statement that changes data yields its results (RETURNING) after its commit.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from limnos.rooms.sqlpp.engine import loading
from limnos.rooms.sqlpp.engine.compaction import compact_dataset
from limnos.rooms.sqlpp.engine.exporting import export_lines
from limnos.rooms.sqlpp.engine.failures import is_planner_bug, is_too_complex
from limnos.rooms.sqlpp.engine.object_checks import Object, ObjectChecker, check_objects
from limnos.rooms.sqlpp.engine.reading import look_up_objects, objects
from limnos.rooms.sqlpp.engine.relational import values_of
from limnos.rooms.sqlpp.engine.staging import is_large, staged_rows
from limnos.rooms.sqlpp.engine.tables import DatasetTable, table_of
from limnos.rooms.sqlpp.engine.writing import DatasetWriter
from limnos.rooms.sqlpp.language.binder import BoundQuery
from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.evaluator import Budget, results
from limnos.rooms.sqlpp.language.field_types import with_field_types
from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.inference.field_order import with_known_fields_first
from limnos.rooms.sqlpp.language.jobs import form_of, type_of
from limnos.rooms.sqlpp.language.lookups import SCANS_MAX, lookup_in
from limnos.rooms.sqlpp.language.plan import Scan, Subquery
from limnos.rooms.sqlpp.language.plan.traversal import walk
from limnos.rooms.sqlpp.language.relations import UntranslatableExpression, translate_query
from limnos.rooms.sqlpp.language.result_text import tagged_line
from limnos.rooms.sqlpp.language.scans import prepare_scans
from limnos.rooms.sqlpp.language.stored import object_shaper
from limnos.rooms.sqlpp.language.values.model import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

    from limnos.rooms.sqlpp.language.jobs import DatasetRef, EngineJob
    from limnos.rooms.sqlpp.language.lookups import Lookup
    from limnos.rooms.sqlpp.language.plan import Expression
    from limnos.rooms.sqlpp.language.relations import RelationalQuery
    from limnos.rooms.sqlpp.language.scans import ScanRequirement
    from limnos.rooms.sqlpp.language.stored import RecordType

logger = logging.getLogger(__name__)


def run_job(
    spark: SparkSession, job: EngineJob, *, parts: int, stop: Callable[[], None], budget: Budget | None = None
) -> Iterator[str]:
    """Execute a job and yield its results, each as JSON. An export yields the lines of `exporting`.

    Args:
        spark: The session of the statement.
        job: The plan.
        parts: The number of tasks that read a dataset concurrently.
        stop: Raises if the job has been cancelled or timed out.
        budget: Limits the evaluator's work and collects its warnings; None for a default budget.

    Raises:
        SqlppError: The statement failed.
        WriteConflict: Repeated conflicts with the commits of other writers.
        Exception: Errors of Spark, which `failures` converts.
    """
    if job.kind == "compact" and job.target is not None and job.compaction is not None:
        return compact_dataset(spark, job.target, options=job.compaction, number=job.id, stop=stop)
    work = _JobRun(spark, job, parts=parts, stop=stop, budget=budget or Budget(stop=stop))
    if job.export is not None:
        return export_lines(work.query(), job.export, budget=work.budget)
    return map(tagged_line if job.tagged else json_text, work.query() if job.kind == "query" else work.change())


class _JobRun:
    """The execution of one job, with the session, tables and budget that its steps share."""

    def __init__(
        self, spark: SparkSession, job: EngineJob, *, parts: int, stop: Callable[[], None], budget: Budget
    ) -> None:
        self._spark = spark
        self._job = job
        self._parts = parts
        self._stop = stop
        self.budget = budget
        self._tables: dict[tuple[str, ...], DatasetTable] = {}

    def query(self) -> Iterator[Value]:
        """Yield the results of a query; for an expression, its value."""
        return self._evaluate(self._job.expression, slots=self._job.slots)

    def change(self) -> Iterator[Value]:
        """Change the target dataset, then yield the results of RETURNING.

        Raises SqlppError for a job without a target.
        """
        if self._job.target is None:
            raise compilation("A statement that changes data needs a dataset")
        table = self._table(self._job.target)
        if self._job.kind in ("load", "copy") and is_large(self._job.source):
            with staged_rows(self._job.source, table.form, stop=self._stop) as staged:
                DatasetWriter(self._spark, table, stop=self._stop).load(staged, replaces=self._job.kind == "copy")
            return
        checker = ObjectChecker(table.form, from_file=self._job.kind in ("load", "copy"))
        objects_ = self._objects(checker)
        returns = self._job.returns
        # Evaluate RETURNING first: an error in it leaves the dataset unchanged.
        returned = [] if returns is None else list(self._evaluate_returning(returns, objects_))
        writer = DatasetWriter(self._spark, table, stop=self._stop)
        changes = {"delete": writer.delete, "update": writer.update}
        if not checker.has_new_keys:
            changes |= {"upsert": writer.upsert, "copy": writer.upsert}
        if self._job.kind in changes:
            changes[self._job.kind](objects_)
        else:
            writer.insert(objects_, has_new_keys=checker.has_new_keys)
        yield from returned

    def _objects(self, checker: ObjectChecker) -> list[Object]:
        """Evaluate and check all objects to write, or evaluate those to delete."""
        kind, form = self._job.kind, checker.form
        if kind == "delete":
            keys = frozenset(path[0] for path in form.keys)
            requested_names = None if self._job.returning else keys
            return [
                one for one in self._count_values(self._source(result_fields=requested_names)) if isinstance(one, dict)
            ]
        if kind in ("load", "copy"):
            loaded = loading.read_objects(self._job.source, form)
            return check_objects(checker, self._count_values(loaded), replaces=kind == "copy")
        return check_objects(checker, self._count_values(self._source()), replaces=kind in ("upsert", "update"))

    def _source(self, *, result_fields: frozenset[str] | None = None) -> Iterator[Value]:
        """Yield the source objects of INSERT, UPSERT, UPDATE and DELETE: the items of a collection, or the single
        value.
        """
        expression = self._job.expression
        result = self._evaluate(expression, slots=self._job.slots, result_fields=result_fields)
        if isinstance(expression, Subquery):
            yield from result
            return
        for value in result:
            elements = items(value)
            yield from (value,) if elements is None else elements

    def _count_values(self, values: Iterable[Value]) -> Iterator[Value]:
        for value in values:
            self.budget.keep()
            yield value

    def _evaluate_returning(self, returns: Expression, written: list[Object]) -> Iterator[Value]:
        if not self._job.ordered_fields and self._job.target is not None and self._job.target.type:
            record = type_of(self._job.target.type)
            returns = with_known_fields_first(returns, {}, variables={0: record})
        for one in written:
            bound = BoundQuery(returns, self._job.returning_slots, ())
            yield from results(bound, self._refuse_dataset, budget=self.budget, arguments={0: one})

    def _refuse_dataset(self, _dataverse: tuple[str, ...], _name: str) -> Iterable[Value]:
        raise compilation("A returning expression cannot contain dataset access")

    def _evaluate(
        self, expression: Expression, *, slots: int, result_fields: frozenset[str] | None = None
    ) -> Iterator[Value]:
        types = {(ref.dataverse, ref.name): type_of(ref.type) for ref in self._job.reads if ref.type}
        expression = with_field_types(expression, types)
        if not self._job.ordered_fields:
            expression = with_known_fields_first(expression, types)
        result = self._lookup_results(expression, slots=slots, result_fields=result_fields) or self._translated_results(
            expression, result_fields
        )
        if result is not None:
            return result
        return self._evaluate_in_parts(
            *prepare_scans(expression, result_fields=result_fields, types=self._type), slots=slots
        )

    def _evaluate_in_parts(
        self, changed: Expression, requirements: tuple[ScanRequirement, ...], *, slots: int
    ) -> Iterator[Value]:
        """Yield the results of a statement that the evaluator executes over scans by Spark."""
        bound = BoundQuery(changed, slots, ())
        return results(bound, lambda _, number: self._read(requirements[int(number)], slots), budget=self.budget)

    def _lookup_results(
        self, expression: Expression, *, slots: int, result_fields: frozenset[str] | None
    ) -> Iterator[Value] | None:
        """Return the results of a statement whose scans are all key or index lookups, read without a Spark job; None
        for others.
        """
        if sum(isinstance(node, Scan) for node in walk(expression)) not in range(1, SCANS_MAX + 1):
            return None
        changed_expression, requirements = prepare_scans(expression, result_fields=result_fields)
        lookups = [pair for one in requirements if (pair := self._lookup(one)) is not None]
        if len(lookups) < len(requirements):
            return None
        result: list[list[Value]] = []
        for table, lookup in lookups:
            elements = look_up_objects(self._spark, table, lookup=lookup)
            if elements is None:
                return None
            result.append(elements)
        return results(
            BoundQuery(changed_expression, slots, ()), lambda _, number: result[int(number)], budget=self.budget
        )

    def _lookup(self, requirement: ScanRequirement) -> tuple[DatasetTable, Lookup] | None:
        """Return the table and the lookup of a scan; None for an external dataset, and if its conditions do not fix a
        key or the first field of an index.
        """
        ref = self._ref(requirement.dataverse, requirement.name)
        if ref.files is not None:
            return None
        table = self._table(ref)
        lookup = lookup_in(table.form, requirement.conditions, indexes=ref.indexes)
        return None if lookup is None else (table, lookup)

    def _translated_results(
        self, expression: Expression, result_fields: frozenset[str] | None
    ) -> Iterator[Value] | None:
        """Return the results of a query that Spark executes as a whole; None if it cannot be translated or planned."""
        if not isinstance(expression, Subquery):
            return None
        try:
            query = translate_query(expression.query, self._type, fields=result_fields)
        except UntranslatableExpression as reason:
            logger.debug("Job %s is not translated to Spark SQL as a whole: %s", self._job.id, reason)
            return None
        return self._execute_by_spark(query)

    def _execute_by_spark(self, query: RelationalQuery) -> Iterator[Value] | None:
        """Return the results of a translated query; None if Spark cannot plan it although it is valid.

        Raises Spark's other errors.
        """
        try:
            return values_of(self._spark, query, tables=self._find_table, parts=self._parts)
        except Exception as error:
            if not (is_too_complex(error) or is_planner_bug(error)):
                raise
            logger.info("Spark cannot plan job %s: the evaluator executes it", self._job.id)
            return None

    def _read(self, requirement: ScanRequirement, slots: int) -> Iterable[Value]:
        self._stop()
        if requirement.carried is not None and requirement.query is not None:
            by_spark = self._execute_by_spark(requirement.carried)
            return (
                self._evaluate_in_parts(*prepare_scans(requirement.query), slots=slots)
                if by_spark is None
                else by_spark
            )
        ref = self._ref(requirement.dataverse, requirement.name)
        if ref.files is not None:
            return map(object_shaper(form_of(ref), lenient=True), loading.read_files(ref.files, form_of(ref)))
        return objects(self._spark, self._table(ref), requirement=requirement, parts=self._parts)

    def _type(self, dataverse: tuple[str, ...], name: str) -> RecordType | None:
        """Return the record type of a dataset's columns; None for an external dataset, which has files."""
        ref = self._ref(dataverse, name)
        return self._table(ref).form.type if ref.files is None else None

    def _find_table(self, dataverse: tuple[str, ...], name: str) -> DatasetTable:
        return self._table(self._ref(dataverse, name))

    def _ref(self, dataverse: tuple[str, ...], name: str) -> DatasetRef:
        for ref in self._job.reads:
            if (ref.dataverse, ref.name) == (dataverse, name):
                return ref
        raise compilation(f"The statement reads a dataset {name} that its access decision does not include")

    def _table(self, ref: DatasetRef) -> DatasetTable:
        """Return a dataset's table, at the same snapshot for the whole statement. Raises SqlppError as `table_of`."""
        if ref.path not in self._tables:
            self._tables[ref.path] = table_of(self._spark, ref)
        return self._tables[ref.path]
