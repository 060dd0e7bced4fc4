# SPDX-License-Identifier: Apache-2.0
"""Commits of maintenance operations: who checks them, and the lease that each one needs.

Must not know the operations: the check is a component, and without it every such commit is refused. A commit with an
operation's token is refused unless the token's lease of the table is still valid, which the transaction checks.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from limnos.model.entities import MetadataDocument
from limnos.model.errors import PermissionDenied
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.store.tx import Tx
from limnos.telemetry.metrics import Counter

LEASE_OVER: Final = "The lease of this operation has expired: another executor may have it now. Nothing was committed"
REWRITES = Counter("limnos_maintenance_rewrites_total", "Commits of maintenance operations, by outcome.", ("outcome",))
REWRITTEN_FILES = Counter("limnos_maintenance_rewritten_files_total", "Files that maintenance operations replaced.", ())
REWRITTEN_BYTES = Counter(
    "limnos_maintenance_rewritten_bytes_total", "Bytes of files that maintenance operations wrote.", ()
)


class RewriteTotals(NamedTuple):
    """The effect of a commit on files: the count of replaced files, and the bytes of the files written for them."""

    files: int
    bytes: int


class CheckedRewrite(NamedTuple):
    """A checked commit: its requirements and updates, which name the operation, and its effect."""

    requirements: list[object]
    updates: list[object]
    totals: RewriteTotals | None


class OperationCommits(Protocol):
    """Checks that each commit of a maintenance operation does only what the operation may do."""

    async def check(
        self, ctx: Context, *, document: MetadataDocument, place: CatalogStorage, token_id: int, change: CommitChange
    ) -> CheckedRewrite:
        """Check a commit with an operation's token, and add the server's entries to the summary of its snapshot.

        Args:
            ctx: The request.
            document: The table's document, for whose version the commit is made.
            place: The storage of its catalog.
            token_id: The operation's token.
            change: The commit's requirements and updates.

        Raises:
            BadRequest: The commit changes more than a rewrite of files may, or files that the operation has loaded were
                replaced; the message contains the reason.
            CommitConflict: Another commit came first.
            PermissionDenied: The lease has expired, or a policy no longer requires the deletion of rows.
            InvalidTable: A manifest or the table's metadata cannot be read.
        """


class NoOperationCommits:
    """The null implementation, for a node without maintenance: no operation may commit."""

    async def check(
        self, ctx: Context, *, document: MetadataDocument, place: CatalogStorage, token_id: int, change: CommitChange
    ) -> CheckedRewrite:
        """Refuse the commit. Raises PermissionDenied."""
        raise PermissionDenied(
            "This server does not serve maintenance of tables, so it checks no commits of maintenance operations:"
            " nothing was committed. Run the executor with the URL of a server that does"
        )


OPERATION_COMMITS: ComponentKey[OperationCommits] = ComponentKey("operation commits", lambda _: NoOperationCommits())


def rewrite_require(tx: Tx, *, table_id: int, token_id: int | None) -> None:
    """Check, in the commit's transaction, that the operation's lease is valid, and record the commit on the lease.

    Raises PermissionDenied if the lease is not valid.

    `token_id` is None for other commits.
    """
    if token_id is not None and not tx.rewrites.record_commit(token_id, node_id=table_id):
        raise PermissionDenied(LEASE_OVER)


def rewrite_count(totals: RewriteTotals | None) -> None:
    """Count a successful commit of a maintenance operation in the metrics; None for one that rewrote no files."""
    REWRITES["committed",] += 1
    if totals is not None:
        REWRITTEN_FILES[()] += totals.files
        REWRITTEN_BYTES[()] += totals.bytes
