# SPDX-License-Identifier: Apache-2.0
"""Lineage: edges between objects, or external datasets, and pairs of columns, by job.

Must not know rights. Rows refer to ids of nodes and of Iceberg fields, so renames and moves do not change them. No
decision and no cache depends on these rows, so none leaves a change row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from limnos.store.objects.trash import FOLLOWED
from limnos.store.sql import Load, Params, Row, Sql
from limnos.store.transaction import Writes

EVERY_FIELD: Final = 0
"""A target's field id that means all of its columns. Iceberg's ids begin with 1."""
UNKNOWN_FIELD: Final = -1
"""A field id that means unknown: the column's name identifies it."""
JOBS_MAX: Final = 100
"""The maximum number of jobs whose edges into one target are stored: the latest ones."""
SOURCES_MAX: Final = 2_000
"""The maximum number of sources that are stored per job and target: those reported last."""
EXPORTS_MAX: Final = 1_000
"""The maximum number of edges that are stored from one object to external datasets.

Every user who may load the object may report one.
"""
COLUMNS_MAX: Final = 20_000
"""The maximum number of pairs of columns that are stored per job and target."""


class LineageJobRow(NamedTuple):
    """The job and the run that reported an edge. `at` is the event's own time, in milliseconds since 1970."""

    namespace: str
    name: str
    run: str
    parent: str
    at: int

    @property
    def digest(self) -> bytes:
        """A hash of the job's namespace and name: the job's key in the tables of lineage."""
        return _digest(self.namespace, self.name)


class LineageField(NamedTuple):
    """A column: its field id (or `EVERY_FIELD`, or `UNKNOWN_FIELD`), and the name under which the job reported it."""

    id: int
    name: str


class LineagePair(NamedTuple):
    """A column of the target that is derived from a column of a source."""

    source_id: int
    target: LineageField
    source: LineageField
    subtype: str
    direct: bool


class LineageEdgeRow(NamedTuple):
    """An edge from a source to a target, as a job reported it. `said_by` is the user who sent the report."""

    target_id: int
    source_id: int
    job: LineageJobRow
    said_by: str
    reported_at: int
    kinds: tuple[str, ...]


class ColumnEdge(NamedTuple):
    """A pair of source and target columns, with the edge between their objects."""

    edge: LineageEdgeRow
    pair: LineagePair


class ExternalDataset(NamedTuple):
    """A dataset outside of the metalake, by its OpenLineage namespace and name."""

    namespace: str
    name: str


def _digest(*parts: str) -> bytes:
    """Return a hash of some strings as a key, since the strings may be longer than an index accepts."""
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


def _ids(name: str) -> tuple[str, str]:
    return (
        f"SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST({name} AS json)) v",
        f"SELECT value FROM json_each({name})",
    )


def _ids_statement(text: str) -> Sql:
    """Build a statement for both backends; `{ids}` in `text` becomes the subselect over the parameter `ids`."""
    common, sqlite = _ids(":ids")
    return Sql(text.replace("{ids}", common), on_sqlite=text.replace("{ids}", sqlite))


_EDGE = "e.target_id, e.source_id, e.job_namespace, e.job_name, e.run, e.parent, e.at, e.said_by, e.said_at, e.kinds"
_WIDTH: Final = 10
_ORDER = "ORDER BY e.target_id, e.source_id, e.at DESC, e.job_digest LIMIT :limit"
UP = _ids_statement(f"SELECT {_EDGE} FROM lineage_edge e WHERE e.target_id IN ({{ids}}) {_ORDER}")
DOWN = _ids_statement(f"SELECT {_EDGE} FROM lineage_edge e WHERE e.source_id IN ({{ids}}) {_ORDER}")
_PAIR = "c.source_id, c.target_field_id, c.target_field, c.source_field_id, c.source_field, c.subtype, c.direct"
_JOIN = "JOIN lineage_edge e ON e.target_id = c.target_id AND e.job_digest = c.job_digest AND e.source_id = c.source_id"
_COLUMNS_WANTED = (
    "SELECT CAST(w.value ->> 0 AS bigint) AS id, CAST(w.value ->> 1 AS bigint) AS field_id, w.value ->> 2 AS field"
    " FROM jsonb_array_elements(CAST(:fields AS jsonb)) w"
)
_COLUMNS_WANTED_SQLITE = (
    "SELECT json_extract(w.value, '$[0]') AS id, json_extract(w.value, '$[1]') AS field_id,"
    " json_extract(w.value, '$[2]') AS field FROM json_each(:fields) w"
)
_COLUMNS_ORDER = "ORDER BY e.target_id, e.source_id, c.job_digest, c.ordinal LIMIT :limit"


