# SPDX-License-Identifier: Apache-2.0
"""The transaction route: one atomic commit to several tables.

A change is the body of a commit with the table's name.

403 or 404: as for a commit to each table, in the order of the changes.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from limnos.http.iceberg.paths import split_path
from limnos.http.request import Request
from limnos.http.response import Response, no_content
from limnos.model.errors import BadRequest
from limnos.names import iceberg
from limnos.names.path import Levels, check_part
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import REQUEST_BYTES_MAX
from limnos.services.transactions.operations import TableCommitOperation
from limnos.services.transactions.transactions import OPERATIONS_MAX, transaction_execute

T = TypeVar("T")
_GLANCE_BYTES_MAX = 4 << 10
"""The maximum length of requirements that are decoded here, in bytes: `assert-create` is always the only
requirement.
"""
_NOTHING = msgspec.Raw(b"[]")


class TableChangeIdentifier(msgspec.Struct):
    """The full name of a table to commit to."""

    namespace: object
    name: str


class TableChange(msgspec.Struct):
    """A commit to one table."""

    identifier: TableChangeIdentifier
    requirements: list[object] = []
    updates: list[object] = []


class CommitTransaction(msgspec.Struct, rename="kebab"):
    """The body of a transaction: one commit for each table."""

    table_changes: list[TableChange]


class LargeTableChange(msgspec.Struct):
    """A commit to one table in a large body: checked to be JSON, and decoded one change at a time."""

    identifier: msgspec.Raw
    requirements: msgspec.Raw = _NOTHING
    updates: msgspec.Raw = _NOTHING


class LargeTransaction(msgspec.Struct, rename="kebab"):
    """A transaction's body that is too large to decode on the event loop."""

    table_changes: list[LargeTableChange]


async def transaction_commit(request: Request, ctx: Context) -> Response:
    """Commit changes to several tables, all or none."""
    scope, _ = split_path(request, ctx, 0)
    data = await request.body()
    if len(data) > REQUEST_BYTES_MAX:
        operations = await _decode_large_body(request, data)
    else:
        changes = request.decode(data, CommitTransaction).table_changes
        operations = [
            TableCommitOperation(_path(each.identifier), CommitChange(each.requirements, each.updates))
            for each in _check_change_count(changes)
        ]
    await transaction_execute(ctx, scope, operations)
    return no_content()


def _check_change_count(changes: list[T]) -> list[T]:
    """Raise BadRequest for an empty or too long list of changes, before it is decoded; otherwise return the list."""
    if not changes:
        raise BadRequest("Field 'table-changes' is empty: name at least one table")
    if len(changes) > OPERATIONS_MAX:
        raise BadRequest(
            f"Field 'table-changes' may have at most {OPERATIONS_MAX} changes, not {len(changes)}: send several"
            " requests, each of which is one transaction"
        )
    return changes


async def _decode_large_body(request: Request, data: bytes) -> list[TableCommitOperation]:
    """Decode a large body change by change, so that other requests run in between."""
    operations, decoded = [], 0
    for each in _check_change_count(request.decode_fields(data, LargeTransaction).table_changes):
        identifier = request.decode(bytes(each.identifier), TableChangeIdentifier)
        operations.append(TableCommitOperation(_path(identifier), _change(request, each)))
        decoded += _size(each)
        if decoded > REQUEST_BYTES_MAX:
            decoded = 0
            await asyncio.sleep(0)
    return operations


def _path(identifier: TableChangeIdentifier) -> Levels:
    return (*iceberg.decode_body(identifier.namespace), check_part(identifier.name))


def _size(change: LargeTableChange) -> int:
    return len(bytes(change.requirements)) + len(bytes(change.updates))


def _change(request: Request, change: LargeTableChange) -> CommitChange:
    """Decode a change. A large one is decoded by a separate process, except for the part that identifies a create."""
    few = bytes(change.requirements)
    if _size(change) <= REQUEST_BYTES_MAX:
        return CommitChange(request.decode(few, list[object]), request.decode(bytes(change.updates), list[object]))
    first_updates = request.decode(few, list[object]) if len(few) <= _GLANCE_BYTES_MAX else []
    raw = msgspec.json.encode({"requirements": change.requirements, "updates": change.updates})
    return CommitChange(first_updates, [], raw)
