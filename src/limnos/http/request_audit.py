# SPDX-License-Identifier: Apache-2.0
"""Audit records of requests: one for each object of a refused, failed or reading request.

Must not know operations: the application reports every response, cached ones included. The changes of a request are
recorded by its transaction, not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from limnos.http.request import Request, origin_of, proof_of
from limnos.model.audit import AuditedDecision, AuditOutcome, AuditRecord, RequestOrigin, audit_record, shorten_text
from limnos.model.decisions import Decision
from limnos.model.errors import AuthenticationFailed, LimnosError, NotFound, PermissionDenied
from limnos.model.kinds import ROOT_ID
from limnos.services.request.audit_lines import AuditLines

TOO_MANY: Final = 429
"""Responses with this status (429) are logged once a second with a count, and not audited; the attempts before them
are.
"""
OBJECTS_MAX: Final = 100
"""The maximum number of objects of one request that are audited."""


class CachedAnswerProof(NamedTuple):
    """The access decisions and the caller of the request whose response was cached, for the audit."""

    decided: tuple[Decision, ...]
    user_id: int | None
    proof: str


NOBODY: Final = CachedAnswerProof((), None, "")


def audit_proof_of(request: Request) -> CachedAnswerProof:
    """Return the access decisions and the caller of a request, for the audit of its cached response."""
    decisions = _reasons(_distinct(request.decided or ()))
    return CachedAnswerProof(tuple(decisions), request.user_id, proof_of(request.credential))


def audit_response(audit: AuditLines, request: Request, *, status: int, user: str | None, anonymous: bool) -> None:
    """Record an answered request in the audit, if the settings include it."""
    failure, decisions = request.failure, _distinct(request.decided or ())
    denial = _denial_of(failure)
    is_refused = status >= 400 and (denial is not None or _is_refused(failure, decisions, status=status))
    is_failed = status >= 400 and not isinstance(failure, NotFound)
    if is_refused or is_failed:
        if status == TOO_MANY or not audit.wants_refusal():
            return
    elif request.has_changed or anonymous or not audit.takes_reads or not audit.wants_read():
        return
    if is_refused:
        decisions = [each for each in decisions if not each.allowed]
        own_decision = denial.decision if isinstance(denial, PermissionDenied) else None
        decisions = [own_decision] if own_decision is not None else decisions  # type: ignore[list-item]
    elif not is_failed:
        decisions = _reasons(decisions)
    outcome: AuditOutcome = "refused" if is_refused else "failed" if status >= 400 else "done"
    detail = _detail(request.method, request.path, failure=failure, text=request.audit_text)
    about = _AuditContext(
        user=user or "",
        user_id=request.user_id,
        outcome=outcome,
        detail=detail,
        origin=request.origin(),
        status=status,
        request_id=request.id,
        metalake_id=denial.metalake_id if isinstance(denial, PermissionDenied) else None,
    )
    audit.take(_lines(about, decisions, at=audit.store.time.now_ms()))


def audit_repeat(
    audit: AuditLines,
    proven: CachedAnswerProof,
    *,
    observed: tuple[str, str, int],
    user: str | None,
    request: tuple[str, bytes, str, str],
    headers: Mapping[bytes, bytes],
) -> None:
    """Record in the audit that a cached response was sent.

    `request` is the method, the path, the client's address and the request id.
    """
    if not audit.wants_read():
        return
    method, path, peer, request_id = request
    origin = origin_of(observed[:2], headers, peer=peer, credential=None)
    repeated_origin = RequestOrigin(
        protocol=origin.protocol, operation=origin.operation, client=origin.client, peer=peer, credential=proven.proof
    )
    about = _AuditContext(
        user=user or "",
        user_id=proven.user_id,
        outcome="done",
        detail=_detail(method, path, failure=None),
        origin=repeated_origin,
        status=observed[2],
        request_id=request_id,
    )
    audit.take(_lines(about, proven.decided, at=audit.store.time.now_ms()))


class _AuditContext(NamedTuple):
    """The fields that all records of one request share."""

    user: str
    user_id: int | None
    outcome: AuditOutcome
    detail: str
    origin: RequestOrigin
    status: int
    request_id: str
    metalake_id: int | None = None
    """The metalake of a request without an access decision; None for one that concerns no metalake, or several."""


def _denial_of(failure: Exception | None) -> LimnosError | None:
    """Return the error of a refused request. For NotFound it is the cause: the configuration endpoint of Iceberg REST
    answers 404 for a catalog that the caller may not use.
    """
    denial = failure.__cause__ if isinstance(failure, NotFound) else failure
    return denial if isinstance(denial, PermissionDenied | AuthenticationFailed) else None


def _is_refused(failure: Exception | None, decided: Iterable[Decision], *, status: int) -> bool:
    """Return whether a request without an exception for its refusal was refused."""
    return status in (401, 403) or (status >= 400 and failure is None and any(not each.allowed for each in decided))


def _detail(method: str, path: bytes, *, failure: Exception | None, text: str = "") -> str:
    """Return the request, or the words for it, and why it failed: a refusal without a decision, as that of a disabled
    user, in words.
    """
    text = shorten_text(text or f"{method} {path.decode('latin-1')}")
    if isinstance(failure, PermissionDenied) and failure.decision is None:
        return f"{text}: {shorten_text(failure.message)}"
    return f"{text}: {failure.code}" if isinstance(failure, LimnosError) else text


def _distinct(decided: Iterable[Decision]) -> list[Decision]:
    """Return each distinct decision once, in its latest version: a reader that ran again has repeated its decisions."""
    return list({(each.action, each.target_kind, each.target): each for each in decided}.values())[:OBJECTS_MAX]


def _reasons(decided: list[Decision]) -> list[Decision]:
    """Return the decisions that allowed a request. A refused one was tried first, as the load of a table whose rows the
    caller may only scan.
    """
    return [each for each in decided if each.allowed] or decided


def _lines(about: _AuditContext, decided: Iterable[Decision], *, at: int) -> list[AuditRecord]:
    lines = [
        _line(about, at, metalake_id=_metalake_of(each), right=AuditedDecision.of(each), user=about.user or each.user)
        for each in decided
    ]
    return lines or [_line(about, at, metalake_id=about.metalake_id or ROOT_ID, right=None, user=about.user)]


def _line(about: _AuditContext, at: int, *, metalake_id: int, right: AuditedDecision | None, user: str) -> AuditRecord:
    return audit_record(
        right or AuditedDecision(action="", object_id=0, kind="", name=""),
        origin=about.origin,
        rights=() if right is None else (right,),
        metalake_id=metalake_id,
        at=at,
        user=user,
        user_id=about.user_id,
        outcome=about.outcome,
        detail=about.detail,
        request_id=about.request_id,
        status=about.status,
    )


def _metalake_of(decision: Decision) -> int:
    """Return the id of the metalake in whose zone a decision was made; the server's root id if it concerns no
    metalake.
    """
    return decision.revision[1][0] if len(decision.revision) > 1 else ROOT_ID
