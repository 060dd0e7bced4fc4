"""Frozen values of the store's rows, as the layers above the store see them.

May import only `model` itself. Must not know SQL or wire formats. Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.model.kinds import ROOT_ID
from limnos.model.principals import Requester, TokenPurpose

if TYPE_CHECKING:
    from limnos.model.kinds import Kind
    from limnos.model.principals import TokenTrust
    from limnos.model.records import NodeRecord


class Node(msgspec.Struct, frozen=True):
    """One named object of the tree. `zone` is the zone whose clock its changes move; the root's id is 0."""

    id: int
    zone: int
    parent_id: int
    kind: Kind
    name_space: str
    name: str
    format: str
    implicit: bool
    created_by: str
    created_at: int
    modified_by: str | None
    modified_at: int | None
    revision: int
    record: NodeRecord


class Principal(msgspec.Struct, frozen=True):
    """A user or group of a metalake.

    A token whose root is before `tokens_from` belongs to an earlier user of the same name, who was removed.
    """

    id: int
    metalake_id: int
    kind: Kind
    name: str
    external_id: str | None
    enabled: bool
    created_by: str
    created_at: int
    modified_by: str | None
    modified_at: int | None
    tokens_from: int = 0


class RoleEntity(msgspec.Struct, frozen=True):
    """A role of a metalake, without its rules."""

    id: int
    metalake_id: int
    name: str
    properties: tuple[tuple[str, str], ...]
    created_by: str
    created_at: int
    modified_by: str | None
    modified_at: int | None


class Grant(msgspec.Struct, frozen=True):
    """One rule of a role: a privilege (by its stored number), allowed or denied, on an object."""

    object_id: int
    object_kind: Kind
    privilege: int
    allowed: bool


class RoleWithRules(msgspec.Struct, frozen=True):
    """A role with its rules.

    `nodes` maps the id of each live object of the rules, and of its ancestors, to parent, kind and name. It is None if
    they were not read together with the rules. `in_parts` means that the role has too many rules for one read; `grants`
    is then empty.
    """

    role: RoleEntity
    grants: tuple[Grant, ...]
    nodes: dict[int, tuple[int, Kind, str]] | None = None
    in_parts: bool = False


class Token(msgspec.Struct, frozen=True):
    """A token of this server. Only the hash of its secret is stored.

    `root_id` is the first token of its family, in which each token was created with the previous one. It distinguishes
    a user from a later user of the same name.
    """

    id: int
    user: str
    name: str
    secret_hash: bytes
    created_at: int
    expires_at: int | None
    revoked: bool
    trust: TokenTrust
    root_id: int
    purpose: TokenPurpose = TokenPurpose.API
    opened_by: int | None = None
    """The id of the token with which a session or code of the console was created. It ends with that token."""
    ends_at: int | None = None
    """The time beyond which a session of the console cannot be extended, in milliseconds since 1970."""
    table_id: int | None = None
    """The only table that an operation's token gives access to; 0 for the token of an executor, which leases
    operations.
    """

    def is_over(self, now_ms: int) -> bool:
        """Return whether the token has expired, by the store's clock in milliseconds since 1970."""
        return self.expires_at is not None and self.expires_at <= now_ms


class Password(msgspec.Struct, frozen=True):
    """A local user's hashed password. Sessions opened with it get its `root_id`."""

    user: str
    hash: str
    trust: TokenTrust
    root_id: int


class TaskRow(msgspec.Struct, frozen=True):
    """A task for display. Times are milliseconds since 1970. A task that ended with an error is not retried."""

    id: int
    kind: str
    payload: str
    created_at: int
    due_at: int
    attempts: int
    leased_until: int
    progress: str | None
    error: str | None
    ended_at: int | None
    result: str | None


class TrashRow(msgspec.Struct, frozen=True):
    """A dropped object that can be restored until it expires. Its names are those it had when it was dropped."""

    id: int
    kind: Kind
    name_space: str
    name: str
    parent_id: int
    dropped_by: str
    dropped_by_id: int | None
    dropped_at: int
    expires_at: int


