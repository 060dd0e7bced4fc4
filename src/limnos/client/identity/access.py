# SPDX-License-Identifier: Apache-2.0
"""Calls for access: decisions, holders, accessible objects of a user, previews of changes, and presets (own API)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limnos.client.catalog.objects import KnownObjects, known_objects
from limnos.client.errors import ArgumentError
from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import parts_of
from limnos.client.values import Explanation, Factor, Parts
from limnos.model.presets import PresetName
from limnos.names import display


class ObjectInfo(msgspec.Struct, frozen=True):
    """An object by kind and full name."""

    kind: str
    name: str


class HolderRestriction(msgspec.Struct, frozen=True):
    """A read restriction that applies to a user, and the object it is set on."""

    name: str
    object: ObjectInfo


class AccessHolder(msgspec.Struct, frozen=True):
    """A user with access: the reasons by level or action, and the read restrictions that apply."""

    user: str
    enabled: bool = True
    may: Mapping[str, tuple[Factor, ...]] = {}
    restrictions: tuple[HolderRestriction, ...] = ()


class HoldersPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of users with access. `asked` are the requested access levels or the action; `after` is the cursor of the
    next page, None on the last page.
    """

    kind: str
    asked: tuple[str, ...]
    holders: tuple[AccessHolder, ...]
    after: str | None = None
    enforced: bool = True
    notes: tuple[str, ...] = ()


class AccessOwner(msgspec.Struct, frozen=True):
    """An owner of an object or of one of its ancestors."""

    kind: str
    name: str
    object: ObjectInfo
    inherited: bool = False


class AccessRule(msgspec.Struct, frozen=True, kw_only=True):
    """A privilege that a role is granted or denied (`condition`) on an object or one of its ancestors, and the counts
    of users and groups that hold the role directly.
    """

    role: str
    privilege: str
    condition: str
    object: ObjectInfo
    inherited: bool = False
    users: int = 0
    groups: int = 0


class AccessRules(msgspec.Struct, frozen=True, kw_only=True):
    """The owners, and a page of the grants and denials that decisions on an object use. `hidden_rules` counts those
    that the caller may not see.
    """

    kind: str
    owners: tuple[AccessOwner, ...] = ()
    rules: tuple[AccessRule, ...] = ()
    hidden_rules: int = 0
    after: int | None = None
    enforced: bool = True


class ReachedObject(msgspec.Struct, frozen=True):
    """An object that a user may access, with the user's levels; `restricted` if read restrictions apply."""

    kind: str
    path: Parts
    may: tuple[str, ...] = ()
    restricted: bool = False


class AccessReach(msgspec.Struct, frozen=True, kw_only=True):
    """The accessible objects of a user below an object: counts by level and kind, and a page of objects by path.

    `hidden` objects are only counted, since the caller may not load them. `bounded`: more objects exist that were not
    examined. `notes` says that the object or the user does not exist, if the caller may know it.
    """

    user: str
    counts: Mapping[str, Mapping[str, int]] = {}
    objects: tuple[ReachedObject, ...] = ()
    after: str | None = None
    looked: int = 0
    hidden: int = 0
    bounded: bool = False
    enforced: bool = True
    notes: tuple[str, ...] = ()


class OwnRights(msgspec.Struct, frozen=True):
    """What only one of two users has on an object: access levels, actions, and read restrictions on the user."""

    may: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    restrictions: tuple[str, ...] = ()


class DifferingObject(msgspec.Struct, frozen=True):
    """An object on which two users differ."""

    kind: str
    path: Parts
    user: OwnRights = OwnRights()
    other: OwnRights = OwnRights()


