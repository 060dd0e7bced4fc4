# SPDX-License-Identifier: Apache-2.0
"""Dataset fence: limits the changes of other clients' commits to a dataset's table, and verifies the lock of a SQL++
commit.

Must not know any wire format. A dataset with a primary key accepts rows only from SQL++, so that keys stay unique,
until its owner allows other writers. The check compares the metadata before and after a commit. The lock is verified in
the commit's own transaction.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from limnos.access.actions import Action
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.json_types import Json
from limnos.model.dataset_properties import ALLOWED, OUTSIDE_WRITERS, REFUSED
from limnos.model.decisions import Decision, SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, OutsideWriter, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.records import TableRecord
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest
from limnos.names.dataverse import DataverseName
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.services.catalog.stored_statements import DatasetRules, stored_statements
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx


class DatasetGuard(NamedTuple):
    """A dataset whose commits the server checks: its path, its catalog, its rules, and whether the caller owns it."""

    path: Levels
    catalog_id: int
    rules: DatasetRules | None
    """The rules of the dataset; None for a table without a primary key."""
    owns: bool
    """Whether the caller may allow other writers."""


class LockProof(NamedTuple):
    """The proof by which a commit shows that it belongs to the statement with a lock: the lock's token and its
    secret.
    """

    token: int
    secret: str


class LockRequirement(NamedTuple):
    """The lock of a SQL++ dataset that a commit's transaction must verify."""

    proof: LockProof
    wanted_lock: LockRequest


def lock_proof_of(text: str) -> LockProof:
    """Parse the header `X-Limnos-Lock`, `TOKEN.SECRET`, by which a SQL++ commit proves its lock. Raises BadRequest if
    malformed.
    """
    number, dot, secret = text.partition(".")
    if not (dot and secret and number.isascii() and number.isdigit() and len(number) < 19):
        raise BadRequest(
            "The header X-Limnos-Lock must have the form TOKEN.SECRET; only commits of a SQL++ statement send it: leave"
            " it out"
        )
    return LockProof(int(number), secret)


def dataset_guard_of(
    request_view: RequestView, node: Node, *, chain: SecurableChain, path: Levels, proof: LockProof | None = None
) -> tuple[DatasetGuard | None, tuple[Decision, ...]]:
    """Return the guard for a commit to a table, and the decisions that it used.

    Args:
        request_view: The request view of the catalog.
        node: The table.
        chain: The table with its ancestors up to the metalake.
        path: The path of the table.
        proof: The lock that the commit presents.

    Returns:
        The guard, and the decisions. The guard is None for a table that is not a dataset of SQL++ with a primary key,
        unless the commit presents a lock.
    """
    rules = _dataset_rules(node, path)
    if rules is None:
        return (None if proof is None else DatasetGuard(path, request_view.catalog.id, None, owns=False)), ()
    may = request_view.decide(Action.TABLE_DROP, chain)
    return DatasetGuard(path, request_view.catalog.id, rules, owns=may.allowed), (may,) if may.allowed else ()


def _dataset_rules(node: Node, path: Levels) -> DatasetRules | None:
    """Return the rules of a dataset; None for another table. Raises OutsideWriter if this server cannot read them."""
    if node.kind is not Kind.TABLE or not cast("TableRecord", node.record).statements:
        return None
    statements = stored_statements()
    if statements is None:
        raise OutsideWriter(
            f"{display_name(path)} is a dataset of SQL++, whose rules this server cannot read: install the room sqlpp"
        )
    return statements.dataset_rules(node)


def check_dataset_commit(
    guard: DatasetGuard | None, proof: LockProof | None, *, before: Json, after: Json
) -> LockRequirement | None:
    """Check that a commit to a dataset's table preserves the dataset's keys and types, or proves the dataset's lock.

    Args:
        guard: The guard of the table; None allows any commit.
        proof: The lock that the commit presents.
        before: The metadata before the commit.
        after: The metadata after the commit.

    Returns:
        The lock that the commit's transaction must verify, if any.

    Raises:
        OutsideWriter: Only SQL++ may make the change.
        PermissionDenied: Only the dataset's owner may allow other writers.
        BadRequest: A property of the dataset has an invalid value.
    """
    if guard is None:
        return None
    rules = guard.rules
    if rules is not None:
        _check_kept(guard, rules, before=before, after=after)
        if proof is None and _is_row_change(before, after) and not rules.takes_outside_writers(_properties(before)):
            raise OutsideWriter(
                f"{display_name(guard.path)} accepts rows only from SQL++, so that keys stay unique: use INSERT,"
                " UPSERT, DELETE or LOAD at /query/service, or have its owner set the table's property"
                f" {OUTSIDE_WRITERS} to {ALLOWED}. Branches other than main can be written"
            )
    if proof is None:
        return None
    key = LockKey(guard.catalog_id, LockKind.DATASET, DataverseName.create(guard.path[:-1]), guard.path[-1])
    return LockRequirement(proof, LockRequest(key, LockMode.EXCLUSIVE_MODIFY))


def lock_require(tx: Tx, dataset_text: LockRequirement | None) -> None:
    """Verify, in the commit's transaction, that the statement still holds the lock. Raises LockLost if not."""
    if dataset_text is not None:
        tx.locks.require(dataset_text.proof.token, dataset_text.wanted_lock, secret=dataset_text.proof.secret)


def _is_row_change(before: Json, after: Json) -> bool:
    """Return whether the commit changes the current snapshot, and so the current rows."""
    return iceberg_metadata.current_snapshot_id(before) != iceberg_metadata.current_snapshot_id(after)


def _check_kept(guard: DatasetGuard, rules: DatasetRules, *, before: Json, after: Json) -> None:
    broken_schema = rules.broken_schema(
        before=iceberg_metadata.current_schema(before), after=iceberg_metadata.current_schema(after)
    )
    if broken_schema is not None:
        raise OutsideWriter(
            f"{display_name(guard.path)} is a dataset of SQL++, and this would change {broken_schema}. Optional columns"
            " can be added; for other changes create a dataset of another type and INSERT this one's objects into it"
        )
    old, new = _properties(before), _properties(after)
    name = rules.broken_property(old, new)
    if name is not None:
        raise OutsideWriter(
            f"{display_name(guard.path)} is a dataset of SQL++, which needs its property {name}: do not change it"
        )
    _check_outside_writers(guard, before=old.get(OUTSIDE_WRITERS), after=new.get(OUTSIDE_WRITERS))


def _check_outside_writers(guard: DatasetGuard, *, before: str | None, after: str | None) -> None:
    if before == after:
        return
    if after not in (None, ALLOWED, REFUSED):
        raise BadRequest(f"{OUTSIDE_WRITERS} is {ALLOWED} or {REFUSED}, not {after}")
    if not guard.owns:
        raise PermissionDenied(
            f"Only the owner of {display_name(guard.path)} may allow writers other than SQL++ ({OUTSIDE_WRITERS})"
        )


def _properties(metadata: Json) -> dict[str, str]:
    return iceberg_metadata.properties_of(metadata)
