# SPDX-License-Identifier: Apache-2.0
"""Frozen values that represent rows of the store to the layers above.

Must not know SQL or wire formats. Times are milliseconds since 1970, UTC.
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


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A named object of the tree. `zone` is the zone whose clock its changes advance. The root has id 0."""

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


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """A user or group of a metalake.

    A token whose root id is below `tokens_from` belongs to a removed user of the same name.
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


class RoleEntity(msgspec.Struct, frozen=True, kw_only=True):
    """A role of a metalake, without its grants."""

    id: int
    metalake_id: int
    name: str
    properties: tuple[tuple[str, str], ...]
    created_by: str
    created_at: int
    modified_by: str | None
    modified_at: int | None


class Grant(msgspec.Struct, frozen=True):
    """A grant of a role: a privilege (by its stored code), allowed or denied, on an object."""

    object_id: int
    object_kind: Kind
    privilege: int
    allowed: bool


class RoleWithRules(msgspec.Struct, frozen=True):
    """A role with its grants.

    `nodes` maps the id of each live object with a grant, and of its ancestors, to parent, kind and name. `nodes` is
    None if these objects were not read together with the grants. `in_parts` means that the role has too many grants for
    one read; `grants` is then empty.
    """

    role: RoleEntity
    grants: tuple[Grant, ...]
    nodes: dict[int, tuple[int, Kind, str]] | None = None
    in_parts: bool = False


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token of this server. Only the hash of its secret is stored.

    `root_id` is the id of the first token of its token family: each other token was created with a token of the family.
    It distinguishes a user from a later user of the same name.
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
    """The id of the token with which this one was created. It ends with that token."""
    ends_at: int | None = None
    """The time beyond which a session of the console cannot be extended, in milliseconds since 1970."""
    table_id: int | None = None
    """The only table that an operation's token gives access to; 0 for the token of an executor, which leases
    operations.
    """
    second_user_id: int = 0
    """The user who attached the policy that the token's operation executes: both users need each right. 0 for none."""
    signed_in_at: int | None = None
    """The time of the sign-in from which the token comes, with a password or at the external issuer, in milliseconds
    since 1970. None for a token that does not come from a sign-in.
    """

    def is_over(self, now_ms: int) -> bool:
        """Return whether the token has expired, by the store's clock in milliseconds since 1970."""
        return self.expires_at is not None and self.expires_at <= now_ms


class Password(msgspec.Struct, frozen=True):
    """A local user's hashed password. Sessions opened with the password get its `root_id`."""

    user: str
    hash: str
    trust: TokenTrust
    root_id: int


class TaskRow(msgspec.Struct, frozen=True):
    """A background task, for display.

    Times are milliseconds since 1970. A task that ended with an error is not retried.
    """

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


class TrashRow(msgspec.Struct, frozen=True, kw_only=True):
    """A dropped object that can be restored until it expires, with its name and parent at the time of the drop."""

    id: int
    kind: Kind
    name_space: str
    name: str
    parent_id: int
    dropped_by: str
    dropped_by_id: int | None
    dropped_at: int
    expires_at: int


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook: a URL to which the server sends the changes of a metalake that are visible to the webhook's creator.

    Times are milliseconds since 1970. `position` is the feed position of the last delivery. `user_id` is 0 if access
    control is off. A `stopped` webhook delivers nothing until it is started again.
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
    operations: tuple[str, ...] = ()
    """The operations of the changes that are sent; empty for all changes."""


class MetricsReportRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client's metrics report about a scan or a commit, as JSON. The id is 0 until it is stored."""

    id: int
    node_id: int
    kind: str
    reporter: str
    at: int
    snapshot_id: int | None
    body: bytes


class MetadataDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata document of a table or view: JSON bytes as served to clients, and the location of the metadata file
    that has a copy.
    """

    node_id: int
    version: int
    uuid: str
    location: str
    metadata_location: str
    body: bytes


class Listing(msgspec.Struct, frozen=True, weakref=True):
    """Live names of one name space and kind under one parent, sorted by code point, as parallel columns.

    `encoded` are the names as JSON strings, which every protocol joins to its list response.
    """

    names: tuple[str, ...]
    ids: tuple[int, ...]
    owners: tuple[int | None, ...]
    encoded: tuple[bytes, ...]


class OwnedRange(msgspec.Struct, frozen=True):
    """The containers in a catalog in which a principal owns objects, for a range of object ids.

    The range begins after the id in the fact's key and ends at `last` (None: no upper bound). `parents` contain owned
    objects other than namespaces (the catalog itself may be one). `namespaces` are the owned namespaces.
    """

    parents: frozenset[int]
    namespaces: frozenset[int]
    last: int | None


class ChangeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the change feed: the keys that a mutation touched, under their old and new names.

    The columns are named for nodes. Changes of memberships, tags, tokens, roles and principals store other values in
    them, which the properties return.
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
        """The id of the group that a user joins or leaves."""
        return self.new_parent or ROOT_ID

    @property
    def object_id(self) -> int:
        """The id of the object that a tag is attached to or detached from, of a run's pipeline, or of the only object
        on which a role's grants changed.
        """
        return self.new_parent or ROOT_ID

    @property
    def metalake_id(self) -> int:
        """The id of the metalake of a role, user or group."""
        return (self.new_parent if self.old_parent is None else self.old_parent) or ROOT_ID

    @property
    def only_name(self) -> str | None:
        """The name of a role, user or group, which never changes; None if the change row does not have it."""
        return self.new_name if self.old_name is None else self.old_name

    @property
    def user_name(self) -> str | None:
        """The name of the user to whom a token belongs."""
        return self.old_name


class ClockRow(msgspec.Struct, frozen=True):
    """A zone's clock: revision, access revision and pruned revision, all read by one statement."""

    zone: int
    revision: int
    access_revision: int
    pruned_to: int


RUNNING = "running"
IMMEDIATE = "immediate"


class StatementRequest(msgspec.Struct, frozen=True):
    """A SQL++ request to the query service.

    `mode` is how results are delivered, such as `immediate`; `outcome` is the final response.
    """

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
    def requester(self) -> Requester:
        """The user who submitted the request."""
        return Requester(self.user_name, self.user_id)

    def is_lost(self, now_ms: int) -> bool:
        """Return whether the request is still `running` although the lease of its node has expired."""
        return self.state == RUNNING and self.alive_until <= now_ms
