# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's content: rows by predicates, columns, metadata, restores; its statistics; and transactions.

Must not know access rules.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.rooms.lance.http.identifiers import IdentifiedBody, body_of
from limnos.rooms.lance.http.row_targets import Where, find_rows, find_transaction
from limnos.rooms.lance.services.rows import LanceRows
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.sources import questions
from limnos.rooms.lance.sources.questions import (
    FieldMetadataResult,
    LanceQuestion,
    LanceWriteResult,
    TableSize,
    TransactionSummary,
)

T = TypeVar("T")
SUCCEEDED: Final = "SUCCEEDED"
ARROW_STREAM: Final = b"application/vnd.apache.arrow.stream"
_ENTERPRISE: Final = "only LanceDB Enterprise has deferred computed columns: give an expression"


class UpdateTable(IdentifiedBody, kw_only=True):
    """The body of a request to update rows: columns, and expressions for their new values."""

    updates: list[tuple[str, str]]
    predicate: str | None = None
    branch: str | None = None


class DeleteRows(IdentifiedBody, kw_only=True):
    """The body of a request to delete rows."""

    predicate: str
    branch: str | None = None


class RestoreTable(IdentifiedBody, kw_only=True):
    """The body of a request to restore an earlier version."""

    version: int
    branch: str | None = None


class FieldUpdate(msgspec.Struct):
    """New metadata of a field: values by key; null removes a key. `replace` also removes all keys not listed."""

    path: str
    metadata: dict[str, str | None]
    replace: bool | None = None


class UpdateFields(IdentifiedBody, kw_only=True):
    """The body of a request to change the metadata of fields."""

    updates: list[FieldUpdate]
    branch: str | None = None


class NewColumn(msgspec.Struct):
    """A column to add, with the expression for its values. The other fields are refused."""

    name: str
    expression: str | None = None
    computed: object = None
    virtual_column: object = None


class AddColumns(IdentifiedBody, kw_only=True):
    """The body of a request to add columns."""

    new_columns: list[NewColumn]
    branch: str | None = None


class Alteration(msgspec.Struct, kw_only=True):
    """The changes of one column: a new name, type or nullability."""

    path: str
    data_type: dict[str, object] | str | None = None
    rename: str | None = None
    nullable: bool | None = None
    virtual_column: object = None


class AlterColumns(IdentifiedBody, kw_only=True):
    """The body of a request to alter columns."""

    alterations: list[Alteration]
    branch: str | None = None


class DropColumns(IdentifiedBody, kw_only=True):
    """The body of a request to drop columns."""

    columns: list[str]
    branch: str | None = None


class BranchBody(IdentifiedBody):
    """The body of a request whose only field is the branch of the table."""

    branch: str | None = None


async def change_table(
    rows: LanceRows, *, question: LanceQuestion, shape: type[T], branch: str | None = None, version: int | None = None
) -> T:
    """Execute a change of a table's data, `question`, as a new version of its branch, and decode the result as `shape`.

    `version` is the version to change from; None for the newest.
    """
    at = VersionReference(version, branch=branch or None)
    return await rows.change(question, at=at, shape=shape)


async def rows_update(request: Request, where: Where) -> Response:
    """Update columns of the rows that match a predicate; of all rows without one.

    `rows_updated` in the response is LanceDB's name for `updated_rows`.
    """
    body = request.decode(await body_of(request), UpdateTable)
    rows = find_rows(request, where, body=body)
    updates = dict(body.updates)
    if not updates or len(updates) != len(body.updates):
        raise BadRequest("An update must set columns, each of them once: send updates as [[column, expression], …]")
    question = questions.Update(location="", options={}, updates=updates, predicate=body.predicate)
    result = await change_table(rows, question=question, shape=LanceWriteResult, branch=body.branch)
    return json_response({"updated_rows": result.updated, "rows_updated": result.updated, **_version(result)})


