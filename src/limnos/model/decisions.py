# SPDX-License-Identifier: Apache-2.0
"""Access decisions as values: verdict, reasons, and the revisions at which they were made.

Must not know access rules. `access` creates decisions; the 403 response, the audit record, `access explain` and the
console render the same value.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final, Literal

import msgspec

from limnos.model.kinds import ROOT_ID, Kind, ZoneKind
from limnos.model.privileges import escape_percent
from limnos.model.restrictions import CLOSED_TO
from limnos.names.display import render_part

ABSENT_ID: Final = -1
"""The id of a chain link for an object that does not exist: it has no grants and no owner."""

OWNER: Final = "OWNER"
"""The `privilege` of a missing factor when ownership is missing."""

SERVICE_ADMIN: Final = "SERVICE_ADMIN"
"""The `privilege` of a missing factor when the action requires a service admin."""

FactorKind = Literal[
    "owner",
    "allow",
    "deny",
    "missing",
    "service-admin",
    "member",
    "self",
    "access-off",
    "lent",
    "restricted",
    "one-table",
    "second-user",
    "disabled",
]

_HAS_MAX: Final = 4


class ChainLink(msgspec.Struct, frozen=True, gc=False):
    """A target, or one of its ancestors up to the metalake. `name` is the last part of its path."""

    id: int
    kind: Kind
    name: str

    @classmethod
    def absent(cls, kind: Kind, name: str) -> ChainLink:
        """Create the link of a requested object that does not exist.

        Before the nearest existing container in a chain, the link gives the same decision and message as an existing
        object without grants. So a refusal does not reveal whether the object exists.
        """
        return cls(ABSENT_ID, kind, name)


SecurableChain = tuple[ChainLink, ...]
"""From the target up: (table, inner namespace, outer namespace, catalog, metalake), or (role, metalake)."""


def path_of(chain: SecurableChain) -> tuple[str, ...]:
    """Return the names of an object and its ancestors, from the catalog down; of a metalake object only its name."""
    names = tuple([link.name for link in reversed(chain) if link.kind is not Kind.METALAKE])
    return names[-1:] if chain[0].kind.home is ZoneKind.METALAKE else names


KIND_WORDS: Final[Mapping[Kind, str]] = {kind: kind.word for kind in Kind}
"""The word of each kind, computed once: an enum member computes `word` at each use."""


class DecisionFactor(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One reason of a decision: a right that was found, denied or missing, on which object, through which role.

    Missing factors with the same `clause` are alternatives: the action needs one factor of every clause.
    """

    kind: FactorKind
    privilege: str | None = None
    object_id: int = ROOT_ID
    object_kind: str = ""
    object_name: str = ""
    role: str | None = None
    group: str | None = None
    clause: int = 0

    def as_json(self) -> dict[str, object]:
        """Return the factor as JSON, without its empty fields."""
        fields: dict[str, object] = {"kind": self.kind}
        if self.privilege is not None:
            fields["privilege"] = self.privilege
        if self.object_name:
            fields["object"] = {"id": self.object_id, "kind": self.object_kind, "name": self.object_name}
        if self.role is not None:
            fields["role"] = self.role
        if self.group is not None:
            fields["group"] = self.group
        if self.kind in ("missing", "deny"):
            fields["clause"] = self.clause
        return fields


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """An access decision with its reasons, and the (zone, revision) pairs at which it was made."""

    allowed: bool
    action: str
    target_id: int
    target: str
    user: str
    factors: tuple[DecisionFactor, ...]
    revision: tuple[tuple[int, int], ...]
    target_kind: str = ""

    def message(self) -> str:
        """Return the message for the caller. A percent sign in a name is doubled, for clients that format messages."""
        return escape_percent(self._sentence())

    def as_json(self) -> dict[str, object]:
        """Return the decision as JSON for the access explanation, the audit and the command line.

        Percent signs in names are doubled in `message` only.
        """
        return {
            "allowed": self.allowed,
            "action": self.action,
            "user": self.user,
            "target": {"id": self.target_id, "kind": self.target_kind, "name": self.target},
            "factors": [factor.as_json() for factor in self.factors],
            "revision": [list(pair) for pair in self.revision],
            "message": self.message(),
        }

    def _sentence(self) -> str:
        outside = None if self.allowed else next((f for f in self.factors if f.kind == "member"), None)
        if outside is not None:
            return (
                f"Current user {self.user} doesn't exist in the metalake {outside.object_name}, "
                "you should add the user to the metalake first"
            )
        disabled = next((f for f in self.factors if f.kind == "disabled"), None)
        if disabled is not None:
            return disabled_text(self.user, disabled.object_name)
        verdict = "is authorized" if self.allowed else "is not authorized"
        detail = self._holdings_text(self.factors) if self.allowed else self._lacking()
        sentence = f"User '{self.user}' {verdict} to perform operation '{self.action}' on metadata '{self.target}'"
        return f"{sentence}: {detail}" if detail else sentence

    def _lacking(self) -> str:
        gaps = [f for f in self.factors if f.kind in ("missing", "deny")]
        clauses = [_clause(list(group)) for _, group in groupby(gaps, key=lambda f: f.clause)]
        restrictions = [_holding_text(f) for f in self.factors if f.kind == "restricted"][:_HAS_MAX]
        if restrictions and clauses:
            clauses[-1] += f", because it leaves {' and '.join(restrictions)}"
        else:
            clauses += [f"{each} ({CLOSED_TO})" for each in restrictions]
        current = self._holdings_text(tuple(f for f in self.factors if f.kind not in ("missing", "deny", "restricted")))
        return " and ".join(clauses) + (f", {current}" if current and clauses else current)

    def _holdings_text(self, factors: tuple[DecisionFactor, ...]) -> str:
        words = list(dict.fromkeys(_holding_text(f) for f in factors))
        more = f" and {len(words) - _HAS_MAX} more" if len(words) > _HAS_MAX else ""
        return f"has {', '.join(words[:_HAS_MAX])}{more}" if words else ""


