# SPDX-License-Identifier: Apache-2.0
"""Previews of Lance tables: their first rows, for a caller who may read all of them.

Must not know any wire format. Access is decided as for a query. Lance tables cannot have read restrictions, so no
filter or mask is applied. A worker process reads the rows, within limits. Each preview is audited, because rows leave
the lake.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from limnos.access.actions import Action
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.model.previews import ANSWER_BYTES_MAX, COLUMNS_MAX, PreviewColumn, PreviewRequest, TablePreview
from limnos.names.path import Levels
from limnos.rooms.lance.services.row_operations import bind_question, rows_read_confirmed
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.services.workers import WorkerTask, answer_question, worker_task_of
from limnos.rooms.lance.sources.questions import Head, LanceHead
from limnos.services.lance.tables import LanceTable
from limnos.services.request.concurrency.previews import RUNNING_PREVIEWS, ended_process_explained
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


async def lance_preview(
    ctx: Context, scope: RequestScope, *, path: Levels, preview_request: PreviewRequest
) -> TablePreview:
    """Return the first rows of a Lance table that the caller may read. `snapshot_id` is its version.

    Raises NotFound (also of a version), PermissionDenied, BadRequest (limits, unknown columns), StorageFailed,
    InvalidTable, ServiceUnavailable (deadline, dead process).
    """
    question = Head(
        location="",
        options={},
        columns=list(preview_request.columns),
        rows_max=preview_request.rows,
        columns_max=COLUMNS_MAX,
        bytes_max=ANSWER_BYTES_MAX,
    )

    async def read(table: LanceTable, state: VersionReference) -> tuple[LanceTable, str, LanceHead]:
        preview_request.check()
        task = worker_task_of(ctx, bind_question(table, question, at=state))
        head = await RUNNING_PREVIEWS.of(ctx.services).run(task.caller, partial(_read_head, ctx, task))
        return table, task.caller, head

    with _explain_missing_version(preview_request):
        table, user, head = await rows_read_confirmed(
            ctx, scope, levels=path, at=VersionReference(preview_request.snapshot_id), work=read
        )
    columns = tuple(PreviewColumn(name, kind) for name, kind in head.columns)
    detail = f"preview of {len(head.rows)} rows of {len(columns)} columns, version {head.version}"
    ctx.audit_rows(
        table.node.id,
        (scope.catalog or "", *path),
        kind=Kind.TABLE.word,
        action=Action.TABLE_READ,
        user=user,
        detail=detail,
    )
    return TablePreview(
        columns=columns,
        rows=head.rows,
        snapshot_id=head.version,
        is_complete=head.is_complete,
        is_restricted=False,
        columns_left_out=head.columns_left_out,
    )


async def _read_head(ctx: Context, task: WorkerTask) -> LanceHead:
    with ended_process_explained():
        return await answer_question(ctx, task, shape=LanceHead)


@contextmanager
def _explain_missing_version(preview_request: PreviewRequest) -> Iterator[None]:
    """Within the block, replace NotFound for a version, whose message in Lance REST is only the number, by one with a
    sentence.
    """
    try:
        yield
    except NotFound as error:
        if error.kind != "version":
            raise
        raise NotFound(f"The table has no version {preview_request.snapshot_id}", kind="version") from error
