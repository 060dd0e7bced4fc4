# SPDX-License-Identifier: Apache-2.0
"""Keys of facts: the identifier of each fact in the view, with the type of its value.

A key is a plain tuple that begins with the kind of the fact. `Key[Node | None]` declares the type of the value to the
type checker only; at run time `Key` is `tuple`, without any cost.
"""

# Only this module returns a plain tuple where the annotation says `Key`:
# mypy: disable-error-code="return-value"

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Never

from limnos.model.attachments import Attachment
from limnos.model.entities import Grant, Listing, MetadataDocument, Node, OwnedRange, Principal, RoleEntity, Token
from limnos.model.kinds import Kind
from limnos.model.restrictions import CatalogRestrictions

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V_co = TypeVar("V_co", default=Any, covariant=True)

    class Key(tuple[Any, ...], Generic[V_co]):
        """The key of a fact, with the type of the fact's value; only the functions below create keys."""

        __slots__ = ()
else:
    Key = tuple

Space = tuple[int, str, Kind]
"""The identity of a listing: the parent's id, the name space, the kind."""
RoleFact = tuple[RoleEntity, tuple[Grant, ...] | None] | None
"""A role and its grants; None instead of the grants if the role has too many for one fact; None if no such role exists.
"""


class AbsentType(Enum):
    """The type of `ABSENT`, the marker for a fact that is not cached.

    An enum of one member, so that the type checker can narrow the type after `is ABSENT`.
    """

    ABSENT = "absent"


ABSENT: Final = AbsentType.ABSENT
"""Result of `StoreView.get` for a fact that is not cached. None is a cached absence."""


def name_key(parent_id: int, space: str, name: str) -> Key[int | None]:
    """Return the cache key of a fact: the id of the node with this name under a parent, or None."""
    return ("name", parent_id, space, name)


def node_key(node_id: int) -> Key[Node | None]:
    """Return the cache key of a fact: the node with this id, or None."""
    return ("node", node_id)


def owner_key(object_id: int) -> Key[int | None]:
    """Return the cache key of a fact: the id of the principal that owns an object, or None."""
    return ("owner", object_id)


def owned_key(zone: int, principal_id: int, *, after: int) -> Key[OwnedRange]:
    """Return the cache key of a fact: the containers in a catalog in which a principal owns objects with ids greater
    than `after`.
    """
    return ("owned", zone, principal_id, after)


def zones_of_key(node_ids: tuple[int, ...]) -> Key[dict[int, int]]:
    """Return the cache key of a fact: the zones of nodes, by node id. A node's zone never changes."""
    return ("zones of", node_ids)


def document_key(node_id: int) -> Key[MetadataDocument | None]:
    """Return the cache key of a fact: the metadata document of a table or view, or None."""
    return ("document", node_id)


def listing_key(parent_id: int, space: str, kind: Kind) -> Key[Listing]:
    """Return the cache key of a fact: the live names of one kind under a parent, with ids and owners."""
    return ("listing", parent_id, space, kind)


def block_key(space: Space, after: str, until: str) -> Key[Listing]:
    """Return the cache key of a fact: all names of a listing greater than `after` and up to `until`; "" means no upper
    bound.
    """
    return ("block", *space, after, until)


def span_key(space: Space, ends: tuple[str, str], limit: int) -> Key[Never]:
    """Return the key of a request, not of a fact: the first blocks in a range of a listing, at most `limit` names."""
    return ("span", *space, *ends, limit)


def principal_key(metalake_id: int, kind: Kind, name: str) -> Key[Principal | None]:
    """Return the cache key of a fact: the user or group with this name, or None."""
    return ("principal", metalake_id, kind, name)


def principal_id_key(principal_id: int) -> Key[Principal | None]:
    """Return the cache key of a fact: the live user or group with this id, or None."""
    return ("principal id", principal_id)


def principals_key(metalake_id: int, kind: Kind) -> Key[tuple[Principal, ...]]:
    """Return the cache key of a fact: all users, or all groups, of a metalake."""
    return ("principals", metalake_id, kind)


