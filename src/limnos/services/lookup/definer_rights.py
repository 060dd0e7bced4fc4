# SPDX-License-Identifier: Apache-2.0
"""Definer's rights: a caller may load a table or view by the right of the writer of a view that reads it.

Must not know any wire format. Decision record 0034 defines the rule, link by link from the caller inwards. A view's
readers may load the objects that its current text names and its writer may load, while the writer owns the view.
Nothing is cached: each request walks the views that it names, on one consistent state of the store's view.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.access.restrictions import RESTRICTED_ACTIONS
from limnos.formats.iceberg.view_names import TextBudget, names
from limnos.model.decisions import ChainLink, Decision, DecisionFactor, SecurableChain, display_names
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.records import ViewRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.offloaded_work import DOCUMENT_BYTES_MAX
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import require_fact
from limnos.view.keys import principal_id_key

VIEWS_MAX = 10
"""The maximum number of views in a chain."""
DEFINER_ACTIONS = (Action.TABLE_LOAD, Action.VIEW_LOAD)
"""The actions that definer's rights allow."""
ViewChain = tuple["Levels", ...]
"""The views through which an object is read, the outermost first."""


class LoadTarget(NamedTuple):
    """The object to load: its kind, its path, and the action that the caller requests."""

    kind: Kind
    path: Levels
    action: Action
    probe: Action
    """An action on a sibling object: a caller who may do it may learn that the object is missing."""


class _Definer(NamedTuple):
    """The user whose right loads the next link of the view chain, and the view that this user wrote, with its document.

    `view` is None for the caller's own right.
    """

    user: str
    view: Levels | None
    document: bytes = b""


class _BrokenViewChain(Exception):
    """The views of a chain give no right; the message names the view and the reason."""


def check_view_chain(through: ViewChain) -> ViewChain:
    """Validate a list of nested views, and return it.

    Raises BadRequest if it is too long, names a view twice, or has a view without a namespace.
    """
    if len(through) > VIEWS_MAX:
        raise BadRequest(f"A chain of views may have at most {VIEWS_MAX} links, not {len(through)}")
    for index, view in enumerate(through):
        if len(view) < 2:
            raise BadRequest(f"A view in a chain must be named with its namespace, not as {render(view)}")
        if view in through[:index]:
            raise BadRequest(f"View {render(view)} occurs twice in the chain: a view cannot be read through itself")
    return through


def look_up_through(request_view: RequestView, thing: LoadTarget, through: ViewChain) -> AuthorizedObject[Node]:
    """Find a node for a caller who may perform the action on it, by the caller's own right or by definer's rights.

    Raises NotFound and PermissionDenied as `RequestView.look_up` does, and NotInUse. The message of PermissionDenied
    states why the views give no right.
    """
    request_view.require_in_use()
    try:
        return request_view.look_up(thing.kind, thing.path, thing.action, probe=thing.probe)
    except PermissionDenied as refused:
        if refused.decision is None:
            raise
        try:
            return _find_by_definer(request_view, thing, through, cast("Decision", refused.decision))
        except _BrokenViewChain as broken:
            text = f"{refused.message}. The views of the chain grant no definer's rights: {broken}"
            raise PermissionDenied(text, decision=refused.decision) from None


def explain_through(request_view: RequestView, thing: LoadTarget, through: ViewChain, own: Decision) -> Decision:
    """Decide again with definer's rights on an action that the caller's own rights refuse.

    If the views give no right, returns the refusing decision `own`, with a factor that states the reason.
    """
    try:
        return _walk(request_view, thing, through, own)[1]
    except _BrokenViewChain as broken:
        gap = DecisionFactor(kind="lent", object_name=str(broken))
        return msgspec.structs.replace(own, factors=(*own.factors, gap))


def _find_by_definer(
    request_view: RequestView, thing: LoadTarget, through: ViewChain, refused: Decision
) -> AuthorizedObject[Node]:
    chain, decision = _walk(request_view, thing, through, refused)
    node, _ = request_view.find(thing.path, thing.kind)
    if node is None or node.kind is not thing.kind:
        raise request_view.missing(thing.kind, thing.path)
    return AuthorizedObject(node, chain, decision)


