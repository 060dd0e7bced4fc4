"""What the audit is told of requests: a line for each that was refused, failed, or read something, of whatever protocol.

May import `access`, `model`, `services` and this room's shared modules. Knows no operation: the application tells it of every answer, those that are
kept among them. What a request changed is told by the transaction that did it, and not here again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.http.origins import origin_of, proof_of
from limnos.model.audit import AuditedDecision, AuditRecord, rights_text, shorten_text
from limnos.model.errors import AuthenticationFailed, LimnosError, NotFound, PermissionDenied
from limnos.model.kinds import ROOT_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from limnos.http.request import Request
    from limnos.model.audit import AuditOutcome, RequestOrigin
    from limnos.model.decisions import Decision
    from limnos.services.request.audit_lines import AuditLines

TOO_MANY: Final = 429
"""The status of what the throttle tells the log once a second, with a count, instead of line by line; here those before it have lines."""
OBJECTS_MAX: Final = 100
"""Objects of one request that get a line each; what it read beyond them is told by none."""


class CachedAnswerProof(NamedTuple):
    """What a kept answer rests on, as the audit wants it."""

    decided: tuple[Decision, ...]
    user_id: int | None
    proof: str


NOBODY: Final = CachedAnswerProof((), None, "")


def audit_proof_of(request: Request) -> CachedAnswerProof:
    """Keep what the audit wants of a request whose answer is kept."""
    decided = _distinct(request.decided or ())
    return CachedAnswerProof(tuple(decided), request.user_id, proof_of(request.credential))


def audit_response(audit: AuditLines, request: Request, *, status: int, user: str | None, anonymous: bool) -> None:
    """Tell of a request that was answered, if it is wanted."""
    failure, decided = request.failure, _distinct(request.decided or ())
    refused = status >= 400 and _is_refused(failure, decided, status=status)
    failed = status >= 400 and not isinstance(failure, NotFound)
    if refused or failed:
        if status == TOO_MANY or not audit.wants_refusal():
            return
    elif request.has_changed or anonymous or not audit.takes_reads or not audit.wants_read():
        return
    if refused:
        decided = [each for each in decided if not each.allowed]
        own = failure.decision if isinstance(failure, PermissionDenied) else None
        decided = [own] if own is not None else decided  # type: ignore[list-item]
    outcome: AuditOutcome = "refused" if refused else "failed" if status >= 400 else "done"
    detail = _detail(request.method, request.path, failure=failure)
    about = _AuditContext(user or "", request.user_id, outcome, detail, request.origin(), status, request.id)
    audit.take(_lines(about, decided, at=audit.store.time.now_ms()))


def audit_repeat(
    audit: AuditLines, proven: CachedAnswerProof, *, observed: tuple[str, str, int], user: str | None, asked: tuple[str, bytes, str, str],
    headers: Mapping[bytes, bytes],
) -> None:  # fmt: skip
    """Tell of a kept answer that was sent again. `asked` is the method, the path, the client's address and the request's id."""
    if not audit.wants_read():
        return
    method, path, peer, request_id = asked
    origin = origin_of(observed[:2], headers, peer=peer, credential=None)
    told = type(origin)(origin.protocol, origin.operation, origin.client, peer, proven.proof)
    about = _AuditContext(
        user or "", proven.user_id, "done", _detail(method, path, failure=None), told, observed[2], request_id
    )
    audit.take(_lines(about, proven.decided, at=audit.store.time.now_ms()))


class _AuditContext(NamedTuple):
    """What the lines of one request have in common."""

    user: str
    user_id: int | None
    outcome: AuditOutcome
    detail: str
    origin: RequestOrigin
    status: int
    request_id: str


def _is_refused(failure: Exception | None, decided: Iterable[Decision], *, status: int) -> bool:
    """Say whether a request was refused: also where its protocol does not say so, or answered without raising."""
    if isinstance(failure, PermissionDenied | AuthenticationFailed):
        return True
    return status in (401, 403) or (status >= 400 and failure is None and any(not each.allowed for each in decided))


def _detail(method: str, path: bytes, *, failure: Exception | None) -> str:
    told = shorten_text(f"{method} {path.decode('latin-1')}")
    return f"{told}: {failure.code}" if isinstance(failure, LimnosError) else told


def _distinct(decided: Iterable[Decision]) -> list[Decision]:
    """Return each decision once, the last word on it: a reader that was run again has asked again."""
    return list({(each.action, each.target_kind, each.target): each for each in decided}.values())[:OBJECTS_MAX]


def _lines(about: _AuditContext, decided: Iterable[Decision], *, at: int) -> list[AuditRecord]:
    lines = [
        _line(about, at, metalake_id=_metalake_of(each), right=AuditedDecision.of(each), user=about.user or each.user)
        for each in decided
    ]
    return lines or [_line(about, at, metalake_id=ROOT_ID, right=None, user=about.user)]


def _line(about: _AuditContext, at: int, *, metalake_id: int, right: AuditedDecision | None, user: str) -> AuditRecord:
    origin, shown = about.origin, AuditedDecision("", 0, "", "") if right is None else right
    return AuditRecord(
        0, metalake_id, at, user, about.user_id, about.outcome, "", shown.action, shown.kind, shown.object_id, shown.name,
        "", about.detail, rights_text(() if right is None else (right,)), origin.protocol, origin.operation, about.status,
        about.request_id, origin.client, origin.peer, origin.credential,
    )  # fmt: skip


def _metalake_of(decision: Decision) -> int:
    """Return whose metalake's affair it was: a decision was made in zones, the server's first."""
    return decision.revision[1][0] if len(decision.revision) > 1 else ROOT_ID