class Webhook(msgspec.Struct, frozen=True):
    """A URL to which changes of a metalake are sent, limited to those its creator may see.

    Times are ms since 1970. `position` is the feed position of the last delivery. `user_id` is 0 if access control is
    off. A `stopped` webhook waits until it is started again.
    """

    id: int
    metalake_id: int
    user: str
    user_id: int
    url: str
    secret: str
    position: str
    created_at: int
    due_at: int
    leased_until: int
    attempts: int
    stopped: bool
    error: str | None
    delivered_at: int | None


class MetricsReportRow(msgspec.Struct, frozen=True):
    """A client's metrics report about a scan or a commit, as JSON. The id is 0 until it is stored."""

    id: int
    node_id: int
    kind: str
    reporter: str
    at: int
    snapshot_id: int | None
    body: bytes


class MetadataDocument(msgspec.Struct, frozen=True):
    """The metadata document of a table or view: JSON bytes as they are served, and the location of the file with a
    copy.
    """

    node_id: int
    version: int
    uuid: str
    location: str
    metadata_location: str
    body: bytes


class Listing(msgspec.Struct, frozen=True, weakref=True):
    """Live names of one name space and kind under one parent, sorted by code point, as parallel columns.

    `encoded` are the names as JSON strings, from which every protocol joins its list.
    """

    names: tuple[str, ...]
    ids: tuple[int, ...]
    owners: tuple[int | None, ...]
    encoded: tuple[bytes, ...]


class OwnedRange(msgspec.Struct, frozen=True):
    """The containers in a catalog in which a principal owns objects, for object ids after the one in the fact's key up
    to `last`; None means no upper limit.

    `parents` contain owned objects other than namespaces (the catalog itself may be one). `namespaces` are the owned
    namespaces.
    """

    parents: frozenset[int]
    namespaces: frozenset[int]
    last: int | None


class ChangeRow(msgspec.Struct, frozen=True):
    """A row of the change feed: the keys that a mutation touched, under their old and new names.

    The columns are made for objects with a name under a parent. Changes of memberships, tags, tokens, roles and
    principals use them for other values, which the properties return.
    """

    zone: int
    revision: int
    ordinal: int
    operation: str
    kind: Kind
    node_id: int
    name_space: str
    old_parent: int | None
    old_name: str | None
    new_parent: int | None
    new_name: str | None
    owner_id: int | None

    @property
    def group_id(self) -> int:
        """The group that a user joins or leaves."""
        return self.new_parent or ROOT_ID

    @property
    def object_id(self) -> int:
        """The object that a tag is attached to or detached from, the pipeline of a run, or the only object whose
        rules changed.
        """
        return self.new_parent or ROOT_ID

    @property
    def metalake_id(self) -> int:
        """The metalake of a role, a user or a group."""
        return (self.new_parent if self.old_parent is None else self.old_parent) or ROOT_ID

    @property
    def only_name(self) -> str | None:
        """The name of a role, user or group, which never changes; None if the change row does not have it."""
        return self.new_name if self.old_name is None else self.old_name

    @property
    def user_name(self) -> str | None:
        """The user to whom the token belongs."""
        return self.old_name


class ClockRow(msgspec.Struct, frozen=True):
    """A zone's clock, as read by one statement."""

    zone: int
    revision: int
    access_revision: int
    pruned_to: int


RUNNING = "running"
IMMEDIATE = "immediate"


class StatementRequest(msgspec.Struct, frozen=True):
    """A request of the query service. `mode` is the delivery of its results; `outcome` is the final answer."""

    handle: str
    user_name: str
    user_id: int
    request_id: str
    client_context_id: str
    statement: str
    mode: str
    started_at: int
    holder: str
    alive_until: int
    state: str = RUNNING
    expires_at: int = 0
    rows_count: int = 0
    size: int = 0
    outcome: bytes = b""

    @property
    def asker(self) -> Requester:
        """The user who submitted the request."""
        return Requester(self.user_name, self.user_id)

    def is_lost(self, now_ms: int) -> bool:
        """Return whether it is running on a node that no longer renews its lease."""
        return self.state == RUNNING and self.alive_until <= now_ms
