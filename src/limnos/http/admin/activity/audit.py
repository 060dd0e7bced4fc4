# SPDX-License-Identifier: Apache-2.0
"""The audit: records of actions on objects in a metalake or on the whole server, with the user and the access decision.

Has no business rules.
"""

from __future__ import annotations

from datetime import date

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant, moment_of
from limnos.model.audit import OUTCOMES, AuditedDecision, AuditRecord, rights_of
from limnos.model.errors import BadRequest
from limnos.services.activity import audit, audit_exports
from limnos.services.request.context import Context
from limnos.store.activity.audit import AuditFilter

LIMIT = 100
EXACT_MAX = 100
"""The maximum number of exact paths of a request: a path has about as many containers at most."""


async def audit_metalake(request: Request, ctx: Context) -> Response:
    """Return a metalake's audit records. Its owner and service admins receive all records, other users only the records
    of their own actions.

    `path` includes what is below it; `exact` may be repeated, and one of these paths must be that of the object itself.
    """
    (metalake,) = names_of(request)
    return await _audit_response(request, ctx, metalake=metalake)


async def audit_server(request: Request, ctx: Context) -> Response:
    """Return the audit records of the server and all its metalakes."""
    return await _audit_response(request, ctx, metalake=None)


async def _audit_response(request: Request, ctx: Context, *, metalake: str | None) -> Response:
    filters = _parse_filters(request)
    page = await audit.audit_read(ctx, metalake, filters=filters, limit=_number(request, "limit") or LIMIT)
    more = page.lines[-1].id if page.lines and (page.more or filters.after is not None) else filters.after
    lines = [encode(each) for each in page.lines]
    return json_response(
        {
            "lines": lines,
            "next": more,
            "more": page.more,
            "records_reads": ctx.services.audit.takes_reads,
            "own": page.is_own,
        }
    )


class AuditExport(AdminRequestBody, frozen=True):
    """A request to export audit records.

    `location` is the directory to write the files to, by default that of the settings. The exported days are those from
    `since` (inclusive) to `until` (exclusive).
    """

    location: str | None = None
    since: date | None = None
    until: date | None = None


async def audit_export(request: Request, ctx: Context) -> Response:
    """Start a task that exports the audit records of past days as Parquet files. Returns its id."""
    data = await request.body()
    body = Request.decode(data, AuditExport) if data.strip() else AuditExport()
    task_id = await audit_exports.audit_export(ctx, location=body.location, since=body.since, until=body.until)
    return json_response({"task": task_id})


def _parse_filters(request: Request) -> AuditFilter:
    """Parse the query parameters into an audit filter. Raises BadRequest for an invalid value."""
    exact = tuple(dict.fromkeys(filter(None, request.query_each("exact"))))
    if len(exact) > EXACT_MAX:
        raise BadRequest(f"Query parameter exact may be sent {EXACT_MAX} times, not {len(exact)}")
    outcome = request.query("outcome") or None
    if outcome is not None and outcome not in OUTCOMES:
        raise BadRequest(f"'{outcome[:50]}' is not an outcome: use one of {', '.join(OUTCOMES)}")
    return AuditFilter(
        user=request.query("user") or None,
        object_id=_number(request, "object"),
        path=request.query("path") or None,
        exact=exact,
        since=_moment(request, "since"),
        until=_moment(request, "until"),
        action=request.query("action") or None,
        outcome=outcome,
        request_id=request.query("request") or None,
        before=_number(request, "before"),
        after=_number(request, "after"),
    )


def _number(request: Request, name: str) -> int | None:
    text = request.query(name)
    if not text:
        return None
    number = number_of(text)
    if number is None:
        raise BadRequest(f"Query parameter {name} must be a number, not '{text[:20]}'")
    return number


def _moment(request: Request, name: str) -> int | None:
    text = request.query(name)
    if not text:
        return None
    moment = moment_of(text)
    if moment is None:
        raise BadRequest(f"Query parameter {name} must be a time such as 2026-11-21T18:00:00Z, not '{text[:40]}'")
    return moment


def encode(line: AuditRecord) -> dict[str, object]:
    """Encode an audit record as JSON, with its time in ISO 8601."""
    rights = rights_of(line.rights)
    is_allowed = line.outcome != "refused"
    return {
        "id": line.id,
        "at": instant(line.at),
        "user": line.user or None,
        "outcome": line.outcome,
        "change": line.change or None,
        "action": line.action or None,
        "object": _object(line),
        "new_path": line.new_path or None,
        "detail": line.detail or None,
        "rights": [_encode_decision(each, line.user, allowed=is_allowed) for each in rights],
        "protocol": line.protocol or None,
        "operation": line.operation or None,
        "status": line.status or None,
        "request_id": line.request_id or None,
        "client": line.client or None,
        "peer": line.peer or None,
        "credential": line.credential or None,
        "zone": line.zone,
        "revision": line.revision,
        "ordinal": line.ordinal,
    }


def _object(line: AuditRecord) -> dict[str, object] | None:
    if not line.kind:
        return None
    return {"id": line.object_id, "kind": line.kind, "path": line.path}


def _encode_decision(right: AuditedDecision, user: str, *, allowed: bool) -> dict[str, object]:
    """Encode the access decision of an audit record as JSON, with the fields of an access explanation."""
    body = right.decision(user, allowed=allowed).as_json()
    return {name: body[name] for name in ("action", "target", "factors", "message")}


_QUERY = (
    *("user", "object", "path", "exact", "action", "outcome", "request"),
    *("since", "until", "before", "after", "limit"),
)
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/audit",
        handler=audit_metalake,
        operation="list-audit",
        query=_QUERY,
        query_repeatable=("exact",),
    ),
    Route(
        method="GET",
        path="/api/limnos/v1/audit",
        handler=audit_server,
        operation="list-server-audit",
        query=_QUERY,
        query_repeatable=("exact",),
    ),
    Route(method="POST", path="/api/limnos/v1/audit/export", handler=audit_export, operation="export-audit"),
)
