# SPDX-License-Identifier: Apache-2.0
"""Decisions as human-readable text: the reasons, and advice.

Pure rendering: it decides nothing and reads nothing.
"""

from __future__ import annotations

from itertools import groupby

import msgspec

from limnos.model.decisions import OWNER, SERVICE_ADMIN, Decision, DecisionFactor
from limnos.model.privileges import escape_percent

_LINES_MAX = 4


def suggest(decision: Decision) -> list[str]:
    """Return steps that would make a refused action allowed: at most four lines; none for an allowed decision."""
    if decision.allowed:
        return []
    if any(f.kind == "member" for f in decision.factors):
        metalake = next(f.object_name for f in decision.factors if f.kind == "member")
        return [escape_percent(f"Add user {decision.user} to the metalake {metalake}.")]
    gaps = [f for f in decision.factors if f.kind in ("missing", "deny")]
    if any(f.kind == "disabled" for f in decision.factors):
        rest = [f for f in decision.factors if f.kind != "disabled"]
        otherwise = msgspec.structs.replace(decision, factors=tuple(rest))
        return [
            escape_percent(f"Enable user {decision.user}: 'limnos user enable {decision.user}'."),
            *(suggest(otherwise) if gaps else []),
        ][:_LINES_MAX]
    factors = [f for f in decision.factors if f.kind == "restricted"]
    if factors and not gaps:
        return [
            escape_percent(
                f"For all rows and columns: except {decision.user} from restriction {f.privilege} of {_object(f)}."
            )
            for f in factors[:_LINES_MAX]
        ]
    lines = [_step(list(group), decision.user) for _, group in groupby(gaps, key=lambda f: f.clause)]
    lines = list(dict.fromkeys(lines)) or ["No grant would allow this."]
    if len(lines) > _LINES_MAX:
        lines = [*lines[: _LINES_MAX - 1], f"And {len(lines) - _LINES_MAX + 1} more."]
    return [escape_percent(line) for line in lines]


def describe(decision: Decision) -> list[str]:
    """Format a decision as lines: the message, one line per reason, then the suggestions."""
    reasons = [escape_percent(f"  {_reason(factor)}") for factor in decision.factors]
    return [decision.message(), *reasons, *(f"  -> {line}" for line in suggest(decision))]


def _step(clause: list[DecisionFactor], user: str) -> str:
    """Return one suggestion: a grant if one would help, else the revocation of a denial, else a change of owner."""
    grants = [f for f in clause if f.kind == "missing" and f.privilege not in (OWNER, SERVICE_ADMIN)]
    if grants:
        words = " or ".join(dict.fromkeys(f.privilege or "" for f in grants if f.object_name == grants[0].object_name))
        return f"Grant {words} on {_object(grants[0])} to a role of {user}."
    denials = [f for f in clause if f.kind == "deny"]
    if denials:
        return f"Revoke the denial of {denials[0].privilege} on {_object(denials[0])} from role {denials[0].role}."
    if clause[0].privilege == SERVICE_ADMIN:
        return f"Ask a service admin, or make {user} one in the server's settings."
    return f"Make {user}, or a group of theirs, the owner of {_object(clause[0])}."


def _reason(factor: DecisionFactor) -> str:
    parts: list[str] = [factor.kind]
    parts += [factor.privilege] if factor.privilege else []
    parts += [f"on {_object(factor)}"] if factor.object_name else []
    parts += [f"through role {factor.role}"] if factor.role else []
    parts += [f"of group {factor.group}"] if factor.group else []
    return " ".join(parts)


def _object(factor: DecisionFactor) -> str:
    return (
        factor.object_name if factor.object_kind == factor.object_name else f"{factor.object_kind} {factor.object_name}"
    )