def disabled_text(user: str, metalake: str) -> str:
    """Return the message of every refusal of a disabled user."""
    return f"User {user} is disabled in metalake {metalake}: ask its administrator"


def display_names(chain: SecurableChain) -> list[str]:
    """Return a display name for every object of `chain`: its path below the metalake, or the metalake's own name."""
    names: list[str] = []
    above = ""
    for link in reversed(chain):
        name = link.name
        if not (name.isascii() and name.isidentifier()):  # most names are plain, and this is the hot path
            name = render_part(name)
        names.append(above + name)
        above = f"{above}{name}." if len(names) > 1 else ""
    names.reverse()
    return names


def _clause(factors: list[DecisionFactor]) -> str:
    """Render one clause: `needs SELECT_TABLE or MODIFY_TABLE on main.raw.t`.

    Ownership is named only if no privilege would suffice.
    """
    denied = [_denied_text(f) for f in factors if f.kind == "deny"]
    missing = [f for f in factors if f.kind == "missing"]
    granted = [f for f in missing if f.privilege not in (OWNER, SERVICE_ADMIN)]
    if denied and not granted:
        return " and ".join(denied)
    by_object = groupby(granted or missing, key=lambda f: f.object_name)
    return ", or ".join(denied + [_needed_text(name, [f.privilege or "" for f in group]) for name, group in by_object])


def _needed_text(name: str, privileges: list[str]) -> str:
    if privileges == [OWNER]:
        return f"needs ownership of {name}"
    if privileges == [SERVICE_ADMIN]:
        return "needs a service admin"
    return f"needs {' or '.join(privileges)} on {name}"


def _denied_text(factor: DecisionFactor) -> str:
    return f"{factor.privilege} is denied on {factor.object_name}{_through_text(factor)}"


def _holding_text(factor: DecisionFactor) -> str:
    match factor.kind:
        case "owner":
            return f"ownership of {factor.object_name}{_through_text(factor)}"
        case "allow":
            return f"{factor.privilege} on {factor.object_name}{_through_text(factor)}"
        case "lent":
            return (
                f"definer's rights of view {factor.object_name}"
                if factor.object_id
                else f"no definer's rights of views: {factor.object_name}"
            )
        case "restricted":
            return f"restriction {factor.privilege} of {factor.object_name}"
        case "one-table":
            return "a token for maintenance operations only"
        case "second-user":
            return "a token that needs the rights of a second user, who was removed or disabled"
        case "service-admin":
            return "the rights of a service admin"
        case "access-off":
            return "all rights, because access control is off"
        case "self":
            return f"role {factor.role}" if factor.role else f"own entry {factor.object_name}"
        case _:
            return f"membership of {factor.object_name}"


def _through_text(factor: DecisionFactor) -> str:
    ways = [f"role {factor.role}"] if factor.role else []
    ways += [f"group {factor.group}"] if factor.group else []
    return f" (through {' of '.join(ways)})" if ways else ""
