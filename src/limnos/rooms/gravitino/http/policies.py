# SPDX-License-Identifier: Apache-2.0
"""Policies of a metalake: list, create, load, alter, enable and disable, drop; their objects, and the policies of an
object.

Has no business rules.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.metalake_objects import MetalakeObjectRoutes, object_of
from limnos.rooms.gravitino.http.updates import RenameUpdate, UpdateComment, VariedUpdate, edits_of
from limnos.services.governance import policies
from limnos.services.governance.policies import PolicyContent, PolicyRequest
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits


class PolicyCreate(GravitinoRequestBody, frozen=True, kw_only=True):
    """The body of a request to create a policy."""

    name: str
    policy_type: str
    content: dict[str, object]
    comment: str | None = None
    enabled: bool | None = None


class UpdateContent(VariedUpdate, frozen=True, tag="updateContent"):
    """The change of a policy's content. The policy type stays the same."""

    policy_type: str
    new_content: dict[str, object]


class PolicyUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a policy: its changes, in order."""

    updates: list[RenameUpdate | UpdateComment | UpdateContent]


class PolicySet(GravitinoRequestBody, frozen=True):
    """The body of a request to enable or disable a policy."""

    enable: bool


class PoliciesAssociate(GravitinoRequestBody, frozen=True):
    """The body of a request to change an object's policies: names to attach, and names to detach."""

    policies_to_add: list[str] | None = None
    policies_to_remove: list[str] | None = None


_POLICY = MetalakeObjectRoutes(Kind.POLICY, dto.policy)


async def policy_create(request: Request, ctx: Context, *, body: PolicyCreate) -> Response:
    """Create a policy, which the caller then owns. 409 if the name is taken."""
    (metalake,) = names_of(request)
    policy_request = PolicyRequest(body.policy_type, body.content, body.comment, enabled=body.enabled is not False)
    return _POLICY.object_response(
        await policies.policy_create(ctx, metalake=metalake, name=body.name, request=policy_request)
    )


async def policy_alter(request: Request, ctx: Context, *, body: PolicyUpdates) -> Response:
    """Apply updates of name, comment and content to a policy. If the content changes several times, the last change
    counts.
    """
    metalake, name = names_of(request)
    edits = edits_of([each for each in body.updates if not isinstance(each, UpdateContent)])
    contents = [
        PolicyContent(each.policy_type, each.new_content) for each in body.updates if isinstance(each, UpdateContent)
    ]
    content = contents[-1] if contents else None
    return _POLICY.object_response(
        await policies.policy_alter(ctx, metalake=metalake, name=name, edits=edits, content=content)
    )


async def policy_set(request: Request, ctx: Context, *, body: PolicySet) -> Response:
    """Enable or disable a policy; this is idempotent."""
    metalake, name = names_of(request)
    await policies.policy_alter(ctx, metalake=metalake, name=name, edits=PropertyEdits(), enabled=body.enable)
    return ok()


async def policies_associate(request: Request, ctx: Context, *, body: PoliciesAssociate) -> Response:
    """Attach policies to an object and detach others. Returns the names of its policies after the change."""
    adds, removes = body.policies_to_add, body.policies_to_remove
    if adds is None and removes is None:
        raise BadRequest("The request has no changes: give policiesToAdd, policiesToRemove or both")
    if not all(name.strip() for name in (*(adds or ()), *(removes or ()))):
        raise BadRequest("A policy's name is empty: policiesToAdd and policiesToRemove must contain names of policies")
    names = await policies.policies_associate(
        ctx, object_of(request), adds=tuple(adds or ()), removes=tuple(removes or ())
    )
    return ok(names=names)


_LIST = "Failed to operate policy(s) operation [LIST] under metalake [{0}]"
_NEW = "Failed to operate policy {body.name} operation [CREATE] under metalake [{0}]"
_ONE = "Failed to operate policy {1} operation [%s] under metalake [{0}]"
_ON = "Failed to operate policy(s) operation [%s] under object [{1} {2}]"
_POLICIES, _OBJECTS = "/metalakes/{m}/policies", "/metalakes/{m}/objects/{type}/{fullName}/policies"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_POLICIES,
        handler=wrap_handler(_LIST, _POLICY.list),
        operation="list-policies",
        query=("details",),
    ),
    Route(
        method="POST",
        path=_POLICIES,
        handler=wrap_body_handler(_NEW, PolicyCreate, policy_create),
        operation="create-policy",
        asks=(Action.POLICY_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_POLICIES}/{{policy}}",
        handler=wrap_handler(_ONE % "GET", _POLICY.load),
        operation="load-policy",
    ),
    Route(
        method="PUT",
        path=f"{_POLICIES}/{{policy}}",
        handler=wrap_body_handler(_ONE % "ALTER", PolicyUpdates, policy_alter),
        operation="alter-policy",
    ),
    Route(
        method="PATCH",
        path=f"{_POLICIES}/{{policy}}",
        handler=wrap_body_handler(_ONE % "ENABLE", PolicySet, policy_set),
        operation="set-policy",
    ),
    Route(
        method="DELETE",
        path=f"{_POLICIES}/{{policy}}",
        handler=wrap_handler(_ONE % "DELETE", _POLICY.drop),
        operation="drop-policy",
    ),
    Route(
        method="GET",
        path=f"{_POLICIES}/{{policy}}/objects",
        handler=wrap_handler(_ONE % "LIST", _POLICY.objects),
        operation="list-policy-objects",
    ),
    Route(
        method="GET",
        path=_OBJECTS,
        handler=wrap_handler(_ON % "LIST", _POLICY.list_on),
        operation="list-object-policies",
        query=("details",),
    ),
    Route(
        method="POST",
        path=_OBJECTS,
        handler=wrap_body_handler(_ON % "ASSOCIATE", PoliciesAssociate, policies_associate),
        operation="associate-policies",
    ),
    Route(
        method="GET",
        path=f"{_OBJECTS}/{{policy}}",
        handler=wrap_handler(_ON % "GET", _POLICY.load_on),
        operation="load-object-policy",
    ),
)
