"""What a step's rows come from: tables, files and columns, from the query's own analysed plan; and the event that says so.

May import this room's values, `client`, `names` and PySpark. It must not know how rows are written: a merge is analysed as the query
of its source, which is why nothing of it is lost (a listener only sees what became of the target). `report` is called when a
step's table was published.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from limnos import __version__
from limnos.client import ClientError
from limnos.names import InvalidName, display
from limnos.pipeline.engine.plan_columns import Origin, trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from limnos.client import Client
    from limnos.client.values import LineageTaken
    from limnos.pipeline.declaration import Parts

logger = logging.getLogger(__name__)

Java = Any
"""An object of the Java machine: its members are Java's, and no type of Python's says them."""
PRODUCER: Final = f"https://pypi.org/project/limnos/{__version__}"
_SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACET: Final = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
_RELATIONS: Final = frozenset({"DataSourceV2Relation", "DataSourceV2ScanRelation", "StreamingRelationV2"})
_REFERENCE = re.compile(r"(branch_|tag_|snapshot_id_|at_timestamp_).+")
"""The last part of a name that addresses a state of a table."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a step reads: a table by its path, or a place outside, named as OpenLineage does."""

    namespace: str
    name: str
    table: Parts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """What a query's rows come from. `columns` has each column's origins, `rows` what all rows were filtered, joined or grouped by."""

    inputs: tuple[Source, ...]
    columns: Mapping[str, tuple[Origin, ...]]
    rows: tuple[Origin, ...] = ()


def lineage_of(frame: DataFrame) -> Lineage:
    """Read where a frame's columns come from. Ask before the frame is staged: held rows have forgotten it.

    Over Spark Connect no plan is to be had: nothing is known then, and `of_tables` says what the declaration does.
    """
    executed = getattr(frame, "_jdf", None)
    if executed is None:
        return Lineage(inputs=(), columns={})
    plan: Java = executed.queryExecution().analyzed()
    traced = trace(json.loads(plan.toJSON()), dict(_leaves(plan)))
    inputs = tuple([each for each in traced.inputs if isinstance(each, Source)])
    columns = {
        name: tuple(sorted(found, key=_order)) for name, found in zip(frame.columns, traced.columns, strict=False)
    }
    return Lineage(inputs=inputs, columns=columns, rows=tuple(sorted(traced.rows, key=_order)))


def of_tables(tables: Iterable[Parts]) -> Lineage:
    """Say which tables a step reads, where nothing is known of columns."""
    return Lineage(inputs=tuple([_table(tuple(parts)) for parts in dict.fromkeys(tables)]), columns={})


def _order(origin: Origin) -> tuple[str, str, str, str, bool]:
    source = origin.source
    place = (source.namespace, source.name) if isinstance(source, Source) else ("", str(source))
    return (*place, origin.column, origin.subtype, origin.direct)


def _table(parts: Parts) -> Source:
    return Source("", display.render(parts), tuple(parts))


# ------------------------------------------------------------------------------------------------ leaves of the plan


def _leaves(plan: Java) -> Iterator[tuple[int, Source]]:
    """Name the leaves of a plan and of the queries inside its expressions, by the ids of their first columns."""
    for part in (plan, *_sequence(plan.subqueriesAll())):
        for leaf in _sequence(part.collectLeaves()):
            output = leaf.output()
            source = _source(leaf) if output.nonEmpty() else None
            if source is not None:
                yield int(output.head().exprId().id()), source


def _sequence(found: Java) -> Iterator[Java]:
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _source(leaf: Java) -> Source | None:
    """Say what a leaf reads; None for rows that stand in the query itself."""
    kind = str(leaf.getClass().getSimpleName())
    if kind in _RELATIONS:
        return _relation(leaf)
    if kind == "LogicalRelation":
        return _files_or_database(leaf.relation())
    if kind == "HiveTableRelation":
        return Source("hive", str(leaf.tableMeta().identifier().unquotedString()))
    return None


def _relation(leaf: Java) -> Source | None:
    identifier, catalog = leaf.identifier(), leaf.catalog()
    if identifier.isEmpty() or catalog.isEmpty():
        return None
    found = identifier.get()
    parts = (str(catalog.get().name()), *map(str, found.namespace()), str(found.name()))
    if _REFERENCE.fullmatch(parts[-1]) and len(parts) > 3 and _is_reference(leaf.table(), parts[-2]):
        parts = parts[:-1]
    return _table(parts)