def groups_key(user_id: int) -> Key[tuple[int, ...]]:
    """Return the cache key of a fact: the ids of the groups that a user belongs to."""
    return ("groups", user_id)


def members_key(group_id: int) -> Key[tuple[str, ...]]:
    """Return the cache key of a fact: the names of the members of a group."""
    return ("members", group_id)


def roles_key(principal_id: int) -> Key[tuple[int, ...]]:
    """Return the cache key of a fact: the ids of the roles granted directly to a principal."""
    return ("roles", principal_id)


def role_key(metalake_id: int, name: str) -> Key[RoleEntity | None]:
    """Return the cache key of a fact: the role with this name, or None."""
    return ("role", metalake_id, name)


def rules_key(role_id: int) -> Key[RoleFact]:
    """Return the cache key of a fact: a role with its grants, by id, or None.

    The grants of a role with many grants are None, because they are cached in parts.
    """
    return ("rules", role_id)


def rules_end_key(role_id: int, after: int) -> Key[int]:
    """Return the cache key of a fact: the last object id of the part of a role's grants that begins after `after`.

    It stays valid while grants change, because any partition of the grants is correct.
    """
    return ("rules end", role_id, after)


def rules_part_key(role_id: int, span: tuple[int, int]) -> Key[tuple[Grant, ...]]:
    """Return the cache key of a fact: the grants of a role on objects with ids in `span` (first excluded, last
    included).
    """
    return ("rules part", role_id, span)


def holders_key(metalake_id: int, kind: Kind) -> Key[tuple[tuple[int, tuple[str, ...]], ...]]:
    """Return the cache key of a fact: the role names held by each user, or each group, of a metalake, by principal id.

    Principals without roles are omitted.
    """
    return ("holders", metalake_id, kind)


def all_roles_key(metalake_id: int) -> Key[tuple[tuple[RoleEntity, int | None], ...]]:
    """Return the cache key of a fact: all roles of a metalake, with their owners."""
    return ("all roles", metalake_id)


def roles_on_key(object_id: int, metalake_id: int) -> Key[tuple[str, ...]]:
    """Return the cache key of a fact: the names of the roles with a grant (allow or deny) on an object."""
    return ("roles on", object_id, metalake_id)


def attached_key(kind: Kind, object_id: int) -> Key[tuple[Attachment, ...]]:
    """Return the cache key of a fact: the attachments of tags, or of policies, to an object or its columns. The tags or
    policies may have been dropped.
    """
    return ("attached", kind, object_id)


def restrictions_key(zone: int) -> Key[CatalogRestrictions]:
    """Return the cache key of a fact: all restrictions of a catalog. Most catalogs have few or none, so one fact serves
    all of their tables.
    """
    return ("restrictions", zone)


def token_key(token_id: int) -> Key[Token | None]:
    """Return the cache key of a fact: the token with this id, or None."""
    return ("token", token_id)


def tokens_key(user: str | None) -> Key[tuple[Token, ...]]:
    """Return the cache key of a fact: the tokens of one user, or of all users for None."""
    return ("tokens", user)


def nodes_key(zone: int, node_ids: tuple[int, ...]) -> Key[Never]:
    """Return the key of a request, not of a fact: nodes of a zone by id, their ancestors in it, and the owners of all
    of them.
    """
    return ("nodes", zone, node_ids)


def containers_key(metalake_id: int, principal_ids: tuple[int, ...], *, node_ids: tuple[int, ...]) -> Key[bool]:
    """Return the key of a request: the catalogs of a metalake, nodes by id, what principals own, and the ancestors.

    It is a fact, too: that these were loaded. It never changes, since changes remove the single facts.
    """
    return ("containers", metalake_id, principal_ids, node_ids)


def member_key(metalake_id: int, name: str) -> Key[Never]:
    """Return the key of a request, not of a fact: a user by name, the user's groups, the roles of all."""
    return ("member", metalake_id, name)


def path_key(parent_id: int, names: tuple[tuple[str, str], ...]) -> Key[Never]:
    """Return the key of a request, not of a fact: the names and nodes on a path, read in one statement."""
    return ("path", parent_id, names)