def _columns(end: str, other: str) -> Sql:
    """Build the query for the column pairs whose `end` ("source" or "target") is one of the given columns."""
    fits = f"(c.{end}_field_id = w.field_id OR (c.{end}_field_id = {UNKNOWN_FIELD} AND c.{end}_field = w.field){other})"
    text = (
        f"SELECT {_EDGE}, {_PAIR} FROM ({{wanted}}) w JOIN lineage_column c ON c.{end}_id = w.id AND {fits} {_JOIN}"
        f" {_COLUMNS_ORDER}"
    )
    return Sql(text.replace("{wanted}", _COLUMNS_WANTED), on_sqlite=text.replace("{wanted}", _COLUMNS_WANTED_SQLITE))


COLUMNS_UP = _columns("target", f" OR c.target_field_id = {EVERY_FIELD}")
COLUMNS_DOWN = _columns("source", "")
EXTERNAL_DATASETS = _ids_statement("SELECT id, namespace, name FROM lineage_dataset WHERE id IN ({ids})")
_AT = "SELECT node_id, location FROM document WHERE location IN ({places})"
AT = Sql(
    _AT.replace("{places}", "SELECT json_array_elements_text(CAST(:places AS json))"),
    on_sqlite=_AT.replace("{places}", "SELECT value FROM json_each(:places)"),
)
_OF_JOB = "target_id = :target AND job_digest = :job"
LAST = Sql(f"SELECT parent, at, source_id, kinds FROM lineage_edge WHERE {_OF_JOB} ORDER BY at DESC")
PUT = Sql(
    "INSERT INTO lineage_edge (target_id, job_digest, source_id, job_namespace, job_name, run, parent, at, said_by,"
    " said_at, kinds) VALUES (:target, :job, :source, :job_namespace, :job_name, :run, :parent, :at, :said_by,"
    " :said_at, :kinds) ON CONFLICT (target_id, job_digest, source_id) DO UPDATE SET run = excluded.run, parent ="
    " excluded.parent, at = excluded.at, said_by = excluded.said_by, said_at = excluded.said_at, kinds = excluded.kinds"
)
FORGET_EDGES = Sql(f"DELETE FROM lineage_edge WHERE {_OF_JOB}")
FORGET_COLUMNS = Sql(f"DELETE FROM lineage_column WHERE {_OF_JOB}")
PAIRS = Sql(f"SELECT {_PAIR}, c.ordinal FROM lineage_column c WHERE {_OF_JOB} ORDER BY ordinal")
PUT_PAIR = Sql(
    "INSERT INTO lineage_column (target_id, job_digest, ordinal, source_id, target_field_id, target_field,"
    " source_field_id, source_field, subtype, direct) VALUES (:target, :job, :ordinal, :source, :target_field_id,"
    " :target_field, :source_field_id, :source_field, :subtype, :direct)"
)
OLDEST = Sql(f"SELECT source_id FROM lineage_edge WHERE {_OF_JOB} ORDER BY at DESC, source_id LIMIT 10000 OFFSET :most")
FORGET_EDGE = Sql(f"DELETE FROM lineage_edge WHERE {_OF_JOB} AND source_id = :source")
FORGET_PAIRS = Sql(f"DELETE FROM lineage_column WHERE {_OF_JOB} AND source_id = :source")
EXPORTS = Sql(
    "SELECT e.target_id, e.job_digest FROM lineage_edge e JOIN lineage_dataset d ON d.id = e.target_id"
    " WHERE e.source_id = :source ORDER BY e.at DESC, e.target_id LIMIT 1000 OFFSET :most"
)
JOBS = Sql(
    "SELECT job_digest FROM lineage_edge WHERE target_id = :target GROUP BY job_digest"
    " ORDER BY max(at) DESC, job_digest LIMIT 1000 OFFSET :most"
)
FIND_EXTERNAL_DATASET = Sql("SELECT id FROM lineage_dataset WHERE metalake_id = :metalake AND digest = :digest")
INSERT_EXTERNAL_DATASET = Sql(
    "INSERT INTO lineage_dataset (id, metalake_id, digest, namespace, name) VALUES (:id, :metalake, :digest,"
    " :namespace, :name) ON CONFLICT DO NOTHING"
)


