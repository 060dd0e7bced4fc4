# SPDX-License-Identifier: Apache-2.0
"""Sources of a Spark plan: the tables, Lance tables, files and databases at its leaves.

Reads the JVM's analyzed plan. Must not know lineage events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from limnos.names import InvalidName, display
from limnos.spark.scala import scala_items

Java = Any
"""An object of the Java virtual machine. Python has no types for its members."""
LANCE: Final = "limnos.lance"
"""The data source of Lance tables, which is the name of its tables in plans."""
_RELATIONS: Final = frozenset({"DataSourceV2Relation", "DataSourceV2ScanRelation", "StreamingRelationV2"})
_REFERENCE = re.compile(r"(branch_|tag_|snapshot_id_|at_timestamp_).+")
"""A pattern for the last part of a name that selects a state of a table."""

_TOPIC = re.compile(r"strategy=Assign\[([A-Za-z0-9._-]+)-\d+")
"""The first partition of a relation of Kafka in its text, `topic-0`."""


class PlanSource(NamedTuple):
    """A table by its path, or an external dataset by its OpenLineage namespace and name."""

    table: tuple[str, ...] | None
    namespace: str = ""
    name: str = ""

    @property
    def is_lance(self) -> bool:
        """Whether it is a Lance table, which Spark knows as a data source and not as a table of a catalog."""
        return self.namespace == LANCE


def plan_leaves(plan: Java) -> Iterator[tuple[int, PlanSource]]:
    """Yield the sources of a plan's leaves, including subqueries, by the id of the leaf's first column."""
    for part in (plan, *scala_items(plan.subqueriesAll())):
        for leaf in scala_items(part.collectLeaves()):
            output = leaf.output()
            source = source_of_leaf(leaf) if output.nonEmpty() else None
            if source is not None:
                yield int(output.head().exprId().id()), source


def source_of_leaf(leaf: Java) -> PlanSource | None:
    """Return the source of a leaf; None for literal rows of the query, and for other kinds of leaves."""
    kind = str(leaf.getClass().getSimpleName())
    if kind in _RELATIONS:
        return _relation(leaf)
    if kind == "LogicalRelation":
        return _files_or_database(leaf.relation())
    if kind == "HiveTableRelation":
        return PlanSource(None, "hive", str(leaf.tableMeta().identifier().unquotedString()))
    return None


def file_source(url: str) -> PlanSource:
    """Return the OpenLineage name of files: `file` and the path, or the bucket's URI and the key."""
    parts = urlsplit(url)
    if parts.scheme in {"", "file"}:
        return PlanSource(None, "file", f"/{parts.path.lstrip('/')}")
    return PlanSource(None, f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/") or "/")


def _relation(leaf: Java) -> PlanSource | None:
    identifier, catalog = leaf.identifier(), leaf.catalog()
    if identifier.isEmpty() or catalog.isEmpty():
        return _lance_table(leaf)
    result = identifier.get()
    parts = (str(catalog.get().name()), *map(str, result.namespace()), str(result.name()))
    if len(parts) > 3 and _is_state(leaf.table(), parts):
        parts = parts[:-1]
    return PlanSource(parts)


def _lance_table(leaf: Java) -> PlanSource | None:
    if str(leaf.getClass().getSimpleName()) != "DataSourceV2Relation" or str(leaf.table().name()) != LANCE:
        return None
    path = leaf.options().get("path")
    try:
        return None if path is None else PlanSource(tuple(display.parse(str(path))), LANCE)
    except InvalidName:
        return None


def _is_state(table: Java, parts: Sequence[str]) -> bool:
    """Return whether the last of `parts` selects a branch, tag, snapshot or the changelog of the table that the other
    parts name.
    """
    if str(table.getClass().getSimpleName()) == "SparkChangelogTable":
        return True
    text = str(table.name())
    return _REFERENCE.fullmatch(parts[-1]) is not None and (text == parts[-2] or text.endswith(f".{parts[-2]}"))


def _files_or_database(relation: Java) -> PlanSource | None:
    kind = str(relation.getClass().getSimpleName())
    if kind == "HadoopFsRelation":
        roots = [str(path) for path in scala_items(relation.location().rootPaths())]
        return file_source(_common_directory(roots)) if roots else None
    if kind == "JDBCRelation":
        options = relation.jdbcOptions()
        return _database_source(str(options.url()), str(options.tableOrQuery()))
    return _topic_source(relation) if kind == "KafkaRelation" else None


def _topic_source(relation: Java) -> PlanSource | None:
    """Return the OpenLineage name of a topic: `kafka://` with the first broker, and the topic's name."""
    match = _TOPIC.search(str(relation.toString()))
    settings = relation.getClass().getDeclaredField("specifiedKafkaParams")
    settings.setAccessible(True)
    brokers = settings.get(relation).get("bootstrap.servers")
    if match is None or brokers.isEmpty():
        return None
    return PlanSource(None, f"kafka://{str(brokers.get()).partition(',')[0]}", match[1])


def _common_directory(roots: Sequence[str]) -> str:
    """Return the common directory of several files, or the single file."""
    if len(roots) == 1:
        return roots[0]
    split = [root.split("/") for root in roots]
    shared = [parts[0] for parts in zip(*split, strict=False) if len(set(parts)) == 1]
    return "/".join(shared)


def _database_source(url: str, table: str) -> PlanSource:
    """Return the OpenLineage name of a database's table, without user and password."""
    parts = urlsplit(url.removeprefix("jdbc:"))
    scheme = "postgres" if parts.scheme == "postgresql" else parts.scheme
    host = parts.netloc.rpartition("@")[2]
    database = parts.path.strip("/").partition(";")[0]
    return PlanSource(None, f"{scheme}://{host}", ".".join(part for part in (database, table) if part))
