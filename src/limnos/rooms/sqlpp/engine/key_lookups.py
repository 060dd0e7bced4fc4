# SPDX-License-Identifier: Apache-2.0
"""Executes queries that look up a few objects by keys or indexes, without Spark.

Must not know the wire protocol. A lookup needs only the server and the tables' files, so it runs before Spark has
started. For any other query the result is None, and Spark executes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from limnos.rooms.sqlpp.engine.parquet_lookups import UnsupportedFile, read_rows
from limnos.rooms.sqlpp.engine.table_files import TableClient, TableSnapshot, files_of
from limnos.rooms.sqlpp.language.binder import BoundQuery
from limnos.rooms.sqlpp.language.evaluator import Budget, results
from limnos.rooms.sqlpp.language.field_types import with_field_types
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.inference.field_order import with_known_fields_first
from limnos.rooms.sqlpp.language.jobs import form_of, type_of
from limnos.rooms.sqlpp.language.lookups import SCANS_MAX, lookup_in
from limnos.rooms.sqlpp.language.plan import Scan
from limnos.rooms.sqlpp.language.plan.traversal import walk
from limnos.rooms.sqlpp.language.result_text import tagged_line
from limnos.rooms.sqlpp.language.scans import ScanRequirement, prepare_scans
from limnos.rooms.sqlpp.language.stored import to_object
from limnos.rooms.sqlpp.language.values.model import Value

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.language.jobs import EngineJob

logger = logging.getLogger(__name__)
INDEXED_MAX: Final = 64
"""The maximum number of objects that an index lookup reads here."""


def look_up(job: EngineJob, client: TableClient, *, budget: Budget) -> Iterator[str] | None:
    """Return the results of a query that only looks up objects, each as JSON; None for another job, and if a table is
    not supported or a lookup would read too much.

    The iterator raises SqlppError if the query fails.
    """
    if job.kind != "query" or job.export is not None:
        return None
    types = {(ref.dataverse, ref.name): type_of(ref.type) for ref in job.reads if ref.type}
    expression = with_field_types(job.expression, types)
    if not job.ordered_fields:
        expression = with_known_fields_first(expression, types)
    if sum(isinstance(node, Scan) for node in walk(expression)) not in range(1, SCANS_MAX + 1):
        return None
    changed_expression, requirements = prepare_scans(expression)
    matches = _Lookups(job, client).of(requirements)
    if matches is None:
        return None
    values = results(
        BoundQuery(changed_expression, job.slots, ()), lambda _, number: matches[int(number)], budget=budget
    )
    return map(tagged_line if job.tagged else json_text, values)


class _Lookups:
    """The lookups of one job; each table is read at one snapshot."""

    def __init__(self, job: EngineJob, client: TableClient) -> None:
        self._job = job
        self._client = client
        self._tables: dict[tuple[str, ...], TableSnapshot] = {}

    def of(self, requirements: tuple[ScanRequirement, ...]) -> list[list[Value]] | None:
        """Return the objects of each scan; None if a scan is not a lookup, or if its table is not supported."""
        result = []
        try:
            for one in requirements:
                objects = self._objects(one)
                if objects is None:
                    return None
                result.append(objects)
        except UnsupportedFile as reason:
            logger.debug("Job %s is not looked up: %s", self._job.id, reason)
            return None
        return result

    def _objects(self, requirement: ScanRequirement) -> list[Value] | None:
        dataset = (requirement.dataverse, requirement.name)
        ref = next((one for one in self._job.reads if (one.dataverse, one.name) == dataset), None)
        if ref is None or ref.files is not None or not ref.type:
            return None
        form = form_of(ref)
        lookup = lookup_in(form, requirement.conditions, indexes=ref.indexes)
        if lookup is None:
            return None
        if ref.path not in self._tables:
            self._tables[ref.path] = self._client.load(ref, self._job.credential)
        table = self._tables[ref.path]
        most = None if lookup.by is None else INDEXED_MAX
        rows = read_rows(files_of(table, [lookup.conditions]), table.schema, keys=[lookup.conditions], most=most)
        make = to_object(form)
        return None if rows is None else [make(one.row) for one in rows]
