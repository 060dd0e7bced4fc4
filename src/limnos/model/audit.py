# SPDX-License-Identifier: Apache-2.0
"""Values of the audit: the origin of a request, the access decisions that allowed a change, and the audit records.

Must not know stores. The values hold no secrets: no token, no credential, no body.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from limnos.model.decisions import Decision, DecisionFactor

AuditOutcome = Literal["done", "refused", "failed"]
OUTCOMES: Final[tuple[AuditOutcome, ...]] = ("done", "refused", "failed")
OTHER: Final = "other"
"""The value of `AuditRecord.change` for a mutation without a change row, such as a new webhook or a statistic."""
CHANGES: Final = (
    "create",
    "alter",
    "commit",
    "move",
    "drop",
    "undrop",
    "purge",
    "grant",
    "revoke",
    "give",
    "take",
    "own",
    "join",
    "leave",
    "enable",
    "disable",
    "restrict",
    "unrestrict",
    "attach",
    "detach",
    "protect",
    "unprotect",
    "start",
    "resume",
    "cancelling",
    "cancel",
    "fail",
    "hold",
    "discard",
    "publish",
    "succeed",
    "schedule",
    "unschedule",
    "pause",
    "unpause",
    "late",
    "export",
    OTHER,
)
"""The values of `AuditRecord.change`."""
REMOVE_METADATA_FILE: Final = "remove_metadata_file"
"""The action of maintenance that deletes an unreferenced metadata file; no caller asks for it."""
TEXT_MAX: Final = 300
"""The maximum number of characters that are stored of a client's name, an address or a reason."""


class RequestOrigin(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """The origin of a request: protocol, operation, the client's user agent and IP address, and how the caller was
    authenticated.
    """

    protocol: str = ""
    operation: str = ""
    client: str = ""
    peer: str = ""
    credential: str = ""


class AuditedDecision(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A decision as the audit stores it: the action, the object, and the factors for or against."""

    action: str
    object_id: int
    kind: str
    name: str
    factors: tuple[DecisionFactor, ...] = ()

    @classmethod
    def of(cls, decision: Decision) -> AuditedDecision:
        """Convert a decision to its stored form."""
        return cls(
            action=decision.action,
            object_id=decision.target_id,
            kind=decision.target_kind,
            name=decision.target,
            factors=decision.factors,
        )

    def decision(self, user: str, *, allowed: bool) -> Decision:
        """Rebuild the access decision, to render its message."""
        return Decision(
            allowed=allowed,
            action=self.action,
            target_id=self.object_id,
            target=self.name,
            user=user,
            factors=self.factors,
            revision=(),
            target_kind=self.kind,
        )


class AuditContext(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The data of a request that its mutation stores in the change row, for the audit."""

    origin: RequestOrigin = RequestOrigin()
    rights: tuple[AuditedDecision, ...] = ()
    user_id: int | None = None
    detail: str = ""
    change: str = ""
    """The word for a change whose operation in the feed says less: `grant` or `revoke`, for an altered role."""
    outcome: AuditOutcome = "done"
    """`failed` for an allowed mutation that had nothing to do, such as the removal of what does not exist."""


class AuditRecord(msgspec.Struct, frozen=True):
    """A record of the audit. `at` is milliseconds since 1970 by the store's clock.

    `change` is empty if nothing was changed. `path` is the object's path below the metalake at that time; `new_path` is
    its path after a move. `rights` is a JSON list of `AuditedDecision`. `zone`, `revision` and `ordinal` identify a
    change row.
    """

    id: int
    metalake_id: int
    at: int
    user: str
    user_id: int | None
    outcome: str
    change: str = ""
    action: str = ""
    kind: str = ""
    object_id: int = 0
    path: str = ""
    new_path: str = ""
    detail: str = ""
    rights: str = "[]"
    protocol: str = ""
    operation: str = ""
    status: int = 0
    request_id: str = ""
    client: str = ""
    peer: str = ""
    credential: str = ""
    zone: int | None = None
    revision: int | None = None
    ordinal: int | None = None


def audit_record(
    about: AuditedDecision,
    *,
    origin: RequestOrigin,
    rights: tuple[AuditedDecision, ...],
    metalake_id: int,
    at: int,
    user: str,
    user_id: int | None,
    detail: str,
    request_id: str,
    status: int,
    outcome: str = "done",
    change: str = "",
) -> AuditRecord:
    """Build a record without an id about an object. Its action is that of the first access decision, or of `about`."""
    return AuditRecord(
        id=0,
        metalake_id=metalake_id,
        at=at,
        user=user,
        user_id=user_id,
        outcome=outcome,
        change=change,
        action=rights[0].action if rights else about.action,
        kind=about.kind,
        object_id=about.object_id,
        path=about.name,
        detail=detail,
        rights=rights_text(rights),
        protocol=origin.protocol,
        operation=origin.operation,
        status=status,
        request_id=request_id,
        client=origin.client,
        peer=origin.peer,
        credential=origin.credential,
    )


_encoder: Final = msgspec.json.Encoder()
_accounts: Final = msgspec.json.Decoder(AuditContext)
_rights: Final = msgspec.json.Decoder(tuple[AuditedDecision, ...])


def audit_context_text(origin: RequestOrigin, decisions: Iterable[Decision], *, user_id: int | None) -> str:
    """Encode the `AuditContext` of a request as JSON, for the change row of its mutation."""
    return _encoder.encode(
        AuditContext(origin=origin, rights=tuple([AuditedDecision.of(each) for each in decisions]), user_id=user_id)
    ).decode()


def add_detail(account: str | None, detail: str, *, change: str = "", outcome: AuditOutcome = "done") -> str:
    """Add a change's description, such as the granted privileges, its word and outcome to an encoded `AuditContext`.

    Returns the new JSON.
    """
    word = f',"change":{_encoder.encode(change).decode()}' if change else ""
    end = "" if outcome == "done" else f',"outcome":"{outcome}"'
    more = f'"detail":{_encoder.encode(detail).decode()}{word}{end}}}'
    return f"{{{more}" if account is None or account == "{}" else f"{account[:-1]},{more}"


def audit_context_of(text: str | None) -> AuditContext:
    """Decode an `AuditContext`. None, as in change rows without audit data, gives an empty context."""
    return AuditContext() if text is None else _accounts.decode(text)


def rights_text(rights: Iterable[AuditedDecision]) -> str:
    """Encode the access decisions of a record as JSON, for its field `rights`."""
    return _encoder.encode(tuple(rights)).decode()


def rights_of(text: str) -> tuple[AuditedDecision, ...]:
    """Decode the field `rights` of a record: the access decisions on the request."""
    return _rights.decode(text)


def shorten_text(text: str) -> str:
    """Return the first `TEXT_MAX` characters of an external string, with unprintable characters replaced by spaces."""
    return "".join([each if each.isprintable() else " " for each in text[:TEXT_MAX]])
