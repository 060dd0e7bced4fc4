# SPDX-License-Identifier: Apache-2.0
"""Admission: a coarse access check before the server reads a long request body.

Must not know any wire format.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.access.prechecks import may_be_allowed
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.request.request_view import RequestView


def require_possible_access(
    request_view: RequestView, actions: tuple[Action, ...], *, kind: Kind | None = None, name: Levels = ()
) -> None:
    """Refuse a caller who may perform none of the actions on the named object, or on any object in the scope.

    `kind` and `name` name one object; without them any object in the scope counts. Raises PermissionDenied with the
    message for the first action, CacheMiss if a fact is not cached.
    """
    if not request_view.rules.access_enabled:
        return
    chain = request_view.settled.outer if kind is None else _chain_of(request_view, kind, name)
    if any(may_be_allowed(request_view.subject, action, chain, request_view.owner_of) for action in actions):
        return
    request_view.require(actions[0], chain)


def _chain_of(request_view: RequestView, kind: Kind, name: Levels) -> SecurableChain:
    node, chain = request_view.find(name, kind)
    return chain if node is not None else (ChainLink.absent(kind, name[-1]), *chain)
