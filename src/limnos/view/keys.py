"""Keys of facts: what each fact is called in the view, and what kind of value it has.

May import `model`. A key is a plain tuple that begins with the fact's kind. `Key[Node | None]` says so to the type checker
alone, so that who asks for a fact gets a value of its type; nothing is built or called for that when the program runs.
"""

# A plain tuple is returned where a `Key` is promised, here and nowhere else:
# mypy: disable-error-code="return-value"

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing import Generic, Never

    from typing_extensions import TypeVar

    from limnos.model.attachments import Attachment
    from limnos.model.entities import Grant, Listing, MetadataDocument, Node, OwnedRange, Principal, RoleEntity, Token
    from limnos.model.kinds import Kind
    from limnos.model.restrictions import CatalogRestrictions

    V_co = TypeVar("V_co", default=Any, covariant=True)

    class Key(tuple[Any, ...], Generic[V_co]):
        """A fact's key, with the type of its value; the functions below are the only places that make one."""

        __slots__ = ()

    Space = tuple[int, str, Kind]
    """Of a listing: the parent, the name space, the kind."""
    RoleFact = tuple[RoleEntity, tuple[Grant, ...] | None] | None
    """A role with its rules."""
else:
    Key = tuple


class AbsentType(Enum):
    """The type of `ABSENT`: an enum of one member, so that `is ABSENT` tells the type checker what is left."""

    ABSENT = "absent"


ABSENT: Final = AbsentType.ABSENT
"""What `View.get` returns for a fact that is not cached; None is a cached absence."""


def name_key(parent_id: int, space: str, name: str) -> Key[int | None]:
    """Which node has this name: an id or None."""
    return ("name", parent_id, space, name)


def node_key(node_id: int) -> Key[Node | None]:
    """The node of an id, or None."""
    return ("node", node_id)


def owner_key(object_id: int) -> Key[int | None]:
    """The owning principal's id, or None."""
    return ("owner", object_id)


def owned_key(zone: int, principal_id: int, *, after: int) -> Key[OwnedRange]:
    """Where in a catalog a principal owns objects whose ids come after one."""
    return ("owned", zone, principal_id, after)


def zones_of_key(node_ids: tuple[int, ...]) -> Key[dict[int, int]]:
    """In which zones nodes lie, by their ids; that never changes."""
    return ("zones of", node_ids)


def document_key(node_id: int) -> Key[MetadataDocument | None]:
    """A table's metadata document, or None."""
    return ("document", node_id)


def listing_key(parent_id: int, space: str, kind: Kind) -> Key[Listing]:
    """The live names of a kind under a parent, with ids and owners."""
    return ("listing", parent_id, space, kind)


def block_key(space: Space, after: str, until: str) -> Key[Listing]:
    """All names of a listing (parent, name space, kind) in a range: after one, up to another; "" is the end."""
    return ("block", *space, after, until)


def span_key(space: Space, ends: tuple[str, str], limit: int) -> Key[Never]:
    """Not a fact itself: asks for the first blocks in a range of a listing, at most so many names."""
    return ("span", *space, *ends, limit)


def principal_key(metalake_id: int, kind: Kind, name: str) -> Key[Principal | None]:
    """A user or group by name, or None."""
    return ("principal", metalake_id, kind, name)


def principal_id_key(principal_id: int) -> Key[Principal | None]:
    """A live user or group by id, or None."""
    return ("principal id", principal_id)


def principals_key(metalake_id: int, kind: Kind) -> Key[tuple[Principal, ...]]:
    """All users, or groups, of a metalake."""
    return ("principals", metalake_id, kind)


def groups_key(user_id: int) -> Key[tuple[int, ...]]:
    """Ids of the groups a user is in."""
    return ("groups", user_id)


def members_key(group_id: int) -> Key[tuple[str, ...]]:
    """Names of a group's members."""
    return ("members", group_id)


def roles_key(principal_id: int) -> Key[tuple[int, ...]]:
    """Ids of the roles a principal holds directly."""
    return ("roles", principal_id)


def role_key(metalake_id: int, name: str) -> Key[RoleEntity | None]:
    """A role by name, or None."""
    return ("role", metalake_id, name)


def rules_key(role_id: int) -> Key[RoleFact]:
    """A role with its rules by id, or None; a role of many rules with None in their place: they are facts in parts."""
    return ("rules", role_id)


def rules_end_key(role_id: int, after: int) -> Key[int]:
    """Where the part of a role's rules ends that begins after an object's id. It stays though rules change: a choice, of which any is right."""
    return ("rules end", role_id, after)


def rules_part_key(role_id: int, span: tuple[int, int]) -> Key[tuple[Grant, ...]]:
    """The rules of a role on objects with ids after one, up to another."""
    return ("rules part", role_id, span)


def holders_key(metalake_id: int, kind: Kind) -> Key[tuple[tuple[int, tuple[str, ...]], ...]]:
    """Which roles all users, or groups, of a metalake hold, by the ids of those who hold any."""
    return ("holders", metalake_id, kind)


def all_roles_key(metalake_id: int) -> Key[tuple[tuple[RoleEntity, int | None], ...]]:
    """All roles of a metalake, with their owners."""
    return ("all roles", metalake_id)


def roles_on_key(object_id: int, metalake_id: int) -> Key[tuple[str, ...]]:
    """Names of the roles with a rule on an object."""
    return ("roles on", object_id, metalake_id)


def attached_key(kind: Kind, object_id: int) -> Key[tuple[Attachment, ...]]:
    """The tags, or policies, that are on an object itself or on its columns, dropped ones among them."""
    return ("attached", kind, object_id)


def restrictions_key(zone: int) -> Key[CatalogRestrictions]:
    """All restrictions of a catalog: nearly always there are none or few, so one fact tells of every table."""
    return ("restrictions", zone)


def token_key(token_id: int) -> Key[Token | None]:
    """A token by id, or None."""
    return ("token", token_id)


def tokens_key(user: str | None) -> Key[tuple[Token, ...]]:
    """A user's tokens, or everybody's."""
    return ("tokens", user)


def nodes_key(zone: int, node_ids: tuple[int, ...]) -> Key[Never]:
    """Not a fact itself: asks for nodes of a zone by their ids, those above them in it, and the owners of all."""
    return ("nodes", zone, node_ids)


def path_key(parent_id: int, names: tuple[tuple[str, str], ...]) -> Key[Never]:
    """Not a fact itself: asks for the names and nodes on a path, in one statement."""
    return ("path", parent_id, names)