def _is_reference(table: Java, name: str) -> bool:
    """Say whether a relation is a state of the table that the part before its last one names."""
    told = str(table.name())
    return told == name or told.endswith(f".{name}")


def _files_or_database(relation: Java) -> Source | None:
    kind = str(relation.getClass().getSimpleName())
    if kind == "HadoopFsRelation":
        roots = [str(path) for path in _sequence(relation.location().rootPaths())]
        return _place(_common(roots)) if roots else None
    if kind == "JDBCRelation":
        options = relation.jdbcOptions()
        return _database(str(options.url()), str(options.tableOrQuery()))
    return None


def _common(roots: Sequence[str]) -> str:
    """Return the directory that several files lie in, or the one file."""
    if len(roots) == 1:
        return roots[0]
    split = [root.split("/") for root in roots]
    shared = [parts[0] for parts in zip(*split, strict=False) if len(set(parts)) == 1]
    return "/".join(shared)


def _place(url: str) -> Source:
    """Name files as OpenLineage does: `file` and the path, or the bucket's address and the key."""
    parts = urlsplit(url)
    if parts.scheme in {"", "file"}:
        return Source("file", f"/{parts.path.lstrip('/')}")
    return Source(f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/") or "/")


def _database(url: str, table: str) -> Source:
    """Name a table of a database; who reads it, and with which password, is no part of the name."""
    parts = urlsplit(url.removeprefix("jdbc:"))
    scheme = "postgres" if parts.scheme == "postgresql" else parts.scheme
    host = parts.netloc.rpartition("@")[2]
    database = parts.path.strip("/").partition(";")[0]
    return Source(f"{scheme}://{host}", ".".join(part for part in (database, table) if part))


# ------------------------------------------------------------------------------------------------------- the event


def event(
    *, metalake: str, pipeline: str, run_id: str, step: str, target: Parts, lineage: Lineage, at: datetime | None = None
) -> dict[str, object]:
    """Build the OpenLineage event of a step: a run of its own within the pipeline's, with the columns of its table."""
    own = f"limnos://{metalake}"

    def named(source: Source) -> dict[str, object]:
        return {"namespace": own if source.table is not None else source.namespace, "name": source.name}

    def field(origin: Origin) -> dict[str, object]:
        how = {"type": "DIRECT" if origin.direct else "INDIRECT", "subtype": origin.subtype}
        source = named(origin.source) if isinstance(origin.source, Source) else {}
        return source | {"field": origin.column, "transformations": [{**how, "description": "", "masking": False}]}

    columns = {
        "_producer": PRODUCER, "_schemaURL": _FACET,
        "fields": {name: {"inputFields": [field(one) for one in found]} for name, found in lineage.columns.items() if found},
        "dataset": [field(one) for one in lineage.rows],
    }  # fmt: skip
    parent = {"run": {"runId": run_id}, "job": {"namespace": own, "name": pipeline}}
    return {
        "eventType": "COMPLETE", "eventTime": (at or datetime.now(UTC)).isoformat(), "producer": PRODUCER, "schemaURL": _SPEC,
        "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{own}/{run_id}/{step}")), "facets": {"parent": parent}},
        "job": {"namespace": own, "name": f"{pipeline}.{step}"},
        "inputs": [named(each) for each in lineage.inputs],
        "outputs": [{"namespace": own, "name": display.render(target), "facets": {"columnLineage": columns}}],
    }  # fmt: skip


def report(
    client: Client, *, pipeline: str, run_id: str, step: str, target: Parts, lineage: Lineage
) -> LineageTaken | None:
    """Tell the server what a published step's table comes from; returns what became of it, None where nothing was told.

    The table is published whatever becomes of this: a refusal or a server that is away is a word in the log.
    """
    if not lineage.inputs:
        return None
    metalake = client.lineage.scope.metalake
    try:
        return client.lineage.send(
            event(metalake=metalake, pipeline=pipeline, run_id=run_id, step=step, target=target, lineage=lineage)
        )
    except (ClientError, InvalidName) as error:
        logger.warning("the lineage of %s was not kept: %s", display.render(target), error)
        return None
