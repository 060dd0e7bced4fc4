# SPDX-License-Identifier: Apache-2.0
"""Versions of pipeline declarations, by the pipeline's node id.

The record of the node has the number and digest of the newest version. Must not know the content of declarations. A
version is never changed. Versions that neither a run nor the pipeline needs are deleted with old runs.
"""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.model.runs import PipelineDeclaration
from limnos.store.sql import Load, Sql, Value
from limnos.store.transaction import StoreTransaction

PUT = Sql(
    "INSERT INTO pipeline_version (pipeline_id, version, digest, declaration, declared_by, declared_at) VALUES"
    " (:id, :version, :digest, :text, :actor, :now)"
)
ONE = Sql(
    "SELECT pipeline_id, version, digest, declaration, declared_by, declared_at FROM pipeline_version"
    " WHERE pipeline_id = :id AND version = :version"
)
_GONE = f"SELECT 1 FROM node n WHERE n.id = {{}} AND n.deleted = 0 AND n.kind = {int(Kind.JOB_TEMPLATE)}"
GONE = f"NOT EXISTS ({_GONE})"
"""The condition that a column refers to no live pipeline."""
SWEEP = Sql(f"DELETE FROM pipeline_version WHERE {GONE.format('pipeline_version.pipeline_id')}")
UNUSED = Sql(
    "DELETE FROM pipeline_version WHERE version < (SELECT max(v.version) FROM pipeline_version v WHERE v.pipeline_id ="
    " pipeline_version.pipeline_id) AND NOT EXISTS (SELECT 1 FROM pipeline_run r WHERE r.pipeline_id ="
    " pipeline_version.pipeline_id AND r.version = pipeline_version.version)"
)


def declaration_read(pipeline_id: int, version: int) -> Load[PipelineDeclaration | None]:
    """Read one version of a pipeline's declaration, or None."""
    rows = yield ONE, {"id": pipeline_id, "version": version}
    return PipelineDeclaration(*rows[0]) if rows else None


def declaration_put(tx: StoreTransaction, pipeline_id: int, *, version: int, digest: str, text: str) -> None:
    """Insert a version; its number must be new."""
    params: dict[str, Value] = {"id": pipeline_id, "version": version, "digest": digest, "text": text}
    tx.count(PUT, params | {"actor": tx.actor, "now": tx.now_ms})


def declarations_prune(tx: StoreTransaction) -> int:
    """Delete versions that are not the newest and that no run uses. Returns the number of deleted versions."""
    return tx.count(UNUSED, {})
