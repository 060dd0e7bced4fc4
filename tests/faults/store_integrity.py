# SPDX-License-Identifier: Apache-2.0
"""Checks whether a store is consistent, by this module's own SQL, without caches and services, on both databases.

`complaints` returns the violations, an empty list for a consistent store: the clock and the feed agree, the replayed
feed equals the tree, every object has its parent, owner, document and file, and no name, location or id occurs twice.
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg

from limnos.model.kinds import Kind

Rows = list[tuple[object, ...]]
CATALOG, NAMESPACE, TABLE, VIEW, USER = 2, 3, 4, 5, 20
STAGED = "name_space = 'import'"
"""A metalake that is being imported. Until it is published no name leads to it, and it has neither an owner nor a
change in the feed.
"""


class ExaminedStore:
    """A store under examination: the path of an SQLite file, or a `postgresql://` URL."""

    def __init__(self, database: str) -> None:
        self.is_postgres = "://" in database
        self.connection: sqlite3.Connection | psycopg.Connection = (
            psycopg.connect(database) if self.is_postgres else sqlite3.connect(database, timeout=30)
        )
        self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ" if self.is_postgres else "BEGIN")

    def rows(self, statement: str) -> Rows:
        """Run a statement and return its rows."""
        return self.connection.execute(statement).fetchall()

    def close(self) -> None:
        """Disconnect."""
        self.connection.rollback()
        self.connection.close()


def complaints(database: str) -> list[str]:
    """Return all violations of what must be true between any two mutations."""
    with closing(ExaminedStore(database)) as store:
        return [f"{check.__name__}: {text}" for check in CHECKS for text in check(store)]


def clocks_are_dense(store: ExaminedStore) -> Iterator[str]:
    """Check that each zone's feed has every revision from after the pruned one up to the clock's, with ordinals
    from 0.
    """
    feed: dict[object, dict[int, list[int]]] = {}
    for zone, revision, ordinal in store.rows("SELECT zone, revision, ordinal FROM change"):
        feed.setdefault(zone, {}).setdefault(int(str(revision)), []).append(int(str(ordinal)))
    clocks = store.rows("SELECT zone, revision, access_revision, pruned_to FROM clock")
    for zone, revision, access_revision, pruned_to in clocks:
        last, access, pruned = int(str(revision)), int(str(access_revision)), int(str(pruned_to))
        if not 0 <= access <= last or not 0 <= pruned <= last:
            yield f"zone {zone}: revision {last}, access revision {access}, pruned to {pruned}"
        revisions = feed.pop(zone, {})
        if sorted(revisions) != list(range(pruned + 1, last + 1)):
            yield f"zone {zone}: clock at {last}, pruned to {pruned}, but the feed has {sorted(revisions)[-5:]}"
        for number, ordinals in revisions.items():
            if sorted(ordinals) != list(range(len(ordinals))):
                yield f"zone {zone}: revision {number} has the ordinals {sorted(ordinals)}"
    for zone in feed:
        yield f"zone {zone}: changes without a clock"


def zones_have_clocks(store: ExaminedStore) -> Iterator[str]:
    """Check that the server, every metalake and every catalog have a clock, and that nothing in a zone is newer than
    its clock.
    """
    for (node,) in store.rows(
        "SELECT n.id FROM node n WHERE n.kind IN (1, 2) AND NOT EXISTS (SELECT 1 FROM clock c WHERE c.zone = n.id)"
    ):
        yield f"metalake or catalog {node} has no clock"
    if len(store.rows("SELECT 1 FROM clock WHERE zone = 0")) != 1 or len(store.rows("SELECT 1 FROM store")) != 1:
        yield "the server's own row or clock is not there exactly once"
    for node, at, clock in store.rows(
        "SELECT n.id, n.revision, c.revision FROM node n JOIN clock c ON c.zone = n.zone WHERE n.revision > c.revision"
    ):
        yield f"node {node} is of revision {at}, its clock is at {clock}"


def tree_holds(store: ExaminedStore) -> Iterator[str]:
    """Check that every existing node has existing ancestors up to the root, in its catalog's zone."""
    rows = store.rows("SELECT id, parent_id, kind, zone FROM node WHERE deleted = 0")
    live = {row[0]: row for row in rows}
    for node, parent, kind, zone in rows:
        if parent == 0 and kind == 1:
            continue
        above = live.get(parent)
        if above is None:
            yield f"node {node} hangs below {parent}, which is not there"
        elif zone != (above[0] if int(str(above[2])) <= CATALOG else above[3]):
            yield f"node {node} is in zone {zone}, its parent {parent} in {above[3]}"
        seen: set[object] = set()
        while above is not None and above[0] not in seen:
            seen.add(above[0])
            if above[1] == 0:
                break
            above = live.get(above[1])
        else:
            yield f"node {node} does not lead to the root"


