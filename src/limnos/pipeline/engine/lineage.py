"""Lineage of a step's rows (tables, files, columns) from the query's analyzed plan.

May import `pipeline` and PySpark. Must not know write modes. A merge is analyzed as the query of its source, so no
lineage is lost; a Spark listener would see only the target.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from limnos.pipeline.engine.naming import BAD, FILE
from limnos.pipeline.engine.plan_columns import ColumnOrigin, trace
from limnos.pipeline.lineage import LineageSource, QueryLineage, table_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

Java = Any
"""An object of the Java virtual machine. Python has no types for its members."""
_RELATIONS: Final = frozenset({"DataSourceV2Relation", "DataSourceV2ScanRelation", "StreamingRelationV2"})
_HELPERS: Final = frozenset(
    {BAD, FILE, "_change_type", "_change_ordinal", "_commit_snapshot_id", "_last_updated_sequence_number"}
)
"""Columns that identify malformed rows of a file, and those by which an increment selects its rows."""
_REFERENCE = re.compile(r"(branch_|tag_|snapshot_id_|at_timestamp_).+")
"""A pattern for the last part of a name that selects a state of a table."""


def lineage_of(frame: DataFrame, *, file_roots: Iterable[str] = ()) -> QueryLineage:
    """Return the origins of a DataFrame's columns. Call it before the rows are staged, because staged rows have no
    plan.

    A file below one of `file_roots` stands for this root: a run that reads only the new files of a pattern has the same
    source as the run before. Over Spark Connect no plan is available, so the result is empty; then use
    `lineage_of_tables`.
    """
    executed = getattr(frame, "_jdf", None)
    if executed is None:
        return QueryLineage(inputs=(), columns={})
    plan: Java = executed.queryExecution().analyzed()
    roots = sorted((_file_source(root) for root in file_roots), key=lambda root: -len(root.name))
    leaves = {number: _root_of(source, roots) for number, source in _leaves(plan)}
    traced = trace(json.loads(plan.toJSON()), leaves)
    inputs = tuple([each for each in traced.inputs if isinstance(each, LineageSource)])
    columns = {
        name: _without_helper_columns(origins) for name, origins in zip(frame.columns, traced.columns, strict=False)
    }
    return QueryLineage(inputs=inputs, columns=columns, rows=_without_helper_columns(traced.rows))


def _without_helper_columns(origins: Iterable[ColumnOrigin]) -> tuple[ColumnOrigin, ...]:
    return tuple(sorted([each for each in origins if each.column not in _HELPERS], key=_order))


def _order(origin: ColumnOrigin) -> tuple[str, str, str, str, bool]:
    source = origin.source
    place = (source.namespace, source.name) if isinstance(source, LineageSource) else ("", str(source))
    return (*place, origin.column, origin.subtype, origin.direct)


# ------------------------------------------------------------------------------------------------ leaves of the plan


def _leaves(plan: Java) -> Iterator[tuple[int, LineageSource]]:
    """Return the sources of a plan's leaves, including subqueries, by the id of the leaf's first column."""
    for part in (plan, *_sequence(plan.subqueriesAll())):
        for leaf in _sequence(part.collectLeaves()):
            output = leaf.output()
            source = _source(leaf) if output.nonEmpty() else None
            if source is not None:
                yield int(output.head().exprId().id()), source


def _sequence(result: Java) -> Iterator[Java]:
    iterator = result.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _source(leaf: Java) -> LineageSource | None:
    """Return the source of a leaf; None for literal rows of the query, and for other kinds of leaves."""
    kind = str(leaf.getClass().getSimpleName())
    if kind in _RELATIONS:
        return _relation(leaf)
    if kind == "LogicalRelation":
        return _files_or_database(leaf.relation())
    if kind == "HiveTableRelation":
        return LineageSource("hive", str(leaf.tableMeta().identifier().unquotedString()))
    return None


def _relation(leaf: Java) -> LineageSource | None:
    identifier, catalog = leaf.identifier(), leaf.catalog()
    if identifier.isEmpty() or catalog.isEmpty():
        return None
    result = identifier.get()
    parts = (str(catalog.get().name()), *map(str, result.namespace()), str(result.name()))
    if len(parts) > 3 and _is_state(leaf.table(), parts):
        parts = parts[:-1]
    return table_source(parts)


def _is_state(table: Java, parts: Sequence[str]) -> bool:
    """Return whether the last of `parts` selects a branch, tag, snapshot or the changelog of the table that the other
    parts name.
    """
    if str(table.getClass().getSimpleName()) == "SparkChangelogTable":
        return True
    text = str(table.name())
    return _REFERENCE.fullmatch(parts[-1]) is not None and (text == parts[-2] or text.endswith(f".{parts[-2]}"))


def _files_or_database(relation: Java) -> LineageSource | None:
    kind = str(relation.getClass().getSimpleName())
    if kind == "HadoopFsRelation":
        roots = [str(path) for path in _sequence(relation.location().rootPaths())]
        return _file_source(_common_directory(roots)) if roots else None
    if kind == "JDBCRelation":
        options = relation.jdbcOptions()
        return _database_source(str(options.url()), str(options.tableOrQuery()))
    return None


def _common_directory(roots: Sequence[str]) -> str:
    """Return the common directory of several files, or the single file."""
    if len(roots) == 1:
        return roots[0]
    split = [root.split("/") for root in roots]
    shared = [parts[0] for parts in zip(*split, strict=False) if len(set(parts)) == 1]
    return "/".join(shared)


def _root_of(source: LineageSource, roots: Iterable[LineageSource]) -> LineageSource:
    """Return the first root that a file is below; the source itself if there is none."""
    above = (
        root
        for root in roots
        if source.namespace == root.namespace and source.name.startswith(f"{root.name.rstrip('/')}/")
    )
    return source if source.table else next(above, source)


def _file_source(url: str) -> LineageSource:
    """Return the OpenLineage name of files: `file` and the path, or the bucket's URI and the key."""
    parts = urlsplit(url)
    if parts.scheme in {"", "file"}:
        return LineageSource("file", f"/{parts.path.lstrip('/')}")
    return LineageSource(f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/") or "/")


def _database_source(url: str, table: str) -> LineageSource:
    """Return the OpenLineage name of a database's table, without user and password."""
    parts = urlsplit(url.removeprefix("jdbc:"))
    scheme = "postgres" if parts.scheme == "postgresql" else parts.scheme
    host = parts.netloc.rpartition("@")[2]
    database = parts.path.strip("/").partition(";")[0]
    return LineageSource(f"{scheme}://{host}", ".".join(part for part in (database, table) if part))
