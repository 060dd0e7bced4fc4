# SPDX-License-Identifier: Apache-2.0
"""Items of bulk jobs about principals, roles, grants and owners, and about tags and policies.

Has no business rules: each item calls the service that its single request calls.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal

from limnos.http.admin.catalog.bulk_item import Exists, ItemBody, TargetItem, unless_exists
from limnos.model.attachments import check_tag_value
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, parse_privilege
from limnos.names.path import Levels
from limnos.services.governance import attachments, policies, tag_values
from limnos.services.governance.tag_values import tag_record
from limnos.services.identity import grants, groups, owners, roles, users
from limnos.services.lookup import metalake_objects
from limnos.services.request.context import Context

_PRINCIPALS = {"user": Kind.USER, "group": Kind.GROUP}


class TagCreateItem(ItemBody, frozen=True, tag="create-tag", kw_only=True):
    """Creates a tag."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    allowed_values: list[str] | None = None
    exists: Exists = "refuse"

    @property
    def _object(self) -> Levels:
        return (self.name,)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the tag."""
        record = tag_record(self.comment, self.properties or {}, allowed_values=self.allowed_values)
        create = metalake_objects.metalake_object_create(
            ctx, metalake=metalake, kind=Kind.TAG, name=self.name, record=record
        )
        return await unless_exists(create, self.exists)


class PrincipalItem(ItemBody, frozen=True, tag="create-principal", kw_only=True):
    """Adds a user or group, or creates a role without privileges."""

    kind: Literal["user", "group", "role"]
    name: str
    exists: Exists = "refuse"

    @property
    def _object(self) -> Levels:
        return (self.kind, self.name)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the user, group or role."""
        if self.kind == "role":
            create: Awaitable[object] = roles.role_create(
                ctx, metalake=metalake, name=self.name, properties={}, privilege_requests=()
            )
        else:
            create = users.principal_add(ctx, metalake=metalake, kind=_PRINCIPALS[self.kind], name=self.name)
        return await unless_exists(create, self.exists)


class MembersItem(ItemBody, frozen=True, tag="add-members", kw_only=True):
    """Adds users to a group."""

    group: str
    users: list[str]

    @property
    def _object(self) -> Levels:
        return (self.group,)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Add the members."""
        await groups.members_add(ctx, metalake=metalake, group=self.group, users=tuple(self.users))
        return True


class AssignItem(ItemBody, frozen=True, tag="assign-roles", kw_only=True):
    """Assigns roles to a user or group, or revokes them."""

    kind: Literal["user", "group"]
    name: str
    roles: list[str]
    revoke: bool = False

    @property
    def _object(self) -> Levels:
        return (self.kind, self.name)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Assign the roles."""
        if not self.roles:
            raise BadRequest("Field roles is empty: name at least one role")
        await grants.roles_give(
            ctx,
            metalake=metalake,
            kind=_PRINCIPALS[self.kind],
            name=self.name,
            roles=tuple(self.roles),
            gives=not self.revoke,
        )
        return True


class TagItem(TargetItem, frozen=True, tag="tag", kw_only=True):
    """Attaches a tag to an object, with or without a value, or detaches it."""

    tag: str
    value: str | None = None
    detach: bool = False
    exists: Exists = "refuse"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Attach or detach the tag."""
        on = self.attachment_target(ctx, metalake)
        if self.value is None:
            names = (self.tag,)
            work: Awaitable[object] = attachments.attachments_associate(
                ctx, on, kind=Kind.TAG, adds=() if self.detach else names, removes=names if self.detach else ()
            )
        else:
            pairs = (tag_values.TagValuePair(self.tag, check_tag_value(self.value)),)
            work = tag_values.pairs_associate(
                ctx, on, adds=() if self.detach else pairs, removes=pairs if self.detach else ()
            )
        return await unless_exists(work, self.exists)


class PolicyItem(TargetItem, frozen=True, tag="policy", kw_only=True):
    """Attaches a policy to an object, or detaches it."""

    policy: str
    detach: bool = False
    exists: Exists = "refuse"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Attach or detach the policy."""
        names = (self.policy,)
        work = policies.policies_associate(
            ctx,
            self.attachment_target(ctx, metalake),
            adds=() if self.detach else names,
            removes=names if self.detach else (),
        )
        return await unless_exists(work, self.exists)


class GrantItem(TargetItem, frozen=True, tag="grant", kw_only=True):
    """Grants privileges on an object to a role, as allowed or denied, or revokes them."""

    role: str
    privileges: list[str]
    deny: bool = False
    revoke: bool = False

    @property
    def touches(self) -> tuple[str, ...]:
        """The role."""
        return (self.role,)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Change the role's privileges."""
        condition = GrantCondition.DENY if self.deny else GrantCondition.ALLOW
        rules = tuple((parse_privilege(name), condition) for name in self.privileges)
        privilege_request = grants.PrivilegeRequest(*self.full_name(ctx), rules)
        await grants.privileges_grant(
            ctx, metalake=metalake, role=self.role, privilege_request=privilege_request, grants_them=not self.revoke
        )
        return True


class OwnerItem(TargetItem, frozen=True, tag="set-owner", kw_only=True):
    """Sets the owner of an object."""

    owner: str
    owner_kind: Literal["user", "group"] = "user"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Set the owner."""
        kind, name = self.full_name(ctx)
        await owners.owner_set(
            ctx,
            metalake=metalake,
            kind=kind,
            full_name=name,
            owner_kind=_PRINCIPALS[self.owner_kind],
            owner=self.owner,
        )
        return True