def names_are_unique(store: ExaminedStore) -> Iterator[str]:
    """Check that no two existing nodes share parent, name space and name, and no two principals or roles a name."""
    for what in (
        "SELECT parent_id, name_space, name, count(*) FROM node WHERE deleted = 0 GROUP BY 1, 2, 3",
        "SELECT metalake_id, kind, name, count(*) FROM principal WHERE deleted = 0 GROUP BY 1, 2, 3",
        "SELECT metalake_id, 22, name, count(*) FROM role WHERE deleted = 0 GROUP BY 1, 2, 3",
        "SELECT 0, 0, location, count(*) FROM document GROUP BY 1, 2, 3",
    ):
        for *key, count in store.rows(what):
            if count != 1:
                yield f"{key} is there {count} times"


def ids_are_unique(store: ExaminedStore) -> Iterator[str]:
    """Check that no id was assigned twice, and that the next id is greater than all."""
    everything = " UNION ALL ".join(f"SELECT id FROM {name}" for name in ("node", "principal", "role", "token"))
    for repeated_id, count in store.rows(f"SELECT id, count(*) FROM ({everything}) AS x GROUP BY id"):
        if count != 1:
            yield f"id {repeated_id} was given {count} times"
    ((last,),) = store.rows(f"SELECT coalesce(max(id), 0) FROM ({everything}) AS x")
    following = "SELECT last_value + 1 FROM limnos_id" if store.is_postgres else "SELECT next_id FROM store"
    ((next_id,),) = store.rows(following)
    if int(str(next_id)) <= int(str(last)):
        yield f"the next id would be {next_id}, but {last} is in use"


def owners_are_there(store: ExaminedStore) -> Iterator[str]:
    """Check that every existing node, except placeholders, has an existing owner, and that no dropped node has one,
    unless it is in the trash.
    """
    for (node,) in store.rows(
        f"SELECT n.id FROM node n WHERE n.deleted = 0 AND NOT n.{STAGED}"
        " AND NOT EXISTS (SELECT 1 FROM owner o WHERE o.object_id = n.id)"
        " AND NOT EXISTS (SELECT 1 FROM node s WHERE s.zone = n.zone AND s.format = 'source')"
    ):
        yield f"node {node} has no owner"
    for node, owner in store.rows(
        "SELECT o.object_id, o.principal_id FROM owner o"
        " WHERE NOT EXISTS (SELECT 1 FROM principal p WHERE p.id = o.principal_id)"
        " OR (NOT EXISTS (SELECT 1 FROM node n WHERE n.id = o.object_id AND n.deleted = 0)"
        " AND NOT EXISTS (SELECT 1 FROM role r WHERE r.id = o.object_id AND r.deleted = 0)"
        " AND NOT EXISTS (SELECT 1 FROM pipeline_run r WHERE r.id = o.object_id)"
        " AND NOT EXISTS (SELECT 1 FROM template_job j WHERE j.id = o.object_id)"
        " AND NOT EXISTS (SELECT 1 FROM trash t WHERE t.node_id = o.object_id))"
    ):
        yield f"owner {owner} of {node}: one of the two is not there"