async def rows_delete(request: Request, where: Where) -> Response:
    """Delete the rows that match a predicate."""
    body = request.decode(await body_of(request), DeleteRows)
    rows = find_rows(request, where, body=body)
    if not body.predicate.strip():
        raise BadRequest("A delete needs a predicate that selects the rows: send one, or 'true' for all rows")
    question = questions.Delete(location="", options={}, predicate=body.predicate)
    result = await change_table(rows, question=question, shape=LanceWriteResult, branch=body.branch)
    return json_response({"num_deleted_rows": result.deleted, **_version(result)})


def _version(done: LanceWriteResult) -> dict[str, object]:
    return {"version": done.version, "transaction_id": done.transaction_id}


async def table_restore(request: Request, where: Where) -> Response:
    """Restore an earlier version of a table, as a new version."""
    body = request.decode(await body_of(request), RestoreTable)
    rows = find_rows(request, where, body=body)
    question = questions.Restore(location="", options={})
    result = await change_table(
        rows, question=question, shape=LanceWriteResult, branch=body.branch, version=body.version
    )
    return json_response(_version(result))


async def schema_metadata_update(request: Request, where: Where) -> Response:
    """Replace the metadata of the schema. The bodies of request and response are the metadata itself, a JSON object."""
    values = request.decode(await body_of(request), dict[str, str])
    rows = find_rows(request, where)
    question = questions.SchemaMetadata(location="", options={}, values=values)
    metadata = await change_table(rows, question=question, shape=dict[str, str], branch=request.query("branch"))
    return json_response(metadata)


async def field_metadata_update(request: Request, where: Where) -> Response:
    """Set or remove keys in the metadata of fields, and return the resulting metadata."""
    body = request.decode(await body_of(request), UpdateFields)
    rows = find_rows(request, where, body=body)
    if not body.updates:
        raise BadRequest("'updates' is empty: it must have at least one entry with a field's path and metadata")
    updates = [questions.FieldChange(each.path, each.metadata, bool(each.replace)) for each in body.updates]
    question = questions.FieldMetadata(location="", options={}, updates=updates)
    result = await change_table(rows, question=question, shape=FieldMetadataResult, branch=body.branch)
    return json_response({"version": result.version, "fields": result.fields})


async def columns_add(request: Request, where: Where) -> Response:
    """Add columns: computed by SQL expressions (JSON), or without values (an Arrow stream with their schema).

    406 for LanceDB Enterprise's computed columns.
    """
    if request.headers.get(b"content-type", b"").partition(b";")[0].strip() == ARROW_STREAM:
        rows = find_rows(request, where)
        question = questions.AddFields(location="", options={}, batch_bytes_max=rows.batch_bytes_max)
        stream = request.stream(bytes_max=rows.body_bytes_max)
        return json_response(_version(await rows.feed(question, branch=request.query("branch") or None, body=stream)))
    request.require_type("json")
    body = request.decode(await body_of(request), AddColumns)
    rows = find_rows(request, where, body=body)
    columns = {each.name: each.expression for each in body.new_columns if each.expression is not None}
    if any(each.computed is not None or each.virtual_column is not None for each in body.new_columns):
        raise UnsupportedOperation(f"Not served: {_ENTERPRISE}")
    if not columns or len(columns) != len(body.new_columns):
        raise BadRequest("Each new column needs a unique name and an expression: send both")
    result = await change_table(
        rows,
        question=questions.AddColumns(location="", options={}, columns=columns),
        shape=LanceWriteResult,
        branch=body.branch,
    )
    return json_response(_version(result))


async def columns_alter(request: Request, where: Where) -> Response:
    """Rename columns, or change their types or nullability, as one new version of the table."""
    body = request.decode(await body_of(request), AlterColumns)
    rows = find_rows(request, where, body=body)
    if any(each.virtual_column is not None for each in body.alterations):
        raise UnsupportedOperation(f"Not served: {_ENTERPRISE}")
    if not body.alterations:
        raise BadRequest("List the columns and their changes, as alterations")
    changes = [
        questions.ColumnChange(each.path, each.rename, each.nullable, each.data_type) for each in body.alterations
    ]
    question = questions.AlterColumns(location="", options={}, alterations=changes)
    result = await change_table(rows, question=question, shape=LanceWriteResult, branch=body.branch)
    return json_response(_version(result))