def _walk(
    request_view: RequestView, thing: LoadTarget, through: ViewChain, refused: Decision
) -> tuple[SecurableChain, Decision]:
    """Resolve the chain from the caller through the views to the object; each link is loaded by the right of the
    previous view's definer.

    Raises _BrokenViewChain if a view gives no right.
    """
    if any(factor.kind == "deny" for factor in refused.factors):
        raise _BrokenViewChain(
            f"the privilege is denied to {refused.user}, and definer's rights do not override a denial"
        )
    if any(factor.kind == "restricted" for factor in refused.factors):
        raise _BrokenViewChain(f"{refused.user} is restricted, and definer's rights do not lift restrictions")
    definer, factors, room = _Definer(refused.user, None), [], TextBudget()
    for view in through:
        chain = _step(request_view, definer, Kind.VIEW, view, room=room)
        definer = _definer_of(request_view, view, chain)
        factors.append(
            DecisionFactor(
                kind="lent",
                privilege=None,
                object_id=chain[0].id,
                object_kind=Kind.VIEW.word,
                object_name=display_names(chain)[0],
            )
        )
    chain = _step(request_view, definer, thing.kind, thing.path, room=room, action=thing.action)
    if thing.action in RESTRICTED_ACTIONS and request_view.bindings_of(refused.user, chain):
        raise _BrokenViewChain(f"{refused.user} is restricted, and definer's rights do not lift restrictions")
    return chain, msgspec.structs.replace(refused, allowed=True, factors=tuple(factors))


def _step(
    request_view: RequestView,
    definer: _Definer,
    kind: Kind,
    path: Levels,
    *,
    room: TextBudget,
    action: Action = Action.VIEW_LOAD,
) -> SecurableChain:
    """Load one link of the chain by the definer's right. The decision on a missing object is that on an existing one.

    Raises _BrokenViewChain if the definer may not load it, or the text of the definer's view does not name it.

    `room` limits the total text of all views.
    """
    node, chain = request_view.find(path, kind)
    if node is None or node.kind is not kind:
        chain = (ChainLink.absent(kind, path[-1]), *(chain if node is None else chain[1:]))
    text = render(path)
    if definer.view is None:
        if not request_view.decide_for(definer.user, action, chain).allowed:
            raise _BrokenViewChain(f"{definer.user} may not load view {text}, or there is none")
        return chain
    if not names(definer.document, path, request_view.catalog.name, room=room):
        raise _BrokenViewChain(f"the text of view {render(definer.view)} does not name {text}")
    if not request_view.decide_for(definer.user, action, chain).allowed:
        raise _BrokenViewChain(f"the author of view {render(definer.view)} may not load {text}")
    return chain


def _definer_of(request_view: RequestView, view: Levels, chain: SecurableChain) -> _Definer:
    """Return the definer of a view: its author, who must be enabled and own the view directly or through a group.

    Raises _BrokenViewChain otherwise.
    """
    if chain[0].id <= 0:
        raise _BrokenViewChain(f"view {render(view)} does not exist")
    node = request_view.node(chain[0].id)
    writer_id, zone = cast("ViewRecord", node.record).writer_id, request_view.metalake.id
    writer = require_fact(request_view.view, principal_id_key(writer_id), zone=zone) if writer_id else None
    if writer is None or not writer.enabled:
        raise _BrokenViewChain(f"the author of view {render(view)} is no longer a user")
    if request_view.owner_of(chain[0]) not in request_view.subject_of(writer.name).principal_ids:
        raise _BrokenViewChain(f"the author of view {render(view)} does not own it")
    document = request_view.document(node.id)
    if len(document.body) > DOCUMENT_BYTES_MAX:
        raise _BrokenViewChain(f"view {render(view)} is too large to be analysed")
    return _Definer(writer.name, view, document.body)