def graph_holds(store: ExaminedStore) -> Iterator[str]:
    """Check that memberships, assignments of roles, and rules refer to existing rows at both ends."""
    live = {
        "user": "SELECT id FROM principal WHERE deleted = 0 AND kind = 20",
        "group": "SELECT id FROM principal WHERE deleted = 0 AND kind = 21",
        "principal": "SELECT id FROM principal WHERE deleted = 0",
        "role": "SELECT id FROM role WHERE deleted = 0",
    }
    for table, one, its, other, whose in (
        ("group_member", "user_id", "user", "group_id", "group"),
        ("role_member", "principal_id", "principal", "role_id", "role"),
        ("access_grant", "role_id", "role", "role_id", "role"),
    ):
        dangling_rows = store.rows(
            f"SELECT {one}, {other} FROM {table} WHERE {one} NOT IN ({live[its]}) OR {other} NOT IN ({live[whose]})"
        )
        yield from (f"{table} {row} joins what is not there" for row in dangling_rows)


def documents_are_there(store: ExaminedStore) -> Iterator[str]:
    """Check that every existing table and view of a non-connector catalog has a document, and that each document
    belongs to a node that exists or is in the trash.
    """
    for (node,) in store.rows(
        f"SELECT n.id FROM node n WHERE n.deleted = 0 AND n.kind IN ({TABLE}, {VIEW}) AND n.format <> 'source'"
        " AND NOT EXISTS (SELECT 1 FROM document d WHERE d.node_id = n.id)"
    ):
        yield f"table {node} has no document"
    for (node,) in store.rows(
        "SELECT d.node_id FROM document d WHERE NOT EXISTS"
        f" (SELECT 1 FROM node n WHERE n.id = d.node_id AND n.deleted = 0 AND n.kind IN ({TABLE}, {VIEW}))"
        " AND NOT EXISTS (SELECT 1 FROM trash t WHERE t.node_id = d.node_id)"
    ):
        yield f"document {node} has no table"


def files_are_there(store: ExaminedStore) -> Iterator[str]:
    """Check that the local metadata file of every document has the document's bytes."""
    for node, location, body in store.rows("SELECT node_id, metadata_location, body FROM document"):
        if not str(location).startswith("file:"):
            continue
        path = Path(unquote(urlsplit(str(location)).path))
        if not path.is_file():
            yield f"table {node}: its metadata file {path} is gone"
            continue
        data = path.read_bytes()
        plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if plain != body:
            yield f"table {node}: its metadata file {path} differs from its document"


def feed_tells_the_tree(store: ExaminedStore) -> Iterator[str]:
    """Check that the feed, replayed from the beginning, leads to exactly the existing nodes, with their parents and
    names.
    """
    feed_nodes: dict[object, tuple[object, object]] = {}
    for operation, node, old_parent, old_name, parent, name in store.rows(
        "SELECT operation, node_id, old_parent, old_name, new_parent, new_name FROM change WHERE kind IN"
        f" ({', '.join(str(int(kind)) for kind in Kind if kind.is_node)}) ORDER BY zone, revision, ordinal"
    ):
        if operation in ("move", "drop") and feed_nodes.pop(node, None) != (old_parent, old_name):
            yield f"the feed has a {operation} of {node} from {old_name}, where it was not"
        if operation in ("create", "undrop", "move"):
            feed_nodes[node] = (parent, name)
    pruned = store.rows("SELECT 1 FROM clock WHERE pruned_to > 0")
    rows = store.rows(f"SELECT id, parent_id, name FROM node WHERE deleted = 0 AND NOT {STAGED}")
    live = {row[0]: (row[1], row[2]) for row in rows}
    if not pruned and feed_nodes != live:
        wrong = {node for node in feed_nodes.keys() | live.keys() if feed_nodes.get(node) != live.get(node)}
        yield from (f"node {node} is {live.get(node)}, the feed says {feed_nodes.get(node)}" for node in wrong)


def imports_hold(store: ExaminedStore) -> Iterator[str]:
    """Check that staged objects belong to the metalake of an unfinished import, and that each import that accepts
    records has its metalake.
    """
    imports = store.rows("SELECT metalake_id, id, state FROM metalake_import WHERE metalake_id <> 0")
    state_of = {row[0]: row[2] for row in imports}
    staged = {row[0] for row in store.rows(f"SELECT id FROM node WHERE {STAGED}")}
    for node in staged:
        if state_of.get(node, "done") == "done":
            yield f"metalake {node} is staged for an import that takes nothing more"
    for node, import_id, state in imports:
        if state in ("open", "whole") and node not in staged:
            yield f"import {import_id} is {state}, and its metalake {node} is not staged"


