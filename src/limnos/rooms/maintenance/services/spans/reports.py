# SPDX-License-Identifier: Apache-2.0
"""Reports of executors on the files of a span: the server checks them before plans use them.

Must not know any wire format, nor files: the check runs in a worker process. Decision record 0337.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.model.errors import BadRequest
from limnos.rooms.maintenance.services.spans.plans import plan_of, plan_require
from limnos.services.iceberg.policy_enforcement import rewriting_caller
from limnos.services.iceberg.restricted_reads import QuotaMeter
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.restricting")
REPORTS = Counter("limnos_restricted_span_reports_total", "Spans that executors reported, by outcome.", ("outcome",))


async def span_report(ctx: Context, scope: RequestScope, *, operation: int, name: str, files: Sequence[str]) -> None:
    """Check the files that an executor wrote for a span, and let plans use them.

    Args:
        ctx: The request, with the operation's token.
        scope: The catalog.
        operation: The operation.
        name: The name of the span.
        files: The locations of its files; empty if no row is visible.

    Raises:
        NotFound, PermissionDenied: As `spans_load`.
        BadRequest: The operation has no such span, or the files are not those that the server would have written.
        ServiceUnavailable: A quota of the reader or of the table is exhausted; the files of this span are used.
        StorageFailed: A file cannot be read.
    """
    leased = await plan_require(ctx, scope, operation=operation)
    plan = await plan_of(ctx, leased)
    number = plan.numbers.get(name)
    if number is None:
        raise BadRequest(f"Operation {operation} has no span '{name[:50]}': fetch its spans again")
    recipe, scanned = leased.recipe, leased.scanned
    request = plan.question(number, place=leased.place)
    request |= {"into": recipe.directory, "properties": leased.place.catalog.properties}
    question = msgspec.json.encode({"request": request, "directory": leased.directory, "files": files})
    caller = rewriting_caller(recipe.requester.name)
    try:
        _, size = await SCAN_OFFLOADER.of(ctx.services).do("restrict-verify", question, caller=caller)
    except BadRequest as error:
        REPORTS["refused",] += 1
        log.error(  # noqa: TRY400 - one line, no traceback
            "an executor's restricted files were refused",
            operation=operation,
            executor=leased.lease.holder,
            table=leased.lease.node_id,
            span=name,
            error=error.message,
        )
        raise
    REPORTS["accepted",] += 1
    quota_meter = QuotaMeter(ctx, scanned, location=recipe.directory)
    quota_meter.count(int(size))
    quota_error = await quota_meter.settle()
    if quota_error is not None:
        raise quota_error