def _orphan_condition(column: str) -> str:
    """Return the SQL condition that the id in `column` is neither a live node, a node in the trash nor an external
    dataset.
    """
    return (
        f"NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {column} AND n.deleted = 0) AND NOT {FOLLOWED.format(column)}"
        f" AND NOT EXISTS (SELECT 1 FROM lineage_dataset d WHERE d.id = {column})"
    )


SWEEP_EDGES = Sql(
    f"DELETE FROM lineage_edge WHERE ({_orphan_condition('lineage_edge.target_id')}) OR"
    f" ({_orphan_condition('lineage_edge.source_id')})"
)
SWEEP_COLUMNS = Sql(
    "DELETE FROM lineage_column WHERE NOT EXISTS (SELECT 1 FROM lineage_edge e WHERE e.target_id ="
    " lineage_column.target_id AND e.job_digest = lineage_column.job_digest AND e.source_id = lineage_column.source_id)"
)
SWEEP_DATASETS = Sql(
    "DELETE FROM lineage_dataset WHERE NOT EXISTS (SELECT 1 FROM lineage_edge e WHERE e.source_id = lineage_dataset.id)"
    " AND NOT EXISTS (SELECT 1 FROM lineage_edge e WHERE e.target_id = lineage_dataset.id)"
)
SWEEPS = (SWEEP_EDGES, SWEEP_COLUMNS, SWEEP_DATASETS)
"""Statements that delete orphan rows, in this order: the remaining edges determine which columns and datasets are
orphans.
"""


def _edge_of(row: Row) -> LineageEdgeRow:
    kinds = tuple(row[9].split(",")) if row[9] else ()
    return LineageEdgeRow(
        target_id=row[0],
        source_id=row[1],
        job=LineageJobRow(*row[2:7]),
        said_by=row[7],
        reported_at=row[8],
        kinds=kinds,
    )


def _pair_of(row: Row) -> LineagePair:
    return LineagePair(
        source_id=row[0],
        target=LineageField(row[1], row[2]),
        source=LineageField(row[3], row[4]),
        subtype=row[5],
        direct=bool(row[6]),
    )


def edges_read(ids: Collection[int], *, up: bool, limit: int) -> Load[list[LineageEdgeRow]]:
    """Read up to `limit` edges into the given targets (`up`), or out of the given sources; for each pair of objects the
    newest first.
    """
    rows = yield (UP if up else DOWN), {"ids": json.dumps(sorted(ids)), "limit": limit}
    return [_edge_of(row) for row in rows]


def columns_read(fields: Collection[tuple[int, LineageField]], *, up: bool, limit: int) -> Load[list[ColumnEdge]]:
    """Read up to `limit` pairs whose target (`up`) or source is one of the given columns. With `up`, pairs for all
    columns of the target are included.
    """
    expected = json.dumps([[node_id, field.id, field.name] for node_id, field in fields])
    rows = yield (COLUMNS_UP if up else COLUMNS_DOWN), {"fields": expected, "limit": limit}
    return [ColumnEdge(_edge_of(row[:_WIDTH]), _pair_of(row[_WIDTH:])) for row in rows]


def external_datasets_read(ids: Collection[int]) -> Load[dict[int, ExternalDataset]]:
    """Read the external datasets among some ids."""
    rows = yield EXTERNAL_DATASETS, {"ids": json.dumps(sorted(ids))}
    return {row[0]: ExternalDataset(row[1], row[2]) for row in rows}


def tables_at_read(places: Collection[str]) -> Load[dict[str, int]]:
    """Read the ids of the tables and views whose documents have the given storage locations."""
    rows = yield AT, {"places": json.dumps(sorted(places))}
    return {row[1]: row[0] for row in rows}


