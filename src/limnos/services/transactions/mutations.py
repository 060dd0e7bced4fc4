# SPDX-License-Identifier: Apache-2.0
"""Transaction mutations: runs the mutations of single requests sequentially, with one permit for the whole transaction.

Must not know any wire format. An error in one of them rolls back all (decision record 0030).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import msgspec

from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import ViewRecord
from limnos.services.catalog.tables import TableCreate, table_insert
from limnos.services.catalog.views import ViewCreate, ViewState, view_insert
from limnos.services.iceberg.commits import TableCommit, document_swap
from limnos.services.iceberg.views import ViewReplace, view_swap
from limnos.services.lance.table_commands import LanceCreate
from limnos.services.storage.location_claims import locations_lock
from limnos.services.transactions.metadata_assembly import BuiltMetadata
from limnos.services.transactions.operations import OperationMutation, OperationStep
from limnos.services.transactions.transaction_plan import TransactionPlan
from limnos.services.transactions.transaction_view import is_new
from limnos.store.faults import OPERATION_POINT, fault_point
from limnos.store.tx import Tx


class DocumentHold(msgspec.Struct, frozen=True):
    """Optimistic-lock precondition: a table or view that this transaction only reads still has version `expected`."""

    table: Node
    expected: int


class TransactionMutation(msgspec.Struct, frozen=True, kw_only=True):
    """One mutation of a transaction.

    `place` is the index of its operation. `created_id` is the temporary id of the object that it creates, by which
    later mutations refer to the object.
    """

    command: object
    mutation: OperationMutation
    place: int
    created_id: int | None = None
    zone: int | None = None
    """The zone that it writes to; None for the zone of the transaction's permit."""


class TransactionCommand(msgspec.Struct, frozen=True):
    """All mutations of a transaction, in order."""

    transaction_mutations: tuple[TransactionMutation, ...]


class TransactionEffects(NamedTuple):
    """The revisions, after a transaction, of the zones that it writes to, and the results of its mutations, by the
    index of the operation.
    """

    revisions: dict[int, int]
    results: dict[int, object]


def command_of(plan: TransactionPlan, built: list[BuiltMetadata]) -> Permit[TransactionCommand]:
    """Assemble the mutations in the order of the operations.

    The final metadata of a table is written at the table's first operation.
    """
    of_step = {each.work.steps[0]: each for each in built}
    transaction_mutations: list[TransactionMutation] = []
    for number, step in enumerate(plan.steps):
        command, mutation = step.permit.command, step.mutation
        if mutation is None and number in of_step:
            command, mutation = _table_mutation(step, of_step[number])
        if mutation is not None:
            transaction_mutations.append(
                TransactionMutation(
                    command=command,
                    mutation=mutation,
                    place=number,
                    created_id=None if step.created_node is None else step.created_node.id,
                    zone=step.permit.zone,
                )
            )
    return plan.permit.about(TransactionCommand(tuple(transaction_mutations)))


def _table_mutation(step: OperationStep, built: BuiltMetadata) -> tuple[object, OperationMutation]:
    document, before = built.document, built.work.document
    if step.kind is Kind.VIEW:
        return _view_mutation(step, built)
    if step.draft is not None:
        draft = step.draft
        command = TableCreate(
            namespace=draft.namespace,
            name=step.path[-1],
            space=draft.space,
            document=cast("MetadataDocument", document),
            owner_id=draft.owner_id,
            data_paths=built.data_paths,
            had_files=built.had_files,
            adopts=built.adopts,
        )
        return command, cast("OperationMutation", table_insert)
    table, before = cast("Node", step.table), cast("MetadataDocument", before)
    if document is None:
        return DocumentHold(table, before.version), cast("OperationMutation", document_hold)
    relocates = document.location != before.location
    commit = TableCommit(
        table=table,
        document=document,
        expected=before.version,
        relocates=relocates,
        removed=built.guards.removed,
        data_paths=built.data_paths,
        fence_until=built.guards.fence_until,
        had_files=built.had_files,
    )
    return commit.with_ended_names(built.old, built.new), cast("OperationMutation", document_swap)