def tasks_are_readable(store: ExaminedStore) -> Iterator[str]:
    """Check that purge tasks are about dropped tables only, and name no file of an existing document."""
    places = {str(row[0]) for row in store.rows("SELECT metadata_location FROM document")}
    for task, payload in store.rows("SELECT id, payload FROM task WHERE kind = 'purge-table'"):
        if any(place in str(payload) for place in places):
            yield f"task {task} would purge a live table"


def lineage_holds(store: ExaminedStore) -> Iterator[str]:
    """Check that each pair of columns has its edge, and that each end of an edge that is no object is an external
    dataset.
    """
    pairs = store.rows(
        "SELECT c.target_id, c.source_id FROM lineage_column c WHERE NOT EXISTS (SELECT 1 FROM lineage_edge e"
        " WHERE e.target_id = c.target_id AND e.source_id = c.source_id AND e.job_digest = c.job_digest)"
    )
    yield from (f"columns of {target} from {source} without an edge" for target, source in pairs)
    known = {row[0] for row in store.rows("SELECT id FROM node UNION SELECT id FROM lineage_dataset")}
    for target, source in store.rows("SELECT target_id, source_id FROM lineage_edge"):
        if target not in known or source not in known:
            yield f"an edge from {source} to {target}, one of which never was"


def runs_are_whole(store: ExaminedStore) -> Iterator[str]:
    """Check that each existing pipeline has its newest declaration, and that each run has an owner and a valid state.

    A pipeline has at most one running run, the revision of a published run is not after its catalog's clock, and steps
    and findings belong to runs.
    """
    for node, record in store.rows(
        "SELECT n.id, n.record FROM node n WHERE n.deleted = 0 AND n.kind = 13"  # a job template
        " AND NOT EXISTS (SELECT 1 FROM pipeline_version v WHERE v.pipeline_id = n.id)"
    ):
        if not any(word in bytes(record) for word in (b"shell", b"spark")):  # type: ignore[arg-type]  # what it runs lies in its record
            yield f"pipeline {node} declares nothing"
    states = "'running', 'cancelling', 'held', 'failed', 'cancelled', 'discarded', 'published'"
    for (run,) in store.rows(
        f"SELECT r.id FROM pipeline_run r WHERE r.state NOT IN ({states}) OR (r.state = 'published') <> (r.revision IS"
        " NOT NULL) OR NOT EXISTS (SELECT 1 FROM owner o WHERE o.object_id = r.id) OR (r.revision IS NOT NULL AND NOT"
        " EXISTS (SELECT 1 FROM clock c WHERE c.zone = r.catalog_id AND c.revision >= r.revision))"
    ):
        yield f"run {run} is not whole"
    live = (
        "SELECT pipeline_id FROM pipeline_run WHERE state IN ('running', 'cancelling') GROUP BY pipeline_id HAVING"
        " count(*) > 1"
    )
    yield from (f"pipeline {row[0]} has two live runs" for row in store.rows(live))
    for table in ("run_step", "run_finding"):
        orphans = (
            f"SELECT t.run_id FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM pipeline_run r WHERE r.id = t.run_id)"
        )
        yield from (f"{table} of run {row[0]}, which is not there" for row in store.rows(orphans))


def jobs_are_whole(store: ExaminedStore) -> Iterator[str]:
    """Check that each job has an owner and a valid state, a holder once it was leased, and an end if it has ended. A
    job that has not ended keeps its template.
    """
    for (job,) in store.rows(
        "SELECT j.id FROM template_job j WHERE j.state NOT IN ('queued', 'started', 'cancelling', 'succeeded',"
        " 'failed', 'cancelled') OR (j.state IN ('succeeded', 'failed', 'cancelled')) <> (j.ended_at IS NOT NULL) OR"
        " (j.state IN ('started', 'cancelling') AND (j.holder = '' OR j.started_at IS NULL)) OR NOT EXISTS (SELECT 1"
        " FROM owner o WHERE o.object_id = j.id) OR (j.ended_at IS NULL AND NOT EXISTS (SELECT 1 FROM node n WHERE n.id"
        " = j.template_id AND n.deleted = 0))"
    ):
        yield f"job {job} is not whole"


