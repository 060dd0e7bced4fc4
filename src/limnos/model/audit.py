"""Values of the audit: where a request came from, by which right a change was made, and a line of who did what.

May import only `model` and msgspec. Secrets are never in them: no token, credential, or body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from limnos.model.decisions import Decision, DecisionFactor

if TYPE_CHECKING:
    from collections.abc import Iterable

AuditOutcome = Literal["done", "refused", "failed"]
OUTCOMES: Final[tuple[AuditOutcome, ...]] = ("done", "refused", "failed")
OTHER: Final = "other"
"""The change of a mutation that left none in the feed, such as a webhook made or a statistic written."""
TEXT_MAX: Final = 300
"""Characters that are kept of what a client says of itself, of an address, or of a reason."""


class RequestOrigin(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a request came from: what it asked over which protocol, the client's own name, its address, and what proved who it is."""

    protocol: str = ""
    operation: str = ""
    client: str = ""
    peer: str = ""
    credential: str = ""


class AuditedDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision as it is kept: what was asked of which object, and what spoke for it or against it."""

    action: str
    object_id: int
    kind: str
    name: str
    factors: tuple[DecisionFactor, ...] = ()

    @classmethod
    def of(cls, decision: Decision) -> AuditedDecision:
        """Keep a decision."""
        return cls(decision.action, decision.target_id, decision.target_kind, decision.target, decision.factors)

    def decision(self, user: str, *, allowed: bool) -> Decision:
        """Return the decision again, for its words."""
        return Decision(allowed, self.action, self.object_id, self.name, user, self.factors, (), self.kind)


class AuditContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a mutation's transaction keeps of its request, beside the change itself."""

    origin: RequestOrigin = RequestOrigin()
    rights: tuple[AuditedDecision, ...] = ()
    user_id: int | None = None
    detail: str = ""


class AuditRecord(msgspec.Struct, frozen=True):
    """A line of the audit; `at` is milliseconds since 1970 by the store's clock.

    `change` is empty for what changed nothing. `path` is where the object was when it was done, below the metalake;
    `new_path` where a move put it. `rights` is JSON, a list of `AuditedDecision`. Of a change `zone`, `revision` and `ordinal` tell which one.
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


_encoder: Final = msgspec.json.Encoder()
_accounts: Final = msgspec.json.Decoder(AuditContext)
_rights: Final = msgspec.json.Decoder(tuple[AuditedDecision, ...])


def audit_context_text(origin: RequestOrigin, decisions: Iterable[Decision], *, user_id: int | None) -> str:
    """Spell what a mutation keeps of its request."""
    return _encoder.encode(
        AuditContext(origin, tuple([AuditedDecision.of(each) for each in decisions]), user_id)
    ).decode()


def add_detail(account: str | None, detail: str) -> str:
    """Add to an account, spelled already, what a change tells beside its columns."""
    more = f'"detail":{_encoder.encode(detail).decode()}}}'
    return f"{{{more}" if account is None or account == "{}" else f"{account[:-1]},{more}"


def audit_context_of(text: str | None) -> AuditContext:
    """Read it again; of a change that was made without an audit nothing is known."""
    return AuditContext() if text is None else _accounts.decode(text)


def rights_text(rights: Iterable[AuditedDecision]) -> str:
    """Spell the rights of a line."""
    return _encoder.encode(tuple(rights)).decode()


def rights_of(text: str) -> tuple[AuditedDecision, ...]:
    """Read the rights of a line."""
    return _rights.decode(text)


def shorten_text(text: str) -> str:
    """Keep the beginning of what somebody outside sent, without what no line of text holds."""
    return "".join([each if each.isprintable() else " " for each in text[:TEXT_MAX]])
