# SPDX-License-Identifier: Apache-2.0
"""Exports: every table of the store is exported, or is excluded for a reason that this file states."""

from __future__ import annotations

import re

from limnos.store.exchange import exports, imports
from limnos.store.schema import metadata
from limnos.store.sql import Sql

LEFT_OUT = {
    "audit": "who did what on this server; an import is an operation of its own",
    "audit_note": "as its lines",
    "audit_position": "how far this store's feed was published",
    "change": "what happened, not what is: an import begins a feed of its own",
    "former_object": "what successors take over from dropped objects: an import is a new metalake",
    "former_restriction": "what names of dropped objects remember: an import is a new metalake, docs/guides/export.md",
    "fileset_place": "what the records of filesets say, to be found by place: an import writes its own",
    "access_answer": "answers to questions on this server, for thirty days",
    "access_request": "questions to the owners on this server, for thirty days",
    "idempotency": "outcomes for clients that ask this very store again",
    "import_object": "the state of an import under way",
    "lineage_column": "said by runs; the datasets of outside systems in it are nobody's objects",
    "lineage_dataset": "as its columns",
    "lineage_edge": "as its columns",
    "metalake_import": "the state of an import under way",
    "metrics_report": "reports of clients, kept for a few days",
    "maintenance_checkpoint": "how far tables were assessed: the other server assesses anew",
    "maintenance_finding": "made from the tables' metadata: the other server assesses anew",
    "maintenance_lease": "work of this store's nodes",
    "maintenance_rewrite": "work of this store's nodes",
    "maintenance_operation": "work of this store's nodes",
    "maintenance_orphan_check": "work of this store's nodes: the other server checks anew",
    "maintenance_orphan_file": "each file waits anew where it is imported",
    "node_seen": "the nodes of this server",
    "search_lease": "which node of this store indexes words",
    "search_position": "how far words were indexed: the other server indexes anew",
    "search_text": "words of objects: the other server indexes anew",
    "search_word": "words for spelling help: the other server indexes anew",
    "name_change": "the steps of a change of names under way",
    "name_migration": "the state of a change of names under way",
    "pipeline_schedule": "it runs with a user's rights on this server: the other server's users register their own",
    "pipeline_run": "runs of this server's runners",
    "run_finding": "as the runs",
    "password": "credentials of this server",
    "place": "what catalogs, documents and filesets say, to be found by location: an import writes its own",
    "run_step": "as the runs",
    "restricted_read": "files rewritten for restricted readers, for an hour",
    "scan_plan": "plans of scans, for an hour",
    "setting_name": "the name by which settings of this server list a metalake: an import writes its own",
    "snapshot_pin": "snapshots that runs and plans need",
    "sqlpp_lock": "locks of statements that run now",
    "sqlpp_lock_node": "nodes that hold such locks",
    "sqlpp_request": "statements that run now, or did a moment ago",
    "sqlpp_result": "results that are kept to be fetched",
    "task": "work of this store's nodes",
    "template_job": "jobs that this server ran, with processes of its own",
    "token": "credentials of this server",
    "trash": "what was dropped; only what is live goes out",
    "webhook": "addresses outside, with secrets, that would be told twice",
}
"""Tables that are not exported, and the reasons."""
CLOCKS = {"store", "clock"}
"""Tables that are read only for the moment of the export."""


def tables_in(*texts: str) -> set[str]:
    """Return the store's tables that statements name."""
    return {word for text in texts for word in re.findall(r"\b[a-z_]+\b", text)} & set(metadata.tables)


def test_every_table_is_exported_or_has_a_reason_for_exclusion() -> None:
    """Every table has either a statement of the export or a reason for its exclusion, and not both."""
    read = tables_in(*(each.sqlite for each in vars(exports).values() if isinstance(each, Sql)))

    assert sorted({*read, *LEFT_OUT}) == sorted(metadata.tables)
    assert sorted(read & set(LEFT_OUT)) == []


def test_every_exported_table_is_imported_and_cleaned_up() -> None:
    """Each exported table is written by an import, and its rows are deleted if the import is abandoned."""
    read = tables_in(*(each.sqlite for each in vars(exports).values() if isinstance(each, Sql))) - CLOCKS
    written = [each.sqlite for each in vars(imports).values() if isinstance(each, Sql) and "INSERT" in each.sqlite]

    assert sorted(read - tables_in(*written)) == ["document"], "documents are written by the statement that commits use"
    assert sorted(read - tables_in(*(each.sqlite for each in imports.WIPES))) == []