def lance_versions_hold(store: ExaminedStore) -> Iterator[str]:
    """Check that versions belong to Lance tables that exist or are in the trash, and that unsettled versions are after
    all settled ones.
    """
    for (node,) in store.rows(
        "SELECT DISTINCT v.node_id FROM lance_version v WHERE NOT EXISTS"
        f" (SELECT 1 FROM node n WHERE n.id = v.node_id AND n.kind = {TABLE} AND n.format = 'lance' AND n.deleted = 0)"
        " AND NOT EXISTS (SELECT 1 FROM trash t WHERE t.node_id = v.node_id)"
    ):
        yield f"versions of {node}, which is no Lance table"
    for node, version in store.rows(
        "SELECT v.node_id, v.version FROM lance_version v WHERE v.settled AND EXISTS (SELECT 1 FROM lance_version o"
        " WHERE o.node_id = v.node_id AND o.branch = v.branch AND o.version < v.version AND NOT o.settled)"
    ):
        yield f"version {version} of {node} is settled before an older one"


def model_versions_hold(store: ExaminedStore) -> Iterator[str]:
    """Check that every version belongs to a model that exists or is in the trash, and every alias to a version of its
    model.
    """
    existing_model = "SELECT 1 FROM node n WHERE n.id = v.model_id AND n.kind = 8"
    for model, version in store.rows(
        f"SELECT v.model_id, v.version FROM model_version v WHERE NOT EXISTS ({existing_model})"
    ):
        yield f"version {version} of model {model}: the model is not there"
    for model, alias in store.rows(
        "SELECT a.model_id, a.alias FROM model_alias a WHERE NOT EXISTS"
        " (SELECT 1 FROM model_version v WHERE v.model_id = a.model_id AND v.version = a.version)"
    ):
        yield f"alias {alias} of model {model} leads nowhere"


def attachments_hold(store: ExaminedStore) -> Iterator[str]:
    """Check that attachments refer to objects that existed, of the right kind, except for swept rows.

    A tag's value is attached only where the tag is.
    """
    tables = (
        ("tag_object", "tag_id", "11"),
        ("policy_object", "policy_id", "12"),
        ("statistic", "object_id", str(TABLE)),
        ("column_attachment", "attached_id", "h.kind"),
        ("column_attachment", "object_id", str(TABLE)),
        ("column_statistic", "object_id", str(TABLE)),
    )
    for table, column, kind in tables:
        existing_object = f"SELECT 1 FROM node n WHERE n.id = h.{column} AND n.kind = {kind}"
        for object_id, hung in store.rows(
            f"SELECT h.object_id, h.{column} FROM {table} h WHERE NOT EXISTS ({existing_object})"
        ):
            yield f"{table}: {hung} hangs on {object_id} and is nothing"
    on_object = "SELECT 1 FROM tag_object t WHERE v.field_id = 0 AND t.object_id = v.object_id AND t.tag_id = v.tag_id"
    on_column = (
        "SELECT 1 FROM column_attachment c WHERE c.object_id = v.object_id AND c.field_id = v.field_id AND"
        " c.attached_id = v.tag_id"
    )
    rows = (
        f"SELECT v.object_id, v.tag_id, v.value FROM tag_value v WHERE NOT EXISTS ({on_object}) AND NOT EXISTS"
        f" ({on_column})"
    )
    for object_id, tag_id, value in store.rows(rows):
        yield f"tag_value: {value} of {tag_id} at {object_id}, where the tag is not"


CHECKS = (
    attachments_hold,
    imports_hold,
    model_versions_hold,
    lance_versions_hold,
    lineage_holds,
    runs_are_whole,
    jobs_are_whole,
    clocks_are_dense,
    zones_have_clocks,
    tree_holds,
    names_are_unique,
    ids_are_unique,
    owners_are_there,
    graph_holds,
    documents_are_there,
    files_are_there,
    feed_tells_the_tree,
    tasks_are_readable,
)