def _view_mutation(step: OperationStep, built: BuiltMetadata) -> tuple[object, OperationMutation]:
    document, before, node = built.document, built.work.document, cast("Node", step.table)
    if step.draft is not None:
        draft, record = step.draft, cast("ViewRecord", node.record)
        metadata_document = cast("MetadataDocument", document)
        command = ViewCreate(
            namespace=draft.namespace,
            name=step.path[-1],
            space=draft.space,
            document=metadata_document,
            owner_id=draft.owner_id,
            record=record,
        )
        return command, cast("OperationMutation", view_insert)
    before = cast("MetadataDocument", before)
    if document is None and built.record is None:
        return DocumentHold(node, before.version), cast("OperationMutation", document_hold)
    relocates = document is not None and document.location != before.location
    return ViewReplace(
        view=node, document=document, expected=before.version, relocates=relocates, record=built.record
    ), cast("OperationMutation", view_swap)


def transaction_run(tx: Tx, permit: Permit[TransactionCommand]) -> TransactionEffects:
    """Run the mutations of the transaction sequentially. An error in one of them rolls back all.

    Raises the errors of the mutations, with the index of the operation in their context.
    """
    transaction_mutations = permit.command.transaction_mutations
    commands = [each.command for each in transaction_mutations]
    documents = [document for command in commands if (document := _relocated_document(command)) is not None]
    paths = [
        path for command in commands if isinstance(command, (TableCreate, TableCommit)) for path in command.data_paths
    ]
    locations_lock(tx, documents=documents, locations=paths)
    entries: dict[int, int] = {}
    results: dict[int, object] = {}
    for transaction_mutation in transaction_mutations:
        command = _with_new_ids(transaction_mutation.command, entries) if entries else transaction_mutation.command
        zone = permit.zone if transaction_mutation.zone is None else transaction_mutation.zone
        try:
            result = transaction_mutation.mutation(tx.in_zone(zone), permit.within(zone, command))
        except LimnosError as error:
            error.context["operation"] = transaction_mutation.place
            raise
        fault_point(OPERATION_POINT)
        results[transaction_mutation.place] = result
        if transaction_mutation.created_id is not None:
            entries[transaction_mutation.created_id] = _id_of(result)
    return TransactionEffects(tx.next_revisions, results)


def document_of_result(result: object) -> MetadataDocument | None:
    """Return the document of a table or view that a mutation wrote; None for another result."""
    if isinstance(result, ViewState):
        return result.document
    return result if isinstance(result, MetadataDocument) else None


def _id_of(result: object) -> int:
    """Return the id of the object in the result of a mutation that creates one."""
    document = document_of_result(result)
    return cast("Node", result).id if document is None else document.node_id


def _relocated_document(command: object) -> MetadataDocument | None:
    """Return the document of a command that gives a table or view a new location; None for other commands."""
    if isinstance(command, (TableCreate, ViewCreate, LanceCreate)):
        return command.document
    return command.document if isinstance(command, (TableCommit, ViewReplace)) and command.relocates else None


def _with_new_ids(command: object, results: dict[int, int]) -> object:
    """Replace the temporary ids of created objects in a command by the ids that the store has assigned."""
    if not isinstance(command, msgspec.Struct):
        return command
    fields = {name: getattr(command, name) for name in command.__struct_fields__}
    new_nodes = {
        name: msgspec.structs.replace(
            value, id=results.get(value.id, value.id), parent_id=results.get(value.parent_id, value.parent_id)
        )
        for name, value in fields.items()
        if isinstance(value, Node) and (is_new(value.id) or is_new(value.parent_id))
    }
    return msgspec.structs.replace(command, **new_nodes) if new_nodes else command


def document_hold(tx: Tx, permit: Permit[DocumentHold]) -> None:
    """Check that a table's or view's document is unchanged since the decision. Raises StalePermit if it has changed."""
    command = permit.command
    tx.nodes.require(command.table)
    if tx.documents.version(command.table.id) != command.expected:
        tx.stale()