async def columns_drop(request: Request, where: Where) -> Response:
    """Drop columns by their paths, as one new version of the table."""
    body = request.decode(await body_of(request), DropColumns)
    rows = find_rows(request, where, body=body)
    if not body.columns:
        raise BadRequest("Name the columns to drop")
    question = questions.DropColumns(location="", options={}, columns=body.columns)
    result = await change_table(rows, question=question, shape=LanceWriteResult, branch=body.branch)
    return json_response(_version(result))


async def table_stats(request: Request, where: Where) -> Response:
    """Return a table's size in bytes, and its counts of rows, indices and fragments."""
    body = request.decode(await body_of(request), BranchBody)
    rows = find_rows(request, where, body=body)
    at, question = VersionReference(branch=body.branch), questions.Stats(location="", options={})
    size = await rows.answer(question, at=at, shape=TableSize)
    fragments = {"num_fragments": size.num_fragments, "num_small_fragments": size.num_small_fragments}
    return json_response(
        {
            "total_bytes": size.total_bytes,
            "num_rows": size.num_rows,
            "num_indices": size.num_indices,
            "fragment_stats": {**fragments, "lengths": size.lengths},
        }
    )


async def transaction_describe(request: Request, where: Where) -> Response:
    """Return the status of a transaction. Its identifier is its table's, followed by its own name."""
    body = request.decode(await body_of(request), IdentifiedBody)
    summary = await _transaction(request, where, body=body)
    return json_response({"status": SUCCEEDED, "properties": _properties(summary)})


class TransactionAction(msgspec.Struct):
    """One action of a request to change a transaction. Exactly one of the fields is set."""

    setStatusAction: dict[str, object] | None = None  # noqa: N815 - the protocol's word
    setPropertyAction: dict[str, object] | None = None  # noqa: N815 - the protocol's word
    unsetPropertyAction: dict[str, object] | None = None  # noqa: N815 - the protocol's word


class AlterTransaction(IdentifiedBody, kw_only=True):
    """The body of a request to change a transaction."""

    actions: list[TransactionAction]


async def transaction_alter(request: Request, where: Where) -> Response:
    """Accept the current status of a transaction; any other change is 406, as a committed transaction never changes."""
    body = request.decode(await body_of(request), AlterTransaction)
    summary = await _transaction(request, where, body=body)
    for action in body.actions:
        if not (action.setStatusAction or action.setPropertyAction or action.unsetPropertyAction):
            raise BadRequest(
                "An action must be one of setStatusAction, setPropertyAction and unsetPropertyAction, and this one is"
                " empty: pylance 14 omits its arguments"
            )
        status = str((action.setStatusAction or {}).get("status", ""))
        if action.setPropertyAction or action.unsetPropertyAction or (status and status.upper() != SUCCEEDED):
            raise UnsupportedOperation(
                "A transaction of a Lance table exists only after its commit and cannot be changed: restore an earlier"
                " version"
            )
    return json_response({"status": SUCCEEDED, "properties": _properties(summary)})


async def _transaction(request: Request, where: Where, *, body: IdentifiedBody) -> TransactionSummary:
    rows, uuid = find_transaction(request, where, body=body)
    return await rows.answer(
        questions.Transaction(location="", options={}, uuid=uuid), at=VersionReference(), shape=TransactionSummary
    )


def _properties(summary: TransactionSummary) -> dict[str, str]:
    return {
        "operation": summary.operation,
        "uuid": summary.uuid,
        "version": str(summary.version),
        "read_version": str(summary.read_version),
    }