class AccessDifferences(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the objects on which two users differ, by path.

    `differing` counts all of them, `hidden` those that the caller may not load. `bounded`: more objects exist that were
    not examined.
    """

    objects: tuple[DifferingObject, ...] = ()
    after: str | None = None
    differing: int = 0
    hidden: int = 0
    looked: int = 0
    bounded: bool = False
    enforced: bool = True


class PrivilegeDenial(msgspec.Struct, frozen=True):
    """A denial of a role of a user, and the object that it is on. `restriction` has the denial if the object took it
    over from a former object of its path: it ends with the restriction.
    """

    role: str
    object: ObjectInfo
    restriction: str | None = None


class MissingPrivilege(msgspec.Struct, frozen=True):
    """A privilege that a user lacks, the object that a preset grants it on, and the denials that override grants."""

    privilege: str
    object: ObjectInfo
    denials: tuple[PrivilegeDenial, ...] = ()


class MissingPrivileges(msgspec.Struct, frozen=True, kw_only=True):
    """What a user lacks for a preset on an object, and the read restrictions that apply to the user there.

    Every request of a user who is not `enabled` is refused.
    """

    user: str
    kind: str
    missing: tuple[MissingPrivilege, ...] = ()
    restrictions: tuple[str, ...] = ()
    enforced: bool = True
    enabled: bool = True


class ConsequenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """The count of users who gain or lose an access level, and the count of affected objects of a kind. `names` are the
    first users, without those that the caller may not load.
    """

    level: str
    kind: str
    gains: bool
    users: int
    objects: int
    names: tuple[str, ...] = ()


class AccessConsequence(msgspec.Struct, frozen=True, kw_only=True):
    """The consequence of a change of rights: the counts of affected users, of users who gain access and of users who
    lose it, and counts by level.
    """

    users: int = 0
    gaining: int = 0
    losing: int = 0
    objects: int = 0
    lines: tuple[ConsequenceLine, ...] = ()
    bounded: bool = False
    enforced: bool = True


class PresetGrant(msgspec.Struct, frozen=True):
    """A privilege of a preset, and the object that it is granted on."""

    privilege: str
    object: ObjectInfo


class PresetOutcome(msgspec.Struct, frozen=True):
    """The outcome of granting or revoking a preset: the role, whether it was created, the changed grants, and those of
    the preset that the role has as before.
    """

    role: str
    created: bool = False
    changed: tuple[PresetGrant, ...] = ()
    unchanged: tuple[PresetGrant, ...] = ()


class Access(Resource[S]):
    """Calls for access analysis: decisions, users with access, accessible objects, and previews of changes."""

    @verb
    def objects(self, path: str | Sequence[str]) -> Flow[KnownObjects]:
        """Return the objects at a path, by kind, of which the caller may know, with owners. It refuses nothing."""
        return (yield from known_objects(self.scope, parts_of(path)))

    @verb
    def explain(
        self,
        action: str,
        path: str | Sequence[str] = (),
        *,
        user: str | None = None,
        kind: str | None = None,
        through: Sequence[str | Sequence[str]] = (),
    ) -> Flow[Explanation]:
        """Explain a decision without making the request: for the caller, or for another user with the right to manage
        grants.

        An empty `path` is the metalake. `through` are the views that a table or view is read through, the outermost
        first, each as a path that may begin with the catalog.
        """
        parts = parts_of(path, least=0) if path else ()
        body: dict[str, object] = {"user": user, "action": action, "path": parts, "kind": kind}
        if through:
            body["through"] = [_below(view, parts[:1]) for view in through]
        return call("POST", self.own_url("access", "explain"), answer=Explanation, body=body)

    @verb
    def holders(
        self,
        path: str | Sequence[str] = (),
        *,
        kind: str | None = None,
        action: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Flow[HoldersPage]:
        """Return a page of the users with access to an object, by access level; with `action`, of the users who may
        take that action.
        """
        query = {**_object_query(path, kind), "action": action, "after": after, "limit": str(limit)}
        return (yield from call("GET", self.own_url("access", "holders"), answer=HoldersPage, query=query))

    @verb
    def rules(
        self, path: str | Sequence[str] = (), *, kind: str | None = None, after: int = 0, limit: int = 100
    ) -> Flow[AccessRules]:
        """Return the owners, and a page of the grants and denials that decisions on an object use; those on the object
        itself come first.
        """
        query = {**_object_query(path, kind), "after": str(after), "limit": str(limit)}
        return (yield from call("GET", self.own_url("access", "rules"), answer=AccessRules, query=query))

    @verb
    def reach(
        self,
        path: str | Sequence[str] = (),
        *,
        user: str | None = None,
        kind: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Flow[AccessReach]:
        """Return the access levels of a user, by default the caller, below a metalake, catalog or namespace."""
        query = {**_object_query(path, kind), "user": user, "after": after, "limit": str(limit)}
        return (yield from call("GET", self.own_url("access", "reach"), answer=AccessReach, query=query))

    @verb
    def diff(
        self,
        user: str,
        other: str,
        *,
        path: str | Sequence[str] = (),
        kind: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Flow[AccessDifferences]:
        """Return what each of two users may do on an object and below it, and the other may not."""
        query = {"user": user, "other": other, **_object_query(path, kind), "after": after, "limit": str(limit)}
        return (yield from call("GET", self.own_url("access", "diff"), answer=AccessDifferences, query=query))

    @verb
    def missing(
        self,
        preset: PresetName,
        path: str | Sequence[str] = (),
        *,
        user: str | None = None,
        kind: str | None = None,
    ) -> Flow[MissingPrivileges]:
        """Return the privileges that a user, by default the caller, lacks for a preset on an object."""
        query = {"preset": preset, "user": user, **_object_query(path, kind)}
        return (yield from call("GET", self.own_url("access", "missing"), answer=MissingPrivileges, query=query))

    @verb
    def what_if_granted(
        self,
        role: str,
        privileges: Sequence[str],
        *,
        path: str | Sequence[str] = (),
        kind: str,
        grants: bool = True,
        condition: str = "allow",
    ) -> Flow[AccessConsequence]:
        """Return the effect of granting privileges on an object to a role, or revoking them. Nothing is changed."""
        body = {
            "change": "grant" if grants else "revoke",
            "role": role,
            "kind": kind,
            "path": parts_of(path, least=0) if path else (),
            "privileges": [{"name": each, "condition": condition} for each in privileges],
        }
        return call("POST", self.own_url("access", "what-if"), answer=AccessConsequence, body=body)

    @verb
    def grant_preset(
        self,
        preset: PresetName,
        path: str | Sequence[str] = (),
        *,
        kind: str,
        user: str | None = None,
        group: str | None = None,
        role: str | None = None,
    ) -> Flow[PresetOutcome]:
        """Grant all that a reader, writer or admin of an object needs to a user, a group or a role, in one transaction.

        A user or group gets a role of their own. An empty `path` is the metalake.
        """
        body = _preset_body("grant", preset, path=path, kind=kind, user=user, group=group, role=role)
        return call("POST", self.own_url("access", "presets"), answer=PresetOutcome, body=body)

    @verb
    def revoke_preset(
        self,
        preset: PresetName,
        path: str | Sequence[str] = (),
        *,
        kind: str,
        user: str | None = None,
        group: str | None = None,
        role: str | None = None,
    ) -> Flow[PresetOutcome]:
        """Revoke a preset on an object. Privileges on containers stay while the role's other grants need them."""
        body = _preset_body("revoke", preset, path=path, kind=kind, user=user, group=group, role=role)
        return call("POST", self.own_url("access", "presets"), answer=PresetOutcome, body=body)

    @verb
    def what_if_preset(
        self,
        preset: PresetName,
        path: str | Sequence[str] = (),
        *,
        kind: str,
        user: str | None = None,
        group: str | None = None,
        role: str | None = None,
        grants: bool = True,
    ) -> Flow[AccessConsequence]:
        """Return the effect of granting a preset on an object, or revoking it. Nothing is changed."""
        body = _preset_body(
            "grant" if grants else "revoke", preset, path=path, kind=kind, user=user, group=group, role=role
        )
        return call("POST", self.own_url("access", "what-if"), answer=AccessConsequence, body=body)

    @verb
    def what_if_assigned(
        self, roles: Sequence[str], *, user: str | None = None, group: str | None = None, assigns: bool = True
    ) -> Flow[AccessConsequence]:
        """Return the effect of assigning roles to a user or group, or revoking them. Nothing is changed."""
        change = "assign" if assigns else "unassign"
        body = {"change": change, "roles": list(roles), "user": user, "group": group}
        return call("POST", self.own_url("access", "what-if"), answer=AccessConsequence, body=body)


def _preset_body(
    change: str,
    preset: str,
    *,
    path: str | Sequence[str],
    kind: str,
    user: str | None,
    group: str | None,
    role: str | None,
) -> dict[str, object]:
    return {
        "change": change,
        "preset": preset,
        "kind": kind,
        "path": parts_of(path, least=0) if path else (),
        "user": user,
        "group": group,
        "role": role,
    }


def _object_query(path: str | Sequence[str], kind: str | None) -> dict[str, str | None]:
    parts = parts_of(path, least=0) if path else ()
    return {"path": display.render(parts) if parts else None, "kind": kind}


def _below(view: str | Sequence[str], catalog: Parts) -> Parts:
    """Return a view's path below its catalog. Raises ArgumentError if that is not the object's catalog."""
    parts = parts_of(view, least=2)
    if catalog and (parts[:1] != catalog or len(parts) < 3):
        text = display.render((*catalog, *parts))
        raise ArgumentError(
            f"'{display.render(parts)}' is not a view of catalog {catalog[0]}, and views grant their definer's rights"
            f" in their own catalog only: give its full path, as {text}"
        )
    return parts[1:]