class LineageWrites(Writes):
    """Writes lineage inside a transaction."""

    def external_dataset_id(self, metalake_id: int, dataset: ExternalDataset) -> int:
        """Return the id of an external dataset; insert the dataset if it is new."""
        key: Params = {"metalake": metalake_id, "digest": _digest(*dataset)}
        rows = self.tx.rows(FIND_EXTERNAL_DATASET, key)
        if not rows:
            self.tx.count(
                INSERT_EXTERNAL_DATASET,
                {**key, "id": self.tx.next_id(), "namespace": dataset.namespace, "name": dataset.name},
            )
            rows = self.tx.rows(FIND_EXTERNAL_DATASET, key)
        number: int = rows[0][0]
        return number

    def put(self, target_id: int, job: LineageJobRow, *, sources: Collection[int], pairs: Iterable[LineagePair]) -> int:
        """Store the edges that a job reported for a target. Returns the number of sources, or 0 if the report was
        ignored.

        The edges are added to those of the same parent run of the job. If the parent run differs or is unknown, they
        replace the stored edges; such a report is ignored if it is older than those edges. Deletes the oldest edges of
        the job beyond `SOURCES_MAX`, and the edges of the oldest jobs beyond `JOBS_MAX`.
        """
        key: Params = {"target": target_id, "job": job.digest}
        last = self.tx.rows(LAST, key)
        if last and (last[0][0] != job.parent or not job.parent):
            if last[0][1] > job.at:
                return 0
            self.tx.count(FORGET_EDGES, key)
            self.tx.count(FORGET_COLUMNS, key)
            last = []
        times = {row[2]: row[1] for row in last}
        kinds = _kinds(self._add_pairs(key, pairs))
        for source_id in sources:
            lineage_job_row = job._replace(at=max(job.at, times.get(source_id, 0)))
            self._put_edge(target_id, lineage_job_row, source_id=source_id, kinds=kinds.get(source_id, ()))
        if len(times.keys() | set(sources)) > SOURCES_MAX:
            for row in self.tx.rows(OLDEST, {**key, "most": SOURCES_MAX}):
                self._forget({**key, "source": row[0]})
        self._trim(target_id)
        return len(sources)

    def trim_exports(self, source_id: int) -> None:
        """Delete the oldest edges from an object to external datasets beyond `EXPORTS_MAX`."""
        for row in self.tx.rows(EXPORTS, {"source": source_id, "most": EXPORTS_MAX}):
            self._forget({"target": row[0], "job": bytes(row[1]), "source": source_id})

    def _forget(self, edge: Params) -> None:
        self.tx.count(FORGET_EDGE, edge)
        self.tx.count(FORGET_PAIRS, edge)

    def _put_edge(self, target_id: int, job: LineageJobRow, *, source_id: int, kinds: Sequence[str]) -> None:
        tx = self.tx
        tx.count(
            PUT,
            {
                "target": target_id,
                "job": job.digest,
                "source": source_id,
                "job_namespace": job.namespace,
                "job_name": job.name,
                "run": job.run,
                "parent": job.parent,
                "at": job.at,
                "said_by": tx.actor,
                "said_at": tx.now_ms,
                "kinds": ",".join(kinds),
            },
        )

    def _add_pairs(self, key: Params, pairs: Iterable[LineagePair]) -> list[LineagePair]:
        """Add column pairs to those of a job and a target, up to `COLUMNS_MAX`, and return all of them."""
        rows = self.tx.rows(PAIRS, key)
        lineage_pair = [_pair_of(row) for row in rows]
        following = rows[-1][-1] + 1 if rows else 0
        unique_pairs = dict.fromkeys(lineage_pair)
        added_pairs = [pair for pair in dict.fromkeys(pairs) if pair not in unique_pairs][
            : max(0, COLUMNS_MAX - len(lineage_pair))
        ]
        self.tx.session.many(
            PUT_PAIR,
            [
                {
                    **key,
                    "ordinal": ordinal,
                    "source": pair.source_id,
                    "target_field_id": pair.target.id,
                    "target_field": pair.target.name,
                    "source_field_id": pair.source.id,
                    "source_field": pair.source.name,
                    "subtype": pair.subtype,
                    "direct": pair.direct,
                }
                for ordinal, pair in enumerate(added_pairs, following)
            ],
        )
        return lineage_pair + added_pairs

    def _trim(self, target_id: int) -> None:
        """Delete the edges of the oldest jobs beyond `JOBS_MAX`."""
        for row in self.tx.rows(JOBS, {"target": target_id, "most": JOBS_MAX}):
            key: Params = {"target": target_id, "job": bytes(row[0])}
            self.tx.count(FORGET_EDGES, key)
            self.tx.count(FORGET_COLUMNS, key)


def _kinds(pairs: Iterable[LineagePair]) -> dict[int, list[str]]:
    """Collect up to 20 subtypes of the column pairs of each source, such as `IDENTITY`."""
    results: dict[int, set[str]] = {}
    for pair in pairs:
        if pair.subtype:
            results.setdefault(pair.source_id, set()).add(pair.subtype)
    return {source_id: sorted(kinds)[:20] for source_id, kinds in results.items()}
