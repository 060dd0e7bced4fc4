# SPDX-License-Identifier: Apache-2.0
"""Refusals in the common form of several protocols: hidden metalakes, and the decision behind a 403.

Must not know a protocol's status codes or bodies.
"""

from __future__ import annotations

from typing import cast

from limnos.access.authentication import ANONYMOUS
from limnos.model.decisions import Decision
from limnos.model.errors import LimnosError, NotFound, PermissionDenied
from limnos.names.display import render_part


def hidden_metalake(error: LimnosError) -> LimnosError:
    """Convert the error for a missing metalake to the refusal of a caller who is not its user, if access control is on.

    The request view stores the caller in the error's context. If access control is off it does not, and the error is
    returned unchanged.
    """
    if not isinstance(error, NotFound) or error.kind != "metalake" or "user" not in error.context:
        return error
    metalake = render_part(str(error.context["metalake"]))
    return PermissionDenied(
        f"Current user {error.context['user']} doesn't exist in the metalake {metalake}, "
        "you should add the user to the metalake first"
    )


def lacks_credential(error: LimnosError) -> bool:
    """Return whether an error is due to a missing credential: `anonymous` is not a user of the metalake.

    Whether the metalake exists makes no difference. Always False if access control is off.
    """
    if isinstance(error, NotFound):
        return error.kind == "metalake" and error.context.get("user") == ANONYMOUS
    decision = error.decision if isinstance(error, PermissionDenied) else None
    return (
        isinstance(decision, Decision)
        and decision.user == ANONYMOUS
        and any(factor.kind == "member" for factor in decision.factors)
    )


def visible_decision_json(error: LimnosError) -> dict[str, object] | None:
    """Return the decision behind a refusal as JSON; None for a caller who is not a user of the metalake, and must not
    learn which objects exist.
    """
    decision = error.decision if isinstance(error, PermissionDenied) else None
    if not isinstance(decision, Decision) or any(factor.kind == "member" for factor in decision.factors):
        return None
    return decision_json(decision)


def decision_json(decision: Decision) -> dict[str, object]:
    """Encode a decision. A refusal has no ids or revisions: they would reveal whether the object exists."""
    body = decision.as_json()
    if decision.allowed:
        return body
    del body["revision"]
    return cast("dict[str, object]", _without_ids(body))


def _without_ids(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_ids(each) for key, each in value.items() if key != "id"}
    return [_without_ids(each) for each in value] if isinstance(value, list) else value


def unescape_percent(message: str) -> str:
    """Undo the doubled percent signs of messages for clients that format them."""
    return message.replace("%%", "%")
